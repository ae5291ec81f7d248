import { formatDuration, type Milliseconds } from '../duration.ts';
import type { Decision, Facts } from '../failure/decide.ts';
import { foresee } from '../failure/foresee.ts';
import { describeOrigin, type ExplainedPolicy, type Origin } from '../failure/layers.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import { type Answer, answerFor, type Policy } from '../failure/policy.ts';

/** What would happen after an outcome of an execution, and why. */
export interface ExplainedFailure {
  /** Its classification; absent if it is no failure, such as "later". */
  readonly failure?: Failure;
  readonly outcome: Outcome['kind'];
  /** The rule that would apply, and where it was set. */
  readonly rule: string;
  readonly from: Origin;
  /** The decision by the present policy, but with its delay before jitter. */
  readonly decision: Decision;
  /** The bounds of the delay with jitter. */
  readonly delay?: { readonly nominal: Milliseconds; readonly low: Milliseconds; readonly high: Milliseconds };
  /** What ends a task that always fails like this. */
  readonly ends: readonly string[];
  /** Everything as text for people: lines with labels. Texts of the error are unchanged. */
  readonly text: string;
}

/** Uses the same `decide` as workers. */
export function explainFailure(facts: Facts, outcome: Outcome, explained: ExplainedPolicy): ExplainedFailure {
  const { policy } = explained;
  const failure = outcome.kind === 'failure' ? outcome.failure : undefined;
  const { decision, delay } = foresee(facts, outcome, policy);
  const answer = answerFor(policy, reasonOf(decision, outcome), failure?.kind);
  const from = originOf(explained, answer);
  const ends = endsOf(policy, answer, decision, facts);
  const made = {
    outcome: outcome.kind,
    rule: answer.rule,
    from,
    decision,
    ends,
    ...(failure && { failure }),
    ...(delay && { delay }),
  };
  return { ...made, text: textOf(made, answer) };
}

function reasonOf(decision: Decision, outcome: Outcome): string {
  if (outcome.kind === 'failure') return outcome.failure.reason;
  return decision.next === 'succeeded' ? 'success' : decision.reason;
}

/** Where the rule was set; for the policy itself, where its backoff was set. */
function originOf({ values }: ExplainedPolicy, { rule }: Answer): Origin {
  const inRule = values.find(({ path }) => path[0] === 'rules' && path[1] === rule);
  const found = inRule ?? values.find(({ path }) => path[0] === 'backoff');
  return found?.from ?? { level: 'default', by: 'standard' };
}

function endsOf(policy: Policy, answer: Answer, decision: Decision, facts: Facts): string[] {
  const deferred = 'charge' in decision && decision.charge.to === 'deferrals';
  const counted = answer.limitedBy === 'policy' ? '' : ` under ${answer.limitedBy}`;
  if (decision.because.step === 'awaits_verdict') return ['unless its source turns out to be down'];
  if ('charge' in decision && decision.charge.to === 'source')
    return ['not while its source is down or needs a person'];
  return [
    deferred
      ? `after ${policy.maxDeferrals} deferrals in a row or ${formatDuration(policy.maxDeferredFor)}: needs_manual`
      : `after ${attempts(answer.maxAttempts)}${counted}: ${answer.onExhausted}`,
    ...(policy.giveUpAfter === 'none'
      ? []
      : [`${formatDuration(policy.giveUpAfter)} after its first start: ${answer.onExhausted}`]),
    ...(policy.maxTotalDelay === 'none'
      ? []
      : [`before its waits exceed ${formatDuration(policy.maxTotalDelay)} in all: ${answer.onExhausted}`]),
    ...(facts.untilDeadlineMs === undefined
      ? []
      : [`at its deadline, ${inWords(facts.untilDeadlineMs)}: ${answer.onExhausted}`]),
  ];
}

function attempts(count: number): string {
  return count === 1 ? 'one attempt' : `${count} attempts`;
}

function inWords(ms: Milliseconds): string {
  return ms > 0 ? `in ${formatDuration(ms)}` : 'which has passed';
}

function textOf(made: Omit<ExplainedFailure, 'text'>, answer: Answer): string {
  const { failure, rule, from, decision, ends } = made;
  const rows = [
    ...(failure ? [['failure', failureWords(failure)]] : [['outcome', made.outcome]]),
    ['rule', `${rule === 'policy' ? 'the policy itself' : rule} (${describeOrigin(from)})`],
    ['count', countWords(decision, answer)],
    ['then', thenWords(made)],
    ...(decision.next === 'scheduled' ? [['ends', ends.join('; ')]] : []),
  ] as const;
  return rows.map(([label = '', words = '']) => `${label.padEnd(8)} ${words}`).join('\n');
}

function failureWords({ reason, kind, fault, ambiguous, evidence }: Failure): string {
  const read = evidence.field === undefined ? '' : `, read in ${evidence.field}`;
  const unsure = ambiguous ? '; its effect may have happened' : '';
  return `${reason} (${kind}, fault of the ${fault}${unsure}) by ${evidence.rule}${read}`;
}

function countWords(decision: Decision, { limitedBy, maxAttempts }: Answer): string {
  const { count, limit, step } = decision.because;
  const charged = 'charge' in decision ? decision.charge.to : 'nobody';
  const where = limitedBy === 'policy' ? '' : `, counted under ${limitedBy}`;
  if (charged === 'task' && step !== 'max_executions') {
    return `${count === undefined ? 'counted' : `${count} of ${limit ?? maxAttempts}`}${where}`;
  }
  if (charged === 'deferrals') return `not counted; deferral ${count} of at most ${limit} in a row`;
  if (charged === 'source') return 'not counted: its source is down or needs a person';
  return charged === 'recoveries' ? `recovery ${count} of ${limit}` : 'not counted';
}

function thenWords({ decision, delay }: Omit<ExplainedFailure, 'text'>): string {
  const { formula, text } = decision.because;
  if (decision.next !== 'scheduled' || !delay) return `${decision.next}: ${text}`;
  if (decision.because.step === 'source_down' || decision.because.step === 'awaits_verdict') return text;
  if (delay.nominal === 0 && delay.high === 0) return `again at once. ${formula === undefined ? text : formula}`;
  const how = formula === undefined ? '' : ` (${formula})`;
  const drawn =
    delay.low === delay.high
      ? ', no jitter'
      : `, random wait from ${formatDuration(delay.low)} to ${formatDuration(delay.high)}`;
  return `again after ${formatDuration(delay.nominal)}${how}${drawn}`;
}
