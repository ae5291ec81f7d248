import { formatDuration, LONGEST, type Milliseconds } from '../duration.ts';
import type { Writable } from '../writable.ts';
import { adaptedRetry, type ObservedRetries } from './adaptive.ts';
import { ceiling, describeBackoff } from './backoff.ts';
import { type Drawn, type Jitter, jittered, jitteredAbove, type Roll } from './jitter.ts';
import { type End, type Failure, type FailureKind, hadNoAnswer, type Loss, type Outcome } from './outcome.ts';
import { type Answer, answerFor, type Policy } from './policy.ts';

/** How many failures were charged to a task under one reason, in its current round. */
export interface ChargedCount {
  readonly reason: string;
  readonly kind: FailureKind;
  readonly count: number;
}

/** These failures, and the sum of the waits that followed them. */
export interface Charged extends ChargedCount {
  /** Absent: 0. */
  readonly delayMs?: Milliseconds;
}

/** What a store knows about a task when it hands it out. They are durations, not times, because the store has the clock. */
export interface Facts {
  /** Executions in this round, including the one that is decided about. */
  readonly executions: number;
  readonly charged: readonly Charged[];
  readonly deferralsInARow: number;
  /** How long ago the first deferral of the present row was decided; 0 if there is none. */
  readonly deferredForMs: Milliseconds;
  /** How long ago each charged recovery happened. */
  readonly recoveriesAgoMs: readonly Milliseconds[];
  /**
   * How many of its last executions were lost with their workers; above 0 it is a suspect. Any outcome that an execution reports
   * resets it.
   */
  readonly lostInARow: number;
  readonly idempotent: boolean;
  readonly cancelRequested: boolean;
  /** How long ago the first execution of this round started, without the time for which its source was held. */
  readonly sinceFirstStartMs: Milliseconds;
  readonly untilDeadlineMs?: Milliseconds;
  /** As in `Decision`: the reason with which the task ends unless its source is found to be down. */
  readonly verdict?: string;
  /** Of a policy that adapts its delays: what retries for the reason of this failure did. Set by the worker; a store does not know it. */
  readonly observed?: readonly ObservedRetries[];
  /** Set by the worker from the result of `observe`; a store does not know it. Absent: nothing is known about its source. */
  readonly source?: SourceFacts;
}

/** The condition of the source after the outcome that is decided about. */
export interface SourceFacts {
  /** `open`: tasks start, perhaps at a pace. `down`: the source is down. */
  readonly standing: 'open' | 'down' | 'needs_person';
  /** How long none of its tasks starts, as far as it is known. */
  readonly shutFor: Milliseconds;
  /**
   * Somebody waits for this task, and its worker runs no other. So no other task is expected to show soon whether the source is
   * down.
   */
  readonly alone?: true;
}

/**
 * The counter that the store raises. `task`: an attempt is used up. `deferrals` and `recoveries` have their own limits. `source`:
 * only the source is at fault, and no counter of the task is raised.
 */
export type Charge =
  | { readonly to: 'task'; readonly reason: string; readonly kind: FailureKind }
  | { readonly to: 'deferrals' | 'recoveries' | 'source' | 'nobody' };

/**
 * Which step decided, in the order in which they are checked: if two apply, the earlier one wins. The last six apply if
 * nothing ends the task.
 */
export const STEPS = [
  'success',
  'cancelled',
  'explicit',
  'ambiguous',
  'permanent',
  'crash_loop',
  'max_attempts',
  'no_retry',
  'verdict',
  'max_retry_after',
  'max_deferrals',
  'max_deferred_for',
  'max_executions',
  'give_up_after',
  'max_total_delay',
  'deadline',
  'interrupted',
  'recovery',
  'deferral',
  'source_down',
  'awaits_verdict',
  'retry',
] as const;
export type Step = (typeof STEPS)[number];

/** Why this was decided: enough to explain it to a person and to check it by hand. */
export interface Because {
  readonly step: Step;
  /** The rule that gave the numbers: a reason, a family, a kind, or `policy`. */
  readonly rule: string;
  /** The charged count with this outcome, and the limit that it is compared with. */
  readonly count?: number;
  readonly limit?: number;
  readonly formula?: string;
  /** The bounds of the random delay, the random number, and the density per millisecond. */
  readonly jitter?: {
    readonly low: Milliseconds;
    readonly high: Milliseconds;
    readonly roll: Roll;
    readonly density?: number;
  };
  readonly policyVersion: string;
  /** One sentence for people. */
  readonly text: string;
}

