import type { Milliseconds } from '../duration.ts';
import { describe } from '../failure/classify/describe.ts';
import type { Outcome } from '../failure/outcome.ts';
import { encodeJson } from '../json.ts';
import type { Writable } from '../writable.ts';
import type { Ending } from './settler.ts';

/**
 * How an execution ended, with what is kept of its result. The work is done: that its result cannot be kept is no reason to do
 * it again, so a note says why.
 */
export function endingOf(outcome: Outcome, ranFor: Milliseconds, returned: unknown, sizeLimit: number): Ending {
  const ending: Writable<Ending> = { outcome, ranFor };
  if (outcome.kind !== 'success' || returned === undefined) return ending;
  try {
    ending.result = encodeJson(returned, 'result', sizeLimit);
  } catch (error) {
    ending.note = `Its result was not kept. ${describe(error).message}`;
  }
  return ending;
}
