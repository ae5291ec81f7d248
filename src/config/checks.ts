import { formatDuration, type Milliseconds } from '../duration.ts';
import { type Backoff, ceiling, hasOneDelay } from '../failure/backoff.ts';
import { type Jitter, jittered } from '../failure/jitter.ts';
import { isKind } from '../failure/outcome.ts';
import type { Policy, RuleOptions } from '../failure/policy.ts';
import type { Located, Problems } from './problems.ts';
import { membersOf, type RetryBlock } from './retry.ts';
import type { Node } from './source.ts';

/*
 * Finds values that are valid but make no sense. A block is checked only for its own values; values from elsewhere are checked
 * there. A mistake that contradicts another value is an error; a value without effect is a warning.
 */

/** Checks one block. `policy` is what its tasks would get. */
export function checkBlock({ node, options }: RetryBlock, policy: Policy, problems: Problems): void {
  const rulesNode = memberOf(node, 'rules')?.value;
  checkNumbers({ node, said: options, whole: policy, jitter: policy.jitter, limits: policy }, problems);
  for (const [name, rule] of Object.entries(options.rules ?? {})) {
    const ruleNode = rulesNode && memberOf(rulesNode, name)?.value;
    if (!ruleNode) continue;
    const numbers = { ...policy, ...(policy.rules[name] ?? {}) };
    checkNumbers({ node: ruleNode, said: rule, whole: numbers, jitter: numbers.jitter, limits: policy }, problems);
    checkKind(name, rule, policy, ruleNode, problems);
  }
  if (options.adaptive === true && hasOneDelay(policy.backoff)) {
    problems.warn(
      memberOf(node, 'adaptive')?.value ?? node,
      'adaptive has no effect: it chooses among longer delays of the backoff, and all are the same.',
      'Write an exponential or linear backoff, or a schedule.',
    );
  }
  if (options.maxExecutions !== undefined && options.maxExecutions < policy.maxAttempts) {
    problems.warn(
      memberOf(node, 'maxExecutions')?.value ?? node,
      `maxExecutions ${options.maxExecutions} ends a task before its ${policy.maxAttempts} attempts are used.`,
      `Write maxExecutions: ${policy.maxAttempts} or more.`,
    );
  }
  if (options.maxRetryAfter !== undefined && policy.maxRetryAfter > policy.maxDeferredFor) {
    problems.warn(
      memberOf(node, 'maxRetryAfter')?.value ?? node,
      `A wait of more than maxDeferredFor (${formatDuration(policy.maxDeferredFor)}) still needs a person.`,
      'Raise maxDeferredFor too.',
    );
  }
}

interface Numbers {
  readonly node: Node;
  /** The block's own values. */
  readonly said: RuleOptions;
  /** Its values together with those from elsewhere. */
  readonly whole: { readonly maxAttempts: number; readonly backoff: Backoff };
  readonly jitter: Jitter;
  readonly limits: Pick<Policy, (typeof LIMITS)[number]>;
}

function checkNumbers(numbers: Numbers, problems: Problems): void {
  const { node, said, whole } = numbers;
  const saysBackoff = said.backoff !== undefined;
  const saysAttempts = said.maxAttempts !== undefined;
  if (!saysBackoff && !saysAttempts) {
    checkLimits(
      LIMITS.filter((limit) => memberOf(node, limit)),
      numbers,
      problems,
    );
    return;
  }
  const { backoff, maxAttempts } = whole;
  const attemptsAt = memberOf(node, 'maxAttempts')?.value ?? memberOf(node, 'backoff')?.value ?? node;
  if (backoff.kind === 'none') {
    if (saysAttempts && maxAttempts > 1) {
      problems.warn(attemptsAt, `maxAttempts ${maxAttempts} has no effect: the backoff none allows no retry.`);
    }
    return;
  }
  if (maxAttempts === 1) {
    if (saysBackoff && saysAttempts && backoff.kind !== 'immediate') {
      problems.warn(
        memberOf(node, 'backoff')?.at ?? node,
        'No delay is ever used: maxAttempts 1 allows only the first attempt.',
        'Raise maxAttempts, or leave backoff out.',
      );
    }
    return;
  }
  if (backoff.kind === 'schedule')
    checkSchedule(backoff.delays, maxAttempts, saysBackoff && saysAttempts, attemptsAt, problems);
  if (backoff.kind === 'exponential' && saysBackoff && saysAttempts) checkCap(backoff, maxAttempts, node, problems);
  checkLimits(LIMITS, numbers, problems);
}