/** The decision about one outcome: the next state, a delay (not a time), who is charged, and why. */
export type Decision =
  | { readonly next: 'succeeded'; readonly because: Because }
  | { readonly next: 'cancelled'; readonly reason: string; readonly because: Because }
  | {
      readonly next: 'scheduled';
      readonly after: Milliseconds;
      readonly reason: string;
      readonly charge: Charge;
      /** As in `Facts`, from now on. */
      readonly lostInARow: number;
      /** Its next start takes a token of its source's budget for retries. */
      readonly needsToken?: true;
      /**
       * Its policy ends the task, but first it waits to see whether its source is down. If so, its charge is refunded. Otherwise
       * its next claim ends it with this reason, without a start.
       */
      readonly verdict?: string;
      readonly because: Because;
    }
  | { readonly next: End; readonly reason: string; readonly charge: Charge; readonly because: Because };

/** A crash loop is the fourth charged recovery within this window. */
const CRASH_WINDOW: Milliseconds = 72 * 3_600_000;
const CRASH_LIMIT = 4;

/** How long a task that would end by a failure of its source waits to see whether the source is down. */
const EVIDENCE_WINDOW: Milliseconds = 60_000;

/** The shortest delay of a deferral, even if less was asked for. */
export const LEAST_DEFERRAL: Milliseconds = 1_000;

/**
 * Decides what happens after an outcome. Pure: the same arguments give the same decision, in a worker, in a recovery, and in
 * `explain`.
 */
export function decide(facts: Facts, outcome: Outcome, policy: Policy, roll: Roll): Decision {
  const decision = judge(facts, outcome, policy, roll);
  if (!('verified' in outcome) || facts.cancelRequested) return decision;
  const found =
    outcome.verified === 'unknown'
      ? 'The verify step could not tell whether the effect happened.'
      : 'The verify step found that the effect did not happen.';
  return { ...decision, because: { ...decision.because, text: `${decision.because.text} ${found}` } };
}

/** Whether a person would be asked because the effect may have happened, so that a verify step should be asked first. */
export function needsVerification(facts: Facts, outcome: Outcome, policy: Policy): boolean {
  if (facts.cancelRequested || !mustNotRunTwice({ facts, policy })) return false;
  return outcome.kind === 'loss' || (outcome.kind === 'failure' && outcome.failure.ambiguous && !outcome.failure.word);
}

function judge(facts: Facts, outcome: Outcome, policy: Policy, roll: Roll): Decision {
  // Policies do not change, so all successes under a policy share one decision.
  if (outcome.kind === 'success') {
    const known = successes.get(policy);
    if (known) return known;
  }
  const reason = reasonOf(outcome);
  const kind = kindOf(facts, outcome);
  const open: Case = { facts, policy, roll, reason, answer: answerFor(policy, reason, kind) };

  if (outcome.kind === 'success') {
    const decision: Decision = Object.freeze({
      next: 'succeeded',
      because: Object.freeze(because(open, 'success', 'The handler succeeded.')),
    });
    successes.set(policy, decision);
    return decision;
  }
  if (facts.cancelRequested) {
    const text = 'A cancel was requested, and this execution did not succeed.';
    return { next: 'cancelled', reason: 'cancelled', because: because(open, 'cancelled', text) };
  }
  switch (outcome.kind) {
    case 'interruption':
      return judgeInterruption(open, outcome);
    case 'failure':
      return judgeFailure(open, outcome);
    case 'deferral':
      return judgeDeferral(open, outcome.after);
    case 'loss':
      return judgeLoss(open, outcome);
    case 'expiry':
      return end(open, open.answer.onExhausted, nobody, 'deadline', 'Its deadline passed while it waited.');
    case 'verdict':
      return judgeVerdict(open);
  }
}

const successes = new WeakMap<Policy, Decision>();

/** One outcome to decide: the facts, the policy and its answer, and the random number. */
interface Case {
  readonly facts: Facts;
  readonly policy: Policy;
  readonly roll: Roll;
  readonly answer: Answer;
  readonly reason: string;
}

const nobody: Charge = { to: 'nobody' };
const unspread: Jitter = { kind: 'none' };

