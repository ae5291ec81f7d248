import type { DurationInput, Milliseconds } from '../duration.ts';
import { type Backoff, type BackoffChange, type BackoffInput, exponential } from './backoff.ts';
import { type Jitter, type JitterInput, proportional } from './jitter.ts';
import { ENDS, type End } from './outcome.ts';

/*
 * Every option of a policy, described once. This table gives the types, the readers of options in code and in files, the printer,
 * the JSON Schema, the policy `standard` and the table in docs/guides/policies.md. Editors show an option's comment in code. It begins
 * with the sentence that they show in a file.
 */

/** What an option may be. */
export type Shape =
  | { readonly kind: 'whole'; readonly least: number }
  | { readonly kind: 'span' }
  /** A span that the word `none` turns off. */
  | { readonly kind: 'limit'; readonly least: Milliseconds }
  | { readonly kind: 'choice'; readonly of: readonly string[] }
  | { readonly kind: 'flag' | 'backoff' | 'jitter' | 'rules' }
  /** Named flags. One that is left out keeps its value from less specific levels. */
  | { readonly kind: 'flags'; readonly of: Readonly<Record<string, string>> };

/** One option. `Given` is its type in code, `Kept` its type in a policy. */
export interface Field<Given, Kept = Given> {
  readonly shape: Shape;
  readonly says: string;
  /** The value if no level sets it. */
  readonly byDefault: Kept;
  /** As in a file. */
  readonly examples?: readonly unknown[];
  /** Only for the types. No field has a value here. */
  readonly given?: Given;
}

const HOUR: Milliseconds = 3_600_000;

/** The options of a rule, for the failures that it names. An option that it leaves out comes from the next less specific rule. */
export const RULE_FIELDS = {
  /** Charged executions, the first included: 4 is one attempt and three retries. A rule's own limit counts only the failures that it governs. */
  maxAttempts: whole(1, 5, 'Charged executions, the first included: 4 is one attempt and three retries.', [4]),
  /** How long each retry waits, before jitter. Default 1 s, doubling up to 5 min. */
  backoff: field<BackoffInput, Backoff>({
    shape: { kind: 'backoff' },
    says: 'How long each retry waits, before jitter.',
    byDefault: exponential({ base: '1s', cap: '5m' }),
    examples: [{ exponential: { base: '5s', cap: '1h' } }],
  }),
  /** `true`: retries begin with a longer delay of the backoff where retries for the same reason at the same source seldom succeed sooner. Default false. */
  adaptive: flag(
    false,
    '`true`: retries begin with a longer delay of the backoff where retries for the same reason at the same source seldom succeed sooner.',
  ),
  /** How delays are spread, so that tasks that failed together are not retried together. Default ±10 %. */
  jitter: field<JitterInput, Jitter>({
    shape: { kind: 'jitter' },
    says: 'How delays are spread, so that tasks that failed together are not retried together.',
    byDefault: proportional(0.1),
    examples: ['full', '20%'],
  }),
  /** Where the policy's end leads, whether by a limit or by a permanent failure. Default `dead`. */
  onExhausted: choice<End>(ENDS, 'dead', "Where the policy's end leads, whether by a limit or by a permanent failure."),
  /** `false`: a rate limit without a hint is a deferral and charges nobody. Only for rate limits. Default true. */
  charge: flag(true, '`false`: a rate limit without a hint is a deferral and charges nobody. Only for rate limits.'),
};

/** The options of a rule. */
export interface RuleOptions extends GivenTo<typeof RULE_FIELDS> {}

/** A rule of a policy. */
export type Rule = Partial<KeptOf<typeof RULE_FIELDS>>;

/** A rule after it was read. */
export type ReadRule = Read<Rule>;

/** Options that may have only some options of a backoff. */
type Read<Options> = Omit<Options, 'backoff'> & { readonly backoff?: Backoff | BackoffChange };

const { maxAttempts, backoff, adaptive, jitter, onExhausted } = RULE_FIELDS;

/** What the memory of its source may do with a task, and the description of each. */
const SOURCE_SWITCHES = {
  gate: 'A Retry-After holds all tasks of the source until then.',
  breaker:
    'While the source is down its tasks are held, and nobody is charged. It is probed, and then its work is released slowly.',
  budget: 'A retry after a failure of the source waits while the source has no token for it.',
} as const;

/** Which of these are on. */
export type SourceSwitches = Readonly<Record<keyof typeof SOURCE_SWITCHES, boolean>>;

