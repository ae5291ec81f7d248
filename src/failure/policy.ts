import { createHash } from 'node:crypto';
import { isRecord } from '../options.ts';
import { type Backoff, changedBackoff } from './backoff.ts';
import { familyOf } from './classify/reasons.ts';
import type { Jitter } from './jitter.ts';
import { slipIn } from './known-reasons.ts';
import { type End, type FailureKind, isFamily, isKind } from './outcome.ts';
import {
  POLICY_FIELDS,
  type Policy,
  type PolicyContent,
  type PolicyOptions,
  type ReadOptions,
  type ReadRule,
  type WholePolicy,
} from './policy-fields.ts';
import { optionsGiven, parseOptions } from './policy-options.ts';
import { refusal } from './refusal.ts';

export type { Policy, PolicyOptions, ReadOptions, RuleOptions, SourceSwitches, WholePolicy } from './policy-fields.ts';

/** The library's default: 5 attempts, 1 s doubling up to 5 min, ±10 %; permanent failures stop, rate limits charge nobody. */
export const standard: Policy = settled(
  Object.fromEntries(
    Object.entries(POLICY_FIELDS).map(([name, { byDefault }]) => [name, byDefault]),
  ) as unknown as PolicyContent,
);

/**
 * A policy with these options; the other values come from `base` (default `standard`). Rules are combined; a rule replaces the
 * rule of the same name. A schedule without `maxAttempts` uses each of its delays once. Options that are, or were spread from, a
 * whole policy use only their own rules: `definePolicy({ ...presets.worker, maxAttempts: 3 })`.
 * @throws InvalidInputError naming the option and the value that is refused, or a rule whose name is misspelt.
 */
export function definePolicy(options: PolicyOptions | WholePolicy = {}, over: Policy = standard): Policy {
  return policyOver(readPolicy(options), over);
}

/** The options of a policy that code gave, read. @throws InvalidInputError as `definePolicy`. */
export function readPolicy(options: PolicyOptions | WholePolicy): ReadOptions {
  const read = optionsGiven(options);
  for (const name of Object.keys(read.rules ?? {})) {
    const slip = slipIn(name, 'rule');
    if (slip !== undefined) throw refusal(slip);
  }
  return read;
}

/** As `definePolicy`, for options that were read or stored: a rule with a misspelt name is kept, and a number is milliseconds. */
export function policyOver(options: ReadOptions | PolicyOptions, over: Policy): Policy {
  const given = parseOptions(options);
  const whole = 'version' in options;
  const byLength = given.backoff?.kind === 'schedule' ? { maxAttempts: given.backoff.delays.length + 1 } : {};
  const backoff = wholeBackoff(given.backoff, over.backoff);
  const rules = rulesOver(given.rules, whole ? {} : over.rules, backoff);
  return settled({ ...over, ...byLength, ...given, backoff, rules, source: { ...over.source, ...given.source } });
}

/** The rules of both. A backoff that is only changed is that of the same rule, else of its family, else of the policy. */
function rulesOver(given: ReadOptions['rules'], over: Policy['rules'], ofPolicy: Backoff): Policy['rules'] {
  const rules: Record<string, ReadRule> = { ...over, ...given };
  const ownBackoff = (name: string) => (Object.hasOwn(over, name) ? over[name]?.backoff : undefined);
  // Families first: their rules change too.
  for (const name of Object.keys(given ?? {}).sort((a, b) => Number(isFamily(b)) - Number(isFamily(a)))) {
    const { backoff, ...rule } = rules[name] as ReadRule;
    if (backoff?.kind !== 'change') continue;
    const ofFamily = isFamily(name) ? undefined : (rules[familyOf(name)]?.backoff as Backoff | undefined);
    const below = ownBackoff(name) ?? ofFamily ?? ofPolicy;
    rules[name] = { ...rule, backoff: changedBackoff(below, backoff) };
  }
  return rules as Policy['rules'];
}

function wholeBackoff(backoff: ReadOptions['backoff'], below: Backoff): Backoff {
  return backoff?.kind === 'change' ? changedBackoff(below, backoff) : (backoff ?? below);
}

/** The values of a policy for one failure, each from the most specific rule that has it, and how its charges are counted. */
export interface Answer {
  /** The most specific rule that matched, or `policy`. */
  readonly rule: string;
  readonly namesReason: boolean;
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly adaptive: boolean;
  readonly jitter: Jitter;
  readonly onExhausted: End;
  readonly charge: boolean;
  /** The rule that gave `maxAttempts`. Charges under this rule count together. */
  readonly limitedBy: string;
}

/** A policy's answer to an outcome with this reason. An outcome that is not a failure has no kind, so no rule for a kind applies. */
export function answerFor(policy: Policy, reason: string, kind?: FailureKind): Answer {
  // Policies do not change, and most failures have one of a few reasons. So answers are cached per policy, and the last one apart.
  if (last?.policy === policy && last.reason === reason && last.kind === kind) return last.answer;
  let known = answers.get(policy);
  if (!known || known.size >= MOST_ANSWERS_KNOWN) {
    known = new Map();
    answers.set(policy, known);
  }
  const name = `${kind ?? ''} ${reason}`;
  let answer = known.get(name);
  if (!answer) {
    answer = findAnswer(policy, reason, kind);
    known.set(name, answer);
  }
  last = { policy, reason, kind, answer };
  return answer;
}

const answers = new WeakMap<Policy, Map<string, Answer>>();
const MOST_ANSWERS_KNOWN = 500;

/** What was asked last: a failure is asked for its answer several times. */
let last:
  | {
      readonly policy: Policy;
      readonly reason: string;
      readonly kind: FailureKind | undefined;
      readonly answer: Answer;
    }
  | undefined;

function findAnswer(policy: Policy, reason: string, kind: FailureKind | undefined): Answer {
  const answer = {
    rule: 'policy',
    namesReason: false,
    maxAttempts: policy.maxAttempts,
    backoff: policy.backoff,
    adaptive: policy.adaptive,
    jitter: policy.jitter,
    onExhausted: policy.onExhausted,
    charge: true,
    limitedBy: 'policy',
  };
  for (const name of rulesFor(reason, kind)) {
    const rule = Object.hasOwn(policy.rules, name) ? policy.rules[name] : undefined;
    if (!rule) continue;
    Object.assign(answer, rule, { rule: name, namesReason: name === reason && !isKind(name) });
    if (rule.maxAttempts !== undefined) answer.limitedBy = name;
  }
  return answer;
}

/** The names of the rules that can apply, from the least specific to the most specific. */
function rulesFor(reason: string, kind: FailureKind | undefined): string[] {
  return [...(kind ? [kind] : []), familyOf(reason), ...(isKind(reason) ? [] : [reason])];
}

/** All tasks of a type share its policy, so it is frozen: a change would not change its version. */
function settled(values: PolicyContent): Policy {
  const { version: _, ...content } = values as Policy;
  return frozen({ ...content, version: hash(content) });
}

function frozen<T extends object>(value: T): T {
  for (const member of Object.values(value)) {
    if (typeof member === 'object' && member !== null) frozen(member);
  }
  return Object.freeze(value);
}

/**
 * The first 12 hex digits of the SHA-256 of the content with sorted keys: the same numbers have the same version
 * everywhere. A custom backoff counts by its name, because two processes cannot compare functions.
 */
function hash(content: object): string {
  const text = JSON.stringify(content, (_, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