function judgeInterruption(open: Case, outcome: Extract<Outcome, { kind: 'interruption' }>): Decision {
  // An interrupted handler may have done half of its work. If the task must not run twice, a person must decide.
  if (outcome.started && mustNotRunTwice(open)) {
    const text = 'It was interrupted while running, and it is not idempotent: its effect may have happened.';
    return end(open, 'needs_manual', nobody, 'ambiguous', text);
  }
  if (outcome.started && neverAgain(open)) return noSecondExecution(open, 'It was interrupted while running', nobody);

  // A check of the source's health failed before the task began. In a long outage that happens more often than maxExecutions.
  if (!outcome.started && (open.facts.source?.standing ?? 'open') !== 'open') {
    const held = again(open, 0, nobody, 'interrupted', `${outcome.message} Nothing is charged.`);
    return { ...held, lostInARow: open.facts.lostInARow };
  }
  const text = `${outcome.message} Nothing is charged, and it is ready again at once.`;
  // A suspect that was handed back before its handler began has reported nothing.
  const lostInARow = outcome.started ? 0 : open.facts.lostInARow;
  return outOfBounds(open, 0, nobody) ?? { ...again(open, 0, nobody, 'interrupted', text), lostInARow };
}

function judgeFailure(open: Case, { failure, verified }: Extract<Outcome, { kind: 'failure' }>): Decision {
  const { answer, facts, policy } = open;
  // A rule for exactly this reason decides whether it is charged.
  const isWorkersFault = failure.fault === 'worker' && !(answer.namesReason && answer.charge);
  const blamed = blamedSource(open, failure);
  const ofTask: Charge = { to: 'task', reason: failure.reason, kind: failure.kind };
  const charge: Charge = isWorkersFault ? nobody : blamed ? { to: 'source' } : ofTask;

  if (failure.word === 'needs_manual') {
    const asker = failure.reason === 'task.corrupt' ? 'The stored task is damaged' : 'The handler asked for a person';
    return end(open, 'needs_manual', nobody, 'explicit', `${asker}.`);
  }
  if (failure.word === 'permanent') {
    return end(open, answer.onExhausted, charge, 'explicit', 'The handler said that retrying cannot help.');
  }
  if (failure.ambiguous && mustNotRunTwice(open) && verified !== 'did_not_happen') {
    const text = 'The effect may have happened, and the task is not idempotent.';
    return end(open, 'needs_manual', charge, 'ambiguous', text);
  }
  if (failure.kind === 'permanent' && policy.permanent === 'stop' && !answer.namesReason) {
    if (isWorkersFault) {
      const text = `${failure.reason}: the worker lacks something, and a retry cannot help. Nothing is charged. A person is needed.`;
      return end(open, 'needs_manual', charge, 'permanent', text);
    }
    const text = `${failure.reason} is permanent, so it is not retried.`;
    if (blamed) return waitForSource(open, failure, blamed);
    return orVerdict(open, failure, end(open, answer.onExhausted, charge, 'permanent', text));
  }
  if (isWorkersFault) return deferForWorker(open, failure);
  if (blamed) return waitForSource(open, failure, blamed);
  const limited = failure.kind === 'rate_limited' || failure.fault === 'quota';
  if (failure.retryAfterMs !== undefined && (limited || failure.fault === 'source')) {
    return deferAsAsked(open, failure.retryAfterMs, answer.jitter);
  }
  if (limited && !answer.charge) return deferByBackoff(open, leastWithoutHint(facts));
  return orVerdict(open, failure, chargeAndRetry(open, failure, charge));
}

/** The source that pays for a failure instead of its task: it is known to be down, or this failure shows that it needs a person. */
function blamedSource({ facts, policy }: Case, failure: Failure): SourceFacts | undefined {
  const { fault, kind, retryAfterMs } = failure;
  const { source } = facts;
  if (source === undefined || source.standing === 'open') return undefined;
  // Also if the policy has no breaker: a task of another type found that the source is down, and the source holds this one too.
  if (fault === 'source' || hadNoAnswer(failure)) return source;
  const limited = kind === 'rate_limited' || fault === 'quota';
  const tooLong = retryAfterMs !== undefined && retryAfterMs > policy.maxRetryAfter;
  return limited && tooLong && policy.source.gate && source.standing === 'needs_person' ? source : undefined;
}

