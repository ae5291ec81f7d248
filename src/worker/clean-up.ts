import { decodeJson } from '../json.ts';
import { type Logger, withFields } from '../log.ts';
import type { Claimed } from '../store/store.ts';
import { type AnyTask, parseInput } from './define-task.ts';
import { currentPayload, isOtherVersion } from './input-version.ts';

/**
 * Calls `cleanUp` of the definition of a task that has ended: it clears up after an execution that was lost with its worker.
 * Never rejects.
 */
export async function cleanUp(definition: AnyTask, lost: Claimed, log: Logger): Promise<void> {
  const { type } = lost;
  const { task: id, execution } = lost.lease;
  try {
    let payload = decodeJson(lost.payload);
    if (isOtherVersion(definition, lost.policy)) payload = await currentPayload(definition, payload, lost.policy);
    const input = await parseInput(definition, payload);
    await definition.cleanUp?.(input, {
      id,
      type,
      execution,
      submittedAt: new Date(lost.submittedAt),
      checkpoint: lost.checkpoint === undefined ? undefined : decodeJson(lost.checkpoint),
      log: withFields(log, { task: id, type, execution }),
    });
  } catch (error) {
    log.error({ err: error, task: id }, 'The clean-up after a lost execution failed');
  }
}
