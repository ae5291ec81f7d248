import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { type Facts, needsVerification } from '../failure/decide.ts';
import { type Outcome, SUCCESS } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import { decodeJson } from '../json.ts';
import { type Logger, withFields } from '../log.ts';
import type { Claimed } from '../store/store.ts';
import { type AnyTask, parseInput, VERIFIED, type Verified } from './define-task.ts';
import { currentPayload, isOtherVersion } from './input-version.ts';
import { idempotencyKeyOf } from './running-task.ts';

/** How long a verify step may take. */
const VERIFY_LIMIT: Milliseconds = 30_000;

/** The longest message of a failure in the note about a success, in UTF-16 units. */
const LONGEST = 500;

export interface VerifiedOutcome {
  readonly outcome: Outcome;
  /** For the history, if the effect happened. */
  readonly note?: string;
}

interface Context {
  readonly definition: AnyTask | undefined;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Whether a verify step must be asked before an outcome is decided. */
export function mustVerify(
  outcome: Outcome,
  facts: Facts,
  { definition, policy }: Pick<Context, 'definition' | 'policy'>,
): boolean {
  return definition?.verify !== undefined && needsVerification(facts, outcome, policy);
}

/**
 * Asks the verify step of the type whether the effect happened. If it did, the outcome is a success. A step that fails, or does not
 * answer in time, counts as `unknown`. Never rejects.
 */
export async function verified(outcome: Outcome, claimed: Claimed, context: Context): Promise<VerifiedOutcome> {
  if (outcome.kind !== 'failure' && outcome.kind !== 'loss') return { outcome };
  const answer = await answerOf(outcome, claimed, context);
  if (answer !== 'happened') return { outcome: { ...outcome, verified: answer } };
  const what =
    outcome.kind === 'loss'
      ? `Its worker ${outcome.worker} was lost`
      : `It failed (${outcome.failure.reason}: ${outcome.failure.message.slice(0, LONGEST).toWellFormed()})`;
  return { outcome: SUCCESS, note: `${what}, but its verify step found that the effect happened.` };
}

async function answerOf(
  outcome: Extract<Outcome, { kind: 'failure' | 'loss' }>,
  claimed: Claimed,
  { definition, clock, log }: Context,
): Promise<Verified> {
  const { type, source, policy, checkpoint, submittedAt, lease } = claimed;
  const { task: id, execution } = lease;
  const logger = withFields(log, { task: id, type, execution });
  const controller = new AbortController();
  let stop = () => {};
  const late = new Promise<never>((_, reject) => {
    stop = clock.after(VERIFY_LIMIT, () => {
      const error = new DOMException(`The verify step did not answer within ${VERIFY_LIMIT} ms.`, 'TimeoutError');
      controller.abort(error);
      reject(error);
    });
  });
  const ask = async (): Promise<unknown> => {
    let payload = decodeJson(claimed.payload);
    if (definition && isOtherVersion(definition, policy)) payload = await currentPayload(definition, payload, policy);
    const input = definition && (await parseInput(definition, payload));
    return definition?.verify?.(input, {
      id,
      type,
      source,
      execution,
      idempotencyKey: idempotencyKeyOf(claimed),
      submittedAt: new Date(submittedAt),
      checkpoint: checkpoint === undefined ? undefined : decodeJson(checkpoint),
      failure: outcome.kind === 'failure' ? outcome.failure : undefined,
      signal: controller.signal,
      log: logger,
    });
  };
  try {
    const answer = await Promise.race([ask(), late]);
    const known = VERIFIED.find((each) => each === answer);
    if (known) return known;
    logger.error({ answer }, `The verify step must answer one of ${VERIFIED.join(', ')}`);
  } catch (error) {
    logger.error({ err: error }, 'The verify step failed');
  } finally {
    stop();
  }
  return 'unknown';
}