/** Three delays with three attempts: the first attempt counts, so the third delay would never be used. */
function checkSchedule(
  delays: readonly Milliseconds[],
  maxAttempts: number,
  together: boolean,
  at: Located,
  problems: Problems,
): void {
  const unused = delays.slice(maxAttempts - 1);
  if (unused.length === 0) return;
  const retries = maxAttempts - 1;
  const message =
    `The ${unused.length === 1 ? 'delay' : 'delays'} ${unused.map(formatDuration).join(', ')} ${unused.length === 1 ? 'is' : 'are'} never used: ` +
    `maxAttempts ${maxAttempts} is the first attempt and ${retries === 1 ? '1 retry' : `${retries} retries`}, and the schedule has ${delays.length} delays.`;
  const suggestion = `Write maxAttempts: ${delays.length + 1}.`;
  if (together) problems.refuse(at, message, suggestion);
  else problems.warn(at, message, suggestion);
}

function checkCap(
  backoff: Extract<Backoff, { kind: 'exponential' }>,
  maxAttempts: number,
  node: Node,
  problems: Problems,
): void {
  const cap = memberOf(memberOf(memberOf(node, 'backoff')?.value, 'exponential')?.value, 'cap');
  const longest = ceiling(backoff, maxAttempts - 1);
  if (!cap || longest >= backoff.cap) return;
  problems.warn(
    cap.value,
    `cap ${formatDuration(backoff.cap)} is never reached: the last of ${maxAttempts - 1} retries waits ${formatDuration(longest)}.`,
  );
}

/** The limits for delays. */
const LIMITS = ['giveUpAfter', 'maxTotalDelay'] as const;

function checkLimits(names: readonly (typeof LIMITS)[number][], numbers: Numbers, problems: Problems): void {
  for (const name of names) checkLimit(name, numbers, problems);
}

/** Delays at their shortest that do not fit into a limit. */
function checkLimit(
  name: (typeof LIMITS)[number],
  { node, whole: { backoff, maxAttempts }, jitter, limits }: Numbers,
  problems: Problems,
): void {
  const most = limits[name];
  if (most === 'none' || backoff.kind === 'none' || maxAttempts === 1) return;
  const retries = Math.min(maxAttempts - 1, MOST_RETRIES_SUMMED);
  let [passed, fitting] = [0, 0];
  for (; fitting < retries; fitting++) {
    passed += jittered(ceiling(backoff, fitting + 1), jitter, 0).low;
    if (passed > most) break;
  }
  if (fitting === retries) return;
  const at =
    memberOf(node, name)?.value ?? memberOf(node, 'maxAttempts')?.value ?? memberOf(node, 'backoff')?.value ?? node;
  const limit = `${name} ${formatDuration(most)}`;
  if (fitting === 0) {
    const first = formatDuration(ceiling(backoff, 1));
    problems.refuse(
      at,
      `No retry fits into ${limit}: the first one waits ${first}.`,
      `Raise ${name}, or shorten the first delay.`,
    );
    return;
  }
  problems.warn(
    at,
    `Only ${fitting} of ${maxAttempts - 1} retries fit into ${limit}.`,
    `Raise ${name}, or write maxAttempts: ${fitting + 1}.`,
  );
}

/** The default of `maxExecutions`. */
const MOST_RETRIES_SUMMED = 1_000;

function checkKind(name: string, rule: RuleOptions, policy: Policy, at: Node, problems: Problems): void {
  if (
    name === 'permanent' &&
    policy.permanent === 'stop' &&
    (rule.backoff ?? rule.jitter ?? rule.maxAttempts) !== undefined
  ) {
    problems.warn(
      at,
      'Permanent failures stop at once, so the numbers of this rule have no effect.',
      'Write permanent: retry next to `rules`, or name the reasons that should be retried.',
    );
  }
  if (rule.charge !== undefined && isKind(name) && name !== 'rate_limited') {
    problems.warn(
      memberOf(at, 'charge')?.at ?? at,
      `charge applies only to rate limits, and ${name} is not one.`,
      'Write it in the rule rate_limited.',
    );
  }
}

function memberOf(node: Node | undefined, name: string) {
  return node && membersOf(node).find((entry) => entry.name === name);
}
