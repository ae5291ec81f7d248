import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';
import { type Backoff, parseBackoff } from './backoff.ts';
import { type Jitter, parseJitter } from './jitter.ts';
import { ENDS, type End, isReason } from './outcome.ts';
import { isRecord, refusal } from './refusal.ts';

/** What a rule may say otherwise for the failures that it names. What it leaves out comes from the next less specific rule. */
export interface RuleOptions {
  /** Counts only the failures that this rule governs. */
  readonly maxAttempts?: number;
  readonly backoff?: Backoff;
  readonly jitter?: Jitter;
  readonly onExhausted?: End;
  /** `false`: a rate limit without a hint is a deferral and charges nobody. Only meaningful where a rate limit is met. */
  readonly charge?: boolean;
}

/** What may be said of a policy. What is left out, or `undefined`, stays as it is in the policy underneath. */
export interface PolicyOptions extends Omit<RuleOptions, 'charge'> {
  /** Charged executions, the first included: 4 means one try and three retries. Default 5. */
  readonly maxAttempts?: number;
  /** `stop` (default) ends a permanent failure at once; `retry` treats it like any other. */
  readonly permanent?: 'stop' | 'retry';
  /** Where the policy's end leads, whether by a limit or by a permanent failure. Default `dead`. */
  readonly onExhausted?: End;
  /** By reason (`fs.locked`), family (`fs.*`) or kind (`transient`); the most specific one answers. */
  readonly rules?: Readonly<Record<string, RuleOptions>>;
  /** How many deferrals in a row are granted before a person is asked. Default 100. */
  readonly maxDeferrals?: number;
  /** How long deferrals in a row may put a task off before a person is asked. Default 24 h. */
  readonly maxDeferredFor?: DurationInput;
  /** A longer ask than this needs a person. Default 24 h. */
  readonly maxRetryAfter?: DurationInput;
  /** No execution starts later than this after the first one. Default: no such limit. */
  readonly giveUpAfter?: DurationInput | 'none';
  /** How long one execution may run since its start or its last `heartbeat()`. Default 1 h; `'none'` must be said. */
  readonly timeout?: DurationInput | 'none';
  /** The last bound on executions of any outcome; beyond it a person is asked. Default 1,000. */
  readonly maxExecutions?: number;
  /** Retry an ambiguous failure even if the task is not idempotent. Default false. */
  readonly retryAmbiguous?: boolean;
}

/** A policy with every value settled. `version` is a hash of its content, kept with each decision that it made. */
export interface Policy {
  readonly maxAttempts: number;
  readonly backoff: Backoff;
  readonly jitter: Jitter;
  readonly permanent: 'stop' | 'retry';
  readonly onExhausted: End;
  readonly rules: Readonly<Record<string, RuleOptions>>;
  readonly maxDeferrals: number;
  readonly maxDeferredFor: Milliseconds;
  readonly maxRetryAfter: Milliseconds;
  readonly giveUpAfter: Milliseconds | 'none';
  readonly timeout: Milliseconds | 'none';
  readonly maxExecutions: number;
  readonly retryAmbiguous: boolean;
  readonly version: string;
}

/** Reads one option, or refuses it by the name under which the reader knows it. */
type Parser<T> = (value: unknown, what: string) => T;
type Parsers<T> = { readonly [Name in keyof T]-?: Parser<NonNullable<T[Name]>> };

type Content = Omit<Policy, 'version'>;

const RULE: Parsers<RuleOptions> = {
  maxAttempts: wholeNumber(1),
  backoff: within(parseBackoff),
  jitter: within(parseJitter),
  onExhausted: oneOf(ENDS),
  charge: oneOf([true, false]),
};

const POLICY: Parsers<Content> = {
  maxAttempts: RULE.maxAttempts,
  backoff: RULE.backoff,
  jitter: RULE.jitter,
  permanent: oneOf(['stop', 'retry']),
  onExhausted: RULE.onExhausted,
  rules: parseRules,
  maxDeferrals: wholeNumber(0),
  maxDeferredFor: span,
  maxRetryAfter: span,
  giveUpAfter: spanOrNone,
  timeout: timeLimit,
  maxExecutions: wholeNumber(1),
  retryAmbiguous: oneOf([true, false]),
};

/**
 * Reads what was said of a policy, from code or from a configuration. `version` is passed over: it is computed.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function parseOptions(options: unknown): Partial<Content> {
  const { version: _, ...said } = record(options, 'A policy');
  return parse(said, POLICY, 'A policy');
}

function parseRules(value: unknown, what: string): Content['rules'] {
  const rules = Object.entries(record(value, what)).filter(([, rule]) => rule !== undefined);
  return Object.fromEntries(
    rules.map(([name, rule]) => {
      if (!isReason(name) && !isFamily(name)) {
        throw refusal(`A rule's name must be a reason ('fs.locked'), a family ('fs.*') or a kind, got ${show(name)}.`);
      }
      return [name, parse(rule, RULE, `The rule '${name}'`, ` of the rule '${name}'`)];
    }),
  );
}

/** A family is the first word of a reason: 'fs.smb.*' would never match. */
function isFamily(name: string): boolean {
  return name.endsWith('.*') && isReason(name.slice(0, -2)) && name.indexOf('.') === name.length - 2;
}

/** Reads the options that `parsers` know; `undefined` is the same as nothing said. */
function parse<T extends object>(value: unknown, parsers: Parsers<T>, what: string, whose = ''): Partial<T> {
  const parsed: Partial<T> = {};
  for (const [name, option] of Object.entries(record(value, what))) {
    if (!Object.hasOwn(parsers, name)) {
      throw refusal(`${what} has no option ${show(name)}. It has: ${Object.keys(parsers).join(', ')}.`);
    }
    const key = name as keyof T;
    if (option !== undefined) parsed[key] = parsers[key](option, `${name}${whose}`);
  }
  return parsed;
}

function record(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw refusal(`${what} must be an object, got ${show(value)}.`);
  return value;
}

function wholeNumber(least: number): Parser<number> {
  return (value, what) => {
    if (Number.isSafeInteger(value) && (value as number) >= least) return value as number;
    throw refusal(`${what} must be a whole number of at least ${least}, got ${show(value)}.`);
  };
}

function oneOf<T>(allowed: readonly T[]): Parser<T> {
  return (value, what) => {
    if (allowed.includes(value as T)) return value as T;
    throw refusal(`${what} must be one of ${allowed.join(', ')}, got ${show(value)}.`);
  };
}

function span(value: unknown, what: string): Milliseconds {
  return duration(value as DurationInput, what, 'invalid_policy');
}

function spanOrNone(value: unknown, what: string): Milliseconds | 'none' {
  return value === 'none' ? 'none' : span(value, what);
}

/** A limit of zero would end every execution as it starts; elsewhere 0 means "no limit", so it is refused. */
function timeLimit(value: unknown, what: string): Milliseconds | 'none' {
  const limit = spanOrNone(value, what);
  if (limit === 0) throw refusal(`${what} must be longer than 0, got ${show(value)}. 'none' turns it off.`);
  return limit;
}

/** Says which option an objection to a part of it is about. */
function within<T>(read: (value: unknown) => T): Parser<T> {
  return (value, what) => {
    try {
      return read(value);
    } catch (error) {
      throw error instanceof InvalidInputError ? refusal(`${what}: ${error.message}`) : error;
    }
  };
}
