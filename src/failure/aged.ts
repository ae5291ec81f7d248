import type { Milliseconds } from '../duration.ts';
import type { Writable } from '../writable.ts';
import type { Facts } from './decide.ts';

/**
 * The facts after `elapsed`. If a handler ran for an hour, its outcome is decided by the facts after that hour. Time in which the
 * process was frozen counts only for the deadline, because a deadline is a fixed time.
 */
export function aged(facts: Facts, elapsed: Milliseconds, frozen: Milliseconds = 0): Facts {
  const older: Writable<Facts> = { ...facts };
  older.deferredForMs = facts.deferralsInARow > 0 ? facts.deferredForMs + elapsed - frozen : 0;
  older.recoveriesAgoMs = facts.recoveriesAgoMs.map((ago) => ago + elapsed);
  older.sinceFirstStartMs = facts.sinceFirstStartMs + elapsed - frozen;
  if (facts.untilDeadlineMs !== undefined) older.untilDeadlineMs = facts.untilDeadlineMs - elapsed;
  return older;
}