/**
 * The source is known to be down, or to need a person: nothing is charged to the task, and its source holds it. The wait is longer
 * than until the next probe, so that another task is probed next.
 */
function waitForSource(open: Case, failure: Failure, source: SourceFacts): Decision {
  const { answer, facts, policy, roll } = open;
  const charge: Charge = { to: 'source' };
  if (neverAgain(open)) return noSecondExecution(open, 'Its source failed', charge);
  const isDown = source.standing === 'down';
  const asked = failure.retryAfterMs ?? 0;
  const tooLong = asked > policy.maxRetryAfter;
  if (tooLong && isDown) return askedTooMuch(open, asked, charge);
  const least = Math.max(LEAST_DEFERRAL, tooLong ? 0 : asked);
  const floor = Math.max(least, 2 * source.shutFor);
  const wait = ceiling(answer.backoff, countedTogether(facts, policy, answer) + 1);
  const drawn = floor > wait ? jitteredAbove(floor, answer.jitter, roll) : jittered(wait, answer.jitter, roll, floor);
  const holds = isDown
    ? 'its source is down, which holds it until a probe succeeds'
    : 'its source needs a person, and holds it until it is released';
  const text = `${failure.reason}: ${holds}. Nothing is charged.`;
  // Other tasks of the source wait until their deadlines. The one that was the probe must not end sooner.
  const isInTime = drawn.delay < (facts.untilDeadlineMs ?? LONGEST);
  const after = isInTime ? drawn.delay : least;
  const inputs = isInTime ? { jitter: draw(drawn, roll) } : {};
  return outOfBounds(open, after, charge, inputs) ?? again(open, after, charge, 'source_down', text, inputs);
}

/** Steps whose end waits until it is clear whether the source is down. A deadline and `maxExecutions` do not wait. */
const WAITING_ENDS: readonly Step[] = ['max_attempts', 'permanent', 'give_up_after', 'max_total_delay'];

/**
 * A failure of the source must not end a task before it is clear whether the source is down, so a task that would end waits first.
 * A retry takes a token of the source's budget.
 */
function orVerdict(open: Case, failure: Failure, decision: Decision): Decision {
  const { facts, policy } = open;
  if (failure.fault !== 'source' || facts.source === undefined) return decision;
  if (decision.next === 'scheduled') return policy.source.budget ? { ...decision, needsToken: true } : decision;
  if (decision.next !== 'dead' && decision.next !== 'needs_manual') return decision;
  const { step, text, count, limit } = decision.because;
  const mayWait = facts.executions < policy.maxExecutions && (facts.untilDeadlineMs ?? LONGEST) > EVIDENCE_WINDOW;
  if (!policy.source.breaker || facts.source.alone || !WAITING_ENDS.includes(step) || !mayWait) return decision;
  const waits = `It waits ${formatDuration(EVIDENCE_WINDOW)} to see whether its source is down. If so, nothing is charged.`;
  const counted = { ...(count !== undefined && { count }), ...(limit !== undefined && { limit }) };
  const waiting = again(open, EVIDENCE_WINDOW, decision.charge, 'awaits_verdict', `${text} ${waits}`, counted);
  return { ...waiting, verdict: open.reason };
}

/** Its claim did not start it. If its charge was refunded meanwhile, it goes on. */
function judgeVerdict(open: Case): Decision {
  if (open.facts.verdict === undefined) {
    const text = 'Its source turned out to be down, so its charge was refunded. It is ready again at once.';
    return again(open, 0, nobody, 'interrupted', text);
  }
  const text = `Its source did not turn out to be down within ${formatDuration(EVIDENCE_WINDOW)}, so ${open.reason} ends it.`;
  return end(open, open.answer.onExhausted, nobody, 'verdict', text);
}

function judgeDeferral(open: Case, asked: Milliseconds | undefined): Decision {
  // The handler chose the delay, so there is no jitter.
  return asked === undefined ? deferByBackoff(open) : deferAsAsked(open, asked, unspread);
}

