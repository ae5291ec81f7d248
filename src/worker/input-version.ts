import { describe } from '../failure/classify/describe.ts';
import { NeedsManual, parseSignal, RetryLater } from '../failure/signals.ts';
import type { Json } from '../task.ts';
import { type AnyTask, parseInput } from './define-task.ts';
import { inputVersionOf } from './own-options.ts';

/** Whether the input of a task was stored by another version of its type. A definition for all types has no version. */
export function isOtherVersion({ type, version = 1 }: AnyTask, ownText: string | undefined): boolean {
  if (type === '*' || (version === 1 && ownText === undefined)) return false;
  return inputVersionOf(ownText) !== version;
}

/**
 * The input of a task in the form of this version of its type.
 * @throws RetryLater if a newer version stored it: a worker that knows that version will come. NeedsManual if the schema refuses
 * what `migrate` returned.
 */
export async function currentPayload(definition: AnyTask, payload: Json, ownText: string | undefined): Promise<Json> {
  const { type, version = 1 } = definition;
  const from = inputVersionOf(ownText);
  if (from > version || !definition.migrate) {
    throw new RetryLater(
      undefined,
      `The input of this task has version ${from} of '${type}', and this worker knows version ${version}. It waits for a worker of version ${from}.`,
      { reason: 'input.newer_version' },
    );
  }
  const migrated = (await definition.migrate(payload, from)) as Json;
  try {
    await parseInput(definition, migrated);
  } catch (cause) {
    if (parseSignal(cause)?.reason !== 'validation') throw cause;
    const message = `\`migrate\` of '${type}' made an input of version ${version} from version ${from} that is refused. ${describe(cause).message}`;
    throw new NeedsManual(message, { reason: 'validation', cause });
  }
  return migrated;
}
