import type { Milliseconds } from '../duration.ts';
import { describe } from '../failure/classify/describe.ts';
import type { Outcome } from '../failure/outcome.ts';
import { encodeJson } from '../json.ts';
import type { Writable } from '../writable.ts';
import type { Ending } from './settler.ts';

/** How an execution ended, with its result. If the result cannot be stored, the task still succeeds; a note says why. */
export function endingOf(outcome: Outcome, ranFor: Milliseconds, returned: unknown, sizeLimit: number): Ending {
  const ending: Writable<Ending> = new EndingOfExecution(outcome, ranFor);
  if (outcome.kind !== 'success' || returned === undefined) return ending;
  try {
    if (returned instanceof RefusedResult) throw returned.cause;
    ending.result = encodeJson(returned, 'result', sizeLimit);
  } catch (error) {
    ending.note = `Its result was not kept. ${describe(error).message}`;
  }
  return ending;
}

/** Of a class for the reason that stands at `ClaimedTask`. */
class EndingOfExecution implements Ending {
  readonly outcome: Outcome;
  readonly ranFor: Milliseconds;

  constructor(outcome: Outcome, ranFor: Milliseconds) {
    this.outcome = outcome;
    this.ranFor = ranFor;
  }
}

/** What a handler in another process returned, if it cannot be written as JSON. */
export class RefusedResult {
  readonly cause: unknown;

  constructor(cause: unknown) {
    this.cause = cause;
  }
}