/** A lost task is charged only if it was a suspect already and ran alone: then nothing else can have ended its process. */
function judgeLoss(open: Case, { worker, how, verified }: Extract<Outcome, { kind: 'loss' }>): Decision {
  const { facts } = open;
  const charged = facts.lostInARow > 0 && how === 'alone';
  const charge: Charge = charged ? { to: 'recoveries' } : nobody;
  const gone =
    how === 'while_stopping'
      ? `Its worker ${worker} was told to stop, and ended before the task`
      : `Its worker ${worker} was lost`;
  if (mustNotRunTwice(open) && verified !== 'did_not_happen') {
    const text = `${gone}, and the task is not idempotent: its effect may have happened.`;
    return end(open, 'needs_manual', charge, 'ambiguous', text);
  }
  const recent = facts.recoveriesAgoMs.filter((ago) => ago < CRASH_WINDOW).length + (charged ? 1 : 0);
  const counted = { count: recent, limit: CRASH_LIMIT };
  if (charged && recent >= CRASH_LIMIT) {
    const text = `It was lost with its worker ${recent} times within 72 h while it ran alone.`;
    return end({ ...open, reason: 'worker.crash_loop' }, 'needs_manual', charge, 'crash_loop', text, counted);
  }
  if (neverAgain(open)) return noSecondExecution(open, gone, charge);

  const lostInARow = how === 'while_stopping' ? facts.lostInARow : facts.lostInARow + 1;
  const text = `${gone}${whatFollows(how, lostInARow, recent, charged)}`;
  return outOfBounds(open, 0, charge) ?? { ...again(open, 0, charge, 'recovery', text, counted), lostInARow };
}

function whatFollows(how: Loss, lostInARow: number, recoveries: number, charged: boolean): string {
  if (how === 'while_stopping') return '. Nothing is charged, and it is ready again at once.';
  if (charged) {
    return ` while it ran alone: recovery ${recoveries}, and the ${CRASH_LIMIT}th within 72 h needs a person.`;
  }
  if (lostInARow === 1)
    return '. Nothing is charged, but from now on it is a suspect: a worker runs few of those at a time.';
  return ` while others ran beside it. Nothing is charged, but it was lost ${lostInARow} times in a row, so it runs alone next.`;
}

/** The worker could not run it. Later it may, or another worker may. */
function deferForWorker(open: Case, { reason, retryAfterMs }: Failure): Decision {
  const deferred =
    retryAfterMs === undefined ? deferByBackoff(open) : deferAsAsked(open, retryAfterMs, open.answer.jitter);
  const text = `${reason} is the fault of the worker. ${deferred.because.text}`;
  return { ...deferred, because: { ...deferred.because, text } };
}

/** A deferral by the requested wait or more: at least a second, within the limits of the policy. */
function deferAsAsked(open: Case, asked: Milliseconds, jitter: Jitter): Decision {
  const wait = Math.max(asked, LEAST_DEFERRAL);
  const drawn = jitteredAbove(wait, jitter, open.roll);
  return defer(open, wait, drawn, `asked for ${formatDuration(asked)}`, asked);
}

/** A deferral without a requested delay: the backoff gives it, by the count of deferrals in a row. */
function deferByBackoff(open: Case, least = LEAST_DEFERRAL): Decision {
  const { answer, facts, roll } = open;
  const k = facts.deferralsInARow + 1;
  const backoff = ceiling(answer.backoff, k);
  const wait = Math.max(backoff, least);
  const raised = least > Math.max(backoff, LEAST_DEFERRAL);
  const drawn = raised ? jitteredAbove(least, answer.jitter, roll) : jittered(wait, answer.jitter, roll, least);
  const formula = raised ? 'an eighth of the time that it was deferred' : describeBackoff(answer.backoff);
  return defer(open, wait, drawn, `${formula}, deferral ${k}`);
}

/** The most that a rate limit without a hint waits because of the time that it has lasted. */
const LONGEST_WITHOUT_HINT: Milliseconds = 3_600_000;

/**
 * The longer a rate limit without a hint lasts, the less often it is tried, however short the backoff is: so `maxDeferredFor` ends
 * it after some fifty executions.
 */
function leastWithoutHint({ deferredForMs }: Facts): Milliseconds {
  return Math.max(LEAST_DEFERRAL, Math.min(Math.round(deferredForMs / 8), LONGEST_WITHOUT_HINT));
}

