import type { Milliseconds } from '../duration.ts';
import type { Writable } from '../writable.ts';
import type { Facts } from './decide.ts';

/** The same facts, `elapsed` later: a handler that ran for an hour is judged by how things stand after that hour. */
export function aged(facts: Facts, elapsed: Milliseconds): Facts {
  const older: Writable<Facts> = { ...facts };
  older.deferredForMs = facts.deferralsInARow > 0 ? facts.deferredForMs + elapsed : 0;
  older.recoveriesAgoMs = facts.recoveriesAgoMs.map((ago) => ago + elapsed);
  older.sinceFirstStartMs = facts.sinceFirstStartMs + elapsed;
  if (facts.untilDeadlineMs !== undefined) older.untilDeadlineMs = facts.untilDeadlineMs - elapsed;
  return older;
}
