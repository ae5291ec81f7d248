import type { Decision } from '../failure/decide.ts';
import { type ForeseenRetry, failureOf, scheduleOf } from '../failure/foresee.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import type { Failure } from '../failure/outcome.ts';
import { type Answer, answerFor, definePolicy, type Policy } from '../failure/policy.ts';
import { plainValue, rulesOf, valueJson } from '../views/policy-text.ts';

/** A policy in a list: its own numbers, and those of each of its rules. */
export function policyJson({
  kind,
  name,
  policy,
}: {
  readonly kind: string;
  readonly name: string;
  readonly policy: Policy;
}): object {
  const { version, permanent } = policy;
  const rules = rulesOf(policy).map(({ name: rule, answer }) => ({
    name: rule,
    ...numbers(answer),
    charge: answer.charge,
  }));
  return { name, kind, version, ...numbers(policy), permanent, rules };
}

function numbers({ maxAttempts, backoff, jitter, onExhausted }: Policy | Answer): object {
  return { max_attempts: maxAttempts, backoff: plainValue(backoff), jitter, on_exhausted: onExhausted };
}

/** The content of `holdfast policies show --json`: each value, and who said it. */
export function shownPolicyContent({
  kind,
  name,
  policy,
  values,
}: ExplainedPolicy & { readonly kind: string; readonly name: string }): object {
  return { name, kind, version: policy.version, values: values.map(valueJson) };
}

/** Every delay of a policy, and what ends it. */
export interface Delays {
  /** The policy that was asked. */
  readonly asked: Policy;
  readonly failure: Failure;
  readonly answer: Answer;
  readonly retries: readonly ForeseenRetry[];
  readonly end: Decision | undefined;
}

/** For failures of one reason, family or kind; without one, of the policy itself, without its rules. Executions take no time. */
export function delaysOf(policy: Policy, reason: string | undefined): Delays {
  const asked = reason === undefined ? definePolicy({ ...policy, rules: {} }) : policy;
  const failure = failureOf(reason ?? 'unknown', {
    ambiguous: false,
    ...(reason === undefined && { kind: 'transient' }),
  });
  const { retries, end } = scheduleOf(asked, { kind: 'failure', failure });
  return { asked, failure, answer: answerFor(asked, failure.reason, failure.kind), retries, end };
}

export function delaysJson({ answer: { rule, maxAttempts }, retries, end }: Delays): object {
  return {
    rule,
    max_attempts: maxAttempts,
    // biome-ignore lint/suspicious/noThenProperty: a word of the contract, in what is only printed
    then: end?.next ?? null,
    because: end ? endWords(end) : null,
    delays: retries.map(({ retry, nominal, low, high, cumulative, charge }) => ({
      retry,
      delay_ms: nominal,
      min_ms: low,
      max_ms: high,
      cumulative_ms: cumulative,
      charge,
    })),
  };
}

/** Without the reason `unknown`, which stands for any reason here. */
export function endWords({ because }: Decision): string {
  return because.text.replace(/^unknown: /, '');
}
