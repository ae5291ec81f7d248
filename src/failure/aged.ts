import type { Milliseconds } from '../duration.ts';
import type { Writable } from '../writable.ts';
import type { Facts } from './decide.ts';

/**
 * The same facts, `elapsed` later: a handler that ran for an hour is judged by how things stand after that hour. The time in
 * which its process was frozen counts for the deadline alone, which is a moment that somebody named.
 */
export function aged(facts: Facts, elapsed: Milliseconds, frozen: Milliseconds = 0): Facts {
  const older: Writable<Facts> = { ...facts };
  older.deferredForMs = facts.deferralsInARow > 0 ? facts.deferredForMs + elapsed - frozen : 0;
  older.recoveriesAgoMs = facts.recoveriesAgoMs.map((ago) => ago + elapsed);
  older.sinceFirstStartMs = facts.sinceFirstStartMs + elapsed - frozen;
  if (facts.untilDeadlineMs !== undefined) older.untilDeadlineMs = facts.untilDeadlineMs - elapsed;
  return older;
}
