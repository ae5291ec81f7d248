import type { Milliseconds } from '../duration.ts';
import type { Facts } from './decide.ts';

/** The same facts, `elapsed` later: a handler that ran for an hour is judged by how things stand after that hour. */
export function aged(facts: Facts, elapsed: Milliseconds): Facts {
  return {
    ...facts,
    deferredForMs: facts.deferralsInARow > 0 ? facts.deferredForMs + elapsed : 0,
    recoveriesAgoMs: facts.recoveriesAgoMs.map((ago) => ago + elapsed),
    sinceFirstStartMs: facts.sinceFirstStartMs + elapsed,
    ...(facts.untilDeadlineMs !== undefined && { untilDeadlineMs: facts.untilDeadlineMs - elapsed }),
  };
}
