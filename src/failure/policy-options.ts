import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';
import { parseBackoff } from './backoff.ts';
import { parseJitter } from './jitter.ts';
import { ENDS, isReason } from './outcome.ts';
import type { Policy, RuleOptions } from './policy.ts';
import { isRecord, refusal } from './refusal.ts';

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
