import { NeedsManual } from '../failure/signals.ts';
import type { Claimed } from '../store/store.ts';
import { readStored } from '../stored-json.ts';
import type { Json } from '../task.ts';

/**
 * The payload of a claimed task, unless its row is damaged.
 * @throws NeedsManual with the reason `task.corrupt` if a stored column is not JSON. No handler may see such a task.
 */
export function intactPayload({ payload, policy, unreadable: counters = [] }: Claimed): Json {
  const unreadable = [...counters];
  const value = readStored<Json>(payload, 'payload', unreadable, null);
  if (policy !== undefined) readStored<object>(policy, 'policy', unreadable, {});
  if (unreadable.length === 0) return value;
  const what = unreadable.join(' and ');
  throw new NeedsManual(
    `The row of this task is damaged: its ${what} cannot be read, so it was not run. Nothing of it is charged. ` +
      'Look at the row, restore it from a backup, or cancel or resolve the task.',
    { reason: 'task.corrupt' },
  );
}