function defer(open: Case, wait: Milliseconds, drawn: Drawn, formula: string, asked = 0): Decision {
  const { facts, policy } = open;
  if (neverAgain(open)) return noSecondExecution(open, 'It was deferred', nobody);
  if (asked > policy.maxRetryAfter) return askedTooMuch(open, asked, nobody);

  const row = { count: facts.deferralsInARow + 1, limit: policy.maxDeferrals };
  if (row.count > row.limit) {
    const text = `It was deferred ${facts.deferralsInARow} times in a row, as often as maxDeferrals allows.`;
    return end(open, 'needs_manual', nobody, 'max_deferrals', text, row);
  }
  // Checked with the wait before jitter, so that chance does not decide whether a person is asked.
  if (facts.deferredForMs + wait > policy.maxDeferredFor) {
    const text = `Another deferral would exceed maxDeferredFor (${formatDuration(policy.maxDeferredFor)}).`;
    return end(open, 'needs_manual', nobody, 'max_deferred_for', text, row);
  }
  const after = drawn.delay;
  const text = `Deferred for ${formatDuration(after)}: ${formula}. Nothing is charged.`;
  const inputs = { count: row.count, limit: row.limit, formula, jitter: draw(drawn, open.roll) };
  return outOfBounds(open, after, nobody, inputs) ?? again(open, after, { to: 'deferrals' }, 'deferral', text, inputs);
}

function chargeAndRetry(open: Case, failure: Failure, charge: Charge): Decision {
  const { answer, facts, policy, roll } = open;
  const count = countedTogether(facts, policy, answer) + 1;
  const counted = { count, limit: answer.maxAttempts };
  const failed = `${failure.reason}: attempt ${count} of ${answer.maxAttempts} failed`;
  if (count >= answer.maxAttempts) {
    return end(open, answer.onExhausted, charge, 'max_attempts', `${failed}.`, counted);
  }
  if (neverAgain(open)) {
    const text = `${failed}, and its policy allows no second execution.`;
    return end(open, answer.onExhausted, charge, 'no_retry', text, counted);
  }
  const asked = failure.retryAfterMs ?? 0;
  if (asked > policy.maxRetryAfter) return askedTooMuch(open, asked, charge, counted);

  const adapted = answer.adaptive ? adaptedTo(open, failure, count) : undefined;
  const wait = ceiling(answer.backoff, adapted?.retry ?? count);
  const longer = asked > wait;
  const drawn = longer ? jitteredAbove(asked, answer.jitter, roll) : jittered(wait, answer.jitter, roll, asked);
  const byPolicy = `${describeBackoff(answer.backoff)}, retry ${count}${adapted ? `, ${adapted.words}` : ''}`;
  const formula = longer ? `asked for ${formatDuration(asked)}` : byPolicy;
  const text = `${failed}; next attempt in ${formatDuration(drawn.delay)} (${formula}).`;
  const inputs = { count, limit: answer.maxAttempts, formula, jitter: draw(drawn, roll) };
  return outOfBounds(open, drawn.delay, charge, inputs) ?? again(open, drawn.delay, charge, 'retry', text, inputs);
}

function adaptedTo({ answer, facts, roll }: Case, { reason }: Failure, count: number) {
  const { backoff, maxAttempts } = answer;
  const waited = waitedFor(facts.charged, reason);
  const next = { backoff, count, left: maxAttempts - count, waited, observed: facts.observed ?? [] };
  return adaptedRetry(next, roll);
}

/** Charges that share a limit under today's policy, whichever policy was in force when they were made. */
function countedTogether(facts: Facts, policy: Policy, answer: Answer): number {
  return facts.charged
    .filter(({ reason, kind }) => answerFor(policy, reason, kind).limitedBy === answer.limitedBy)
    .reduce((sum, { count }) => sum + count, 0);
}

function mustNotRunTwice({ facts, policy }: Pick<Case, 'facts' | 'policy'>): boolean {
  return !facts.idempotent && !policy.retryAmbiguous;
}

function neverAgain({ answer }: Case): boolean {
  return answer.backoff.kind === 'none';
}

/** Nobody is at fault, so no limit was reached, but the policy allows no retry either. */
function noSecondExecution(open: Case, what: string, charge: Charge): Decision {
  return end(open, 'needs_manual', charge, 'no_retry', `${what}, and its policy allows no second execution.`);
}

function askedTooMuch(open: Case, asked: Milliseconds, charge: Charge, counted: Partial<Because> = {}): Decision {
  const text = `It was asked to wait ${formatDuration(asked)}, longer than maxRetryAfter (${formatDuration(open.policy.maxRetryAfter)}).`;
  return end(open, 'needs_manual', charge, 'max_retry_after', text, counted);
}