export const POLICY_FIELDS = {
  /** Charged executions, the first included: 4 is one attempt and three retries. Default 5. */
  maxAttempts,
  /** How long each retry waits, before jitter. Default 1 s, doubling up to 5 min. */
  backoff,
  /** `true`: retries begin with a longer delay of the backoff where retries for the same reason at the same source seldom succeed sooner. Default false. */
  adaptive,
  /** How delays are spread, so that tasks that failed together are not retried together. Default ±10 %. */
  jitter,
  /** `stop` ends a permanent failure at once; `retry` treats it like any other. Default `stop`. */
  permanent: choice(
    ['stop', 'retry'],
    'stop',
    '`stop` ends a permanent failure at once; `retry` treats it like any other.',
  ),
  /** Where the policy's end leads, whether by a limit or by a permanent failure. Default `dead`. */
  onExhausted,
  /** Other values for a reason (`fs.locked`), a family (`fs.*`) or a kind (`transient`). The most specific rule wins. */
  rules: field<Readonly<Record<string, RuleOptions>>, Readonly<Record<string, Rule>>>({
    shape: { kind: 'rules' },
    says: 'Other values for a reason (`fs.locked`), a family (`fs.*`) or a kind (`transient`). The most specific rule wins.',
    byDefault: { rate_limited: { charge: false } },
    examples: [{ rate_limited: { backoff: { fixed: '10m' } } }],
  }),
  /** How many deferrals in a row are allowed before a person is asked. Default 100. */
  maxDeferrals: whole(0, 100, 'How many deferrals in a row are allowed before a person is asked.'),
  /** How long deferrals in a row may delay a task before a person is asked. Default 24 h. */
  maxDeferredFor: span(24 * HOUR, 'How long deferrals in a row may delay a task before a person is asked.'),
  /** A longer Retry-After goes to `needs_manual`. Default 24 h. */
  maxRetryAfter: span(24 * HOUR, 'A longer Retry-After goes to `needs_manual`.'),
  /** No execution starts later than this after the first one. Default `none`. */
  giveUpAfter: limit(0, 'none', 'No execution starts later than this after the first one.'),
  /** The sum of the waits after charged failures. A task whose next wait would exceed it ends. Default `none`. */
  maxTotalDelay: limit(
    0,
    'none',
    'The sum of the waits after charged failures. A task whose next wait would exceed it ends.',
  ),
  /** How long one execution may run since its start or its last heartbeat. Default 1 h; `none` removes the limit. */
  timeout: limit(1, HOUR, 'How long one execution may run since its start or its last heartbeat.'),
  /** The limit for executions with any outcome. After it a person is asked. Default 1,000. */
  maxExecutions: whole(1, 1_000, 'The limit for executions with any outcome. After it a person is asked.'),
  /** Retry an ambiguous failure even if the task is not idempotent. Default false. */
  retryAmbiguous: flag(false, 'Retry an ambiguous failure even if the task is not idempotent.'),
  /** What the memory of the source may do: `gate`, `breaker` and `budget`, each true or false. Default: all true; false in presets other than `standard` and `http_delivery`. */
  source: field<Partial<SourceSwitches>, SourceSwitches>({
    shape: { kind: 'flags', of: SOURCE_SWITCHES },
    says: 'What the memory of the source may do: `gate`, `breaker` and `budget`, each true or false.',
    byDefault: { gate: true, breaker: true, budget: true },
    examples: [{ gate: true, breaker: false, budget: false }],
  }),
};

/** Options of a policy after they were read. Those of a whole policy have its `version`. */
export type ReadOptions = Read<Partial<Omit<PolicyContent, 'source' | 'rules'>>> & {
  readonly rules?: Readonly<Record<string, ReadRule>>;
  readonly source?: Partial<SourceSwitches>;
  readonly version?: string;
};

/** The options of a policy. An option that is left out, or `undefined`, keeps its value from less specific levels. */
export interface PolicyOptions extends GivenTo<typeof POLICY_FIELDS> {}

/** The value of each option. */
export interface PolicyContent extends KeptOf<typeof POLICY_FIELDS> {}

/** A policy with a value for every option. `version` is a hash of its content. It is stored with each decision. */
export interface Policy extends PolicyContent {
  readonly version: string;
}

/** A whole policy, also one with options replaced, such as `{ ...presets.worker, timeout: '30s' }`. A number in it is milliseconds. */
export type WholePolicy = Pick<Policy, 'version'> & {
  readonly [Name in keyof PolicyContent]: PolicyContent[Name] | PolicyOptions[Name];
};

type GivenTo<Fields> = {
  readonly [Name in keyof Fields]?: Fields[Name] extends Field<infer Value, infer _> ? Value : never;
};
type KeptOf<Fields> = {
  readonly [Name in keyof Fields]: Fields[Name] extends Field<infer _, infer Value> ? Value : never;
};

function field<Given, Kept = Given>(content: Field<Given, Kept>): Field<Given, Kept> {
  return content;
}

function whole(least: number, byDefault: number, says: string, examples?: readonly unknown[]): Field<number> {
  return { shape: { kind: 'whole', least }, says, byDefault, ...(examples && { examples }) };
}

function span(byDefault: Milliseconds, says: string): Field<DurationInput, Milliseconds> {
  return { shape: { kind: 'span' }, says, byDefault };
}

function limit(
  least: Milliseconds,
  byDefault: Milliseconds | 'none',
  says: string,
): Field<DurationInput | 'none', Milliseconds | 'none'> {
  return { shape: { kind: 'limit', least }, says, byDefault };
}

function choice<Word extends string>(of: readonly Word[], byDefault: Word, says: string): Field<Word> {
  return { shape: { kind: 'choice', of }, says, byDefault };
}

function flag(byDefault: boolean, says: string): Field<boolean> {
  return { shape: { kind: 'flag' }, says, byDefault };
}

/** The names of options that are spans of time. */
export const SPAN_OPTIONS: readonly string[] = Object.entries(POLICY_FIELDS)
  .filter(([, { shape }]) => shape.kind === 'span' || shape.kind === 'limit')
  .map(([name]) => name);