/** The last limits: executions with any outcome, the give-up time, the sum of delays, and the deadline. */
function outOfBounds(
  open: Case,
  after: Milliseconds,
  charge: Charge,
  inputs: Partial<Because> = {},
): Decision | undefined {
  const { answer, facts, policy } = open;
  if (facts.executions >= policy.maxExecutions) {
    const text = `It was executed ${facts.executions} times, as often as maxExecutions allows.`;
    const counted = { count: facts.executions, limit: policy.maxExecutions };
    return end(open, 'needs_manual', charge, 'max_executions', text, { ...inputs, ...counted });
  }
  // The give-up time counts only for a task to which a failure was charged, and not while its source is down.
  const failed = charge.to === 'task' || (charge.to !== 'source' && facts.charged.length > 0);
  if (failed && policy.giveUpAfter !== 'none' && facts.sinceFirstStartMs + after > policy.giveUpAfter) {
    const text = `Its next attempt would come later than giveUpAfter (${formatDuration(policy.giveUpAfter)}) after its first start.`;
    return end(open, answer.onExhausted, charge, 'give_up_after', text, inputs);
  }
  if (
    charge.to === 'task' &&
    policy.maxTotalDelay !== 'none' &&
    waitedFor(facts.charged) + after > policy.maxTotalDelay
  ) {
    const [next, all] = [after, waitedFor(facts.charged) + after].map(formatDuration);
    const text = `Its next wait (${next}) would make ${all} in all, more than maxTotalDelay (${formatDuration(policy.maxTotalDelay)}).`;
    return end(open, answer.onExhausted, charge, 'max_total_delay', text, inputs);
  }
  if (facts.untilDeadlineMs !== undefined && after >= facts.untilDeadlineMs) {
    const text = 'Its next attempt would come after its deadline.';
    return end(open, answer.onExhausted, charge, 'deadline', text, inputs);
  }
  return undefined;
}

/** The sum of the waits after charged failures: all, or those for one reason. */
export function waitedFor(charged: readonly Charged[], reason?: string): Milliseconds {
  return charged.reduce((sum, one) => sum + ((reason ?? one.reason) === one.reason ? (one.delayMs ?? 0) : 0), 0);
}

function again(
  open: Case,
  after: Milliseconds,
  charge: Charge,
  step: Step,
  text: string,
  more?: Partial<Because>,
): Extract<Decision, { next: 'scheduled' }> {
  return {
    next: 'scheduled',
    after,
    reason: open.reason,
    charge,
    lostInARow: 0,
    because: because(open, step, text, more),
  };
}

function end(open: Case, next: End, charge: Charge, step: Step, text: string, more?: Partial<Because>): Decision {
  return { next, reason: open.reason, charge, because: because(open, step, text, more) };
}

function because(open: Case, step: Step, text: string, more?: Partial<Because>): Because {
  const { rule } = open.answer;
  const made: Writable<Because> = { step, rule, policyVersion: open.policy.version, text };
  if (more?.count !== undefined) made.count = more.count;
  if (more?.limit !== undefined) made.limit = more.limit;
  if (more?.formula !== undefined) made.formula = more.formula;
  if (more?.jitter !== undefined) made.jitter = more.jitter;
  return made;
}

function draw({ low, high, density }: Drawn, roll: Roll): NonNullable<Because['jitter']> {
  return density === undefined ? { low, high, roll } : { low, high, roll, density };
}

/** A verdict is about the last failure that was charged with its reason. */
function kindOf(facts: Facts, outcome: Outcome): FailureKind | undefined {
  if (outcome.kind === 'failure') return outcome.failure.kind;
  return outcome.kind === 'verdict' ? facts.charged.find(({ reason }) => reason === outcome.reason)?.kind : undefined;
}

function reasonOf(outcome: Outcome): string {
  switch (outcome.kind) {
    case 'success':
      return 'success';
    case 'failure':
      return outcome.failure.reason;
    case 'deferral':
      return outcome.reason;
    case 'interruption':
      return 'worker.interrupted';
    case 'loss':
      return 'worker.lost';
    case 'expiry':
      return 'deadline.passed';
    case 'verdict':
      return outcome.reason;
  }
}
