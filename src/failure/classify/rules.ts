import { RE2JS, RE2JSException } from 're2js';
import { type DurationInput, duration } from '../../duration.ts';
import { InvalidInputError } from '../../errors.ts';
import { isRecord } from '../../options.ts';
import { show } from '../../show.ts';
import {
  FAILURE_KINDS,
  FAULTS,
  type Failure,
  type FailureKind,
  type Fault,
  isReason,
  type Outcome,
} from '../outcome.ts';
import { classifyBy, outcomeBy } from './classify.ts';
import type { ErrorFields } from './error-fields.ts';
import { readText } from './inspect.ts';
import type { ClassifyContext, MatchedRule, Says } from './matched-rule.ts';
import { REASONS, type Reason } from './reasons.ts';
import { type Node, outermostFirst } from './tree.ts';

/** When a rule matches: every part that is given must match the same error, the thrown one or one that it wraps. */
export interface RuleMatch {
  /** The error's `code`, or one of several. Numbers are compared as text. */
  readonly code?: string | number | readonly (string | number)[];
  /** The HTTP status: `429`, `'5xx'`, or one of several. */
  readonly status?: number | string | readonly (number | string)[];
  /** The error's name or class, or one of several. */
  readonly name?: string | readonly string[];
  /** An expression in RE2's syntax, searched in the first 8,192 characters of the message in linear time. `(?i)` ignores case. */
  readonly message?: string;
  /** The task's type, or one of several. */
  readonly type?: string | readonly string[];
}

/** A rule of the application: when it matches, and how it classifies the failure. */
export interface ClassifyRule {
  /** Its name in `evidence.rule`. Default: `rules.1` for the first, and so on. */
  readonly name?: string;
  /** Data, or a function that is called with each error, the outermost first. If the function throws, the rule does not match. */
  readonly when: RuleMatch | ((error: unknown, context: ClassifyContext) => boolean);
  /** A slug: a reason of Holdfast's, or your own. */
  readonly reason: string;
  /** Default: that of the reason if it is one of Holdfast's, else `unknown`. */
  readonly kind?: FailureKind;
  /** Default: that of the reason if it is one of Holdfast's, else `task`. */
  readonly fault?: Fault;
  /** Default: that of the reason if it is one of Holdfast's, else false. */
  readonly ambiguous?: boolean;
  /** Default: the wait that the error asks for, if any. */
  readonly retryAfter?: DurationInput;
}

/** `classify` and `outcomeOf` with an application's rules. They apply after signals and before everything else. */
export interface Classifier {
  readonly classify: (thrown: unknown, context: ClassifyContext) => Failure;
  readonly outcomeOf: (thrown: unknown, context: ClassifyContext) => Outcome;
}

/**
 * A classifier that tries these rules first, in their order; the first that matches decides. They may be plain data, such as from
 * a file. All of it is checked here.
 * @throws InvalidInputError naming the rule, the field and the refused value.
 */
export function classifierFrom(rules: readonly ClassifyRule[]): Classifier {
  if (!Array.isArray(rules)) throw refused(`The rules must be a list, got ${show(rules)}.`);
  const parsed = rules.map(parseRule);
  const ask = (tree: Node, context: ClassifyContext) => firstMatch(parsed, tree, context);
  return {
    classify: (thrown, context) => classifyBy(thrown, context, ask),
    outcomeOf: (thrown, context) => outcomeBy(thrown, context, ask),
  };
}

interface Rule {
  readonly name: string;
  readonly says: Says;
  /** The field that matched, or undefined if the rule does not match this error. */
  readonly matches: (fields: ErrorFields, context: ClassifyContext) => string | undefined;
}

function firstMatch(rules: readonly Rule[], tree: Node, context: ClassifyContext): MatchedRule | undefined {
  if (rules.length === 0) return undefined;
  const nodes = [...outermostFirst(tree)];
  for (const { name, says, matches } of rules) {
    for (const node of nodes) {
      const field = matches(node.fields, context);
      if (field !== undefined) return { says, name, field, node };
    }
  }
  return undefined;
}

const RULE_FIELDS = ['name', 'when', 'reason', 'kind', 'fault', 'ambiguous', 'retryAfter'];
const MATCH_FIELDS = ['code', 'status', 'name', 'message', 'type'];

function parseRule(value: unknown, index: number): Rule {
  const where = `rules[${index}]`;
  if (!isRecord(value)) throw refused(`${where} must be an object, got ${show(value)}.`);
  noStray(value, RULE_FIELDS, where);
  const { name = `rules.${index + 1}`, when } = value;
  if (typeof name !== 'string' || name === '' || name.length > 64) {
    throw refused(`${where}.name must be a text of at most 64 characters, got ${show(name)}.`);
  }
  return { name, says: parseSays(value, where), matches: parseWhen(when, `${where}.when`) };
}

function parseSays(value: Readonly<Record<string, unknown>>, where: string): Says {
  const { reason, kind, fault, ambiguous, retryAfter } = value;
  if (!isReason(reason)) {
    throw refused(
      `${where}.reason must be a lower-case slug such as 'order.closed', at most 64 characters, got ${show(reason)}.`,
    );
  }
  const known = Object.hasOwn(REASONS, reason) ? REASONS[reason as Reason] : undefined;
  if (ambiguous !== undefined && typeof ambiguous !== 'boolean') {
    throw refused(`${where}.ambiguous must be true or false, got ${show(ambiguous)}.`);
  }
  return {
    reason,
    kind: oneOf(FAILURE_KINDS, kind, `${where}.kind`) ?? known?.kind ?? 'unknown',
    fault: oneOf(FAULTS, fault, `${where}.fault`) ?? known?.fault ?? 'task',
    ambiguous: ambiguous ?? known?.ambiguous ?? false,
    ...(retryAfter !== undefined && { retryAfterMs: duration(retryAfter as DurationInput, `${where}.retryAfter`) }),
  };
}

function oneOf<T extends string>(allowed: readonly T[], value: unknown, where: string): T | undefined {
  if (value === undefined) return undefined;
  if (!allowed.includes(value as T))
    throw refused(`${where} must be one of ${allowed.join(', ')}, got ${show(value)}.`);
  return value as T;
}

function parseWhen(when: unknown, where: string): Rule['matches'] {
  if (typeof when === 'function') return byFunction(when as (error: unknown, context: ClassifyContext) => unknown);
  if (!isRecord(when)) throw refused(`${where} must be an object or a function, got ${show(when)}.`);
  noStray(when, MATCH_FIELDS, where);
  const tests = MATCH_FIELDS.filter((field) => when[field] !== undefined).map((field) =>
    parseTest(field, when[field], `${where}.${field}`),
  );
  if (tests.length === 0)
    throw refused(
      `${where} must name at least one of ${MATCH_FIELDS.join(', ')}: a rule without one would match everything.`,
    );
  // The slowest test comes last.
  return (fields, context) =>
    tests.every((test) => test.holds(fields, context)) ? tests.map(({ field }) => field).join('+') : undefined;
}

function byFunction(when: (error: unknown, context: ClassifyContext) => unknown): Rule['matches'] {
  return (fields, context) => {
    try {
      return when(fields.value, context) === true ? 'when' : undefined;
    } catch {
      // The failure must be classified even if a rule throws, so the next rule is tried.
      return undefined;
    }
  };
}

interface Test {
  readonly field: string;
  readonly holds: (fields: ErrorFields, context: ClassifyContext) => boolean;
}

function parseTest(field: string, value: unknown, where: string): Test {
  switch (field) {
    case 'message':
      return { field, holds: bySearch(value, where) };
    case 'status': {
      const accepts = statuses(value, where);
      return { field, holds: (fields) => fields.status !== undefined && accepts(fields.status.number) };
    }
    case 'code': {
      const codes = texts(value, where, true);
      return {
        field,
        holds: ({ code }) => (typeof code === 'string' || typeof code === 'number') && codes.has(String(code)),
      };
    }
    case 'name': {
      const names = texts(value, where);
      return { field, holds: (fields) => names.has(fields.name) || names.has(fields.class) };
    }
    default: {
      const types = texts(value, where);
      return { field, holds: (_, { type }) => type !== undefined && types.has(type) };
    }
  }
}

function texts(value: unknown, where: string, numbersToo = false): ReadonlySet<string> {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  const odd = list.find((each) => typeof each !== 'string' && !(numbersToo && typeof each === 'number'));
  if (list.length === 0 || odd !== undefined) {
    throw refused(`${where} must be a text${numbersToo ? ' or number' : ''}, or a list of such, got ${show(value)}.`);
  }
  return new Set(list.map(String));
}

function statuses(value: unknown, where: string): (status: number) => boolean {
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length === 0 || !list.every((each) => /^[345](?:\d\d|xx)$/.test(String(each)))) {
    throw refused(`${where} must be a status such as 429 or '5xx', or a list of such, got ${show(value)}.`);
  }
  const known = new Set(list.map(String));
  return (status) => known.has(String(status)) || known.has(`${Math.floor(status / 100)}xx`);
}

/** How many characters of a message an expression searches. Linear time is only short if the input is. */
const LONGEST_SEARCHED = 8_192;
const LONGEST_EXPRESSION = 1_024;

function bySearch(value: unknown, where: string): Test['holds'] {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST_EXPRESSION) {
    throw refused(`${where} must be an expression of at most ${LONGEST_EXPRESSION} characters, got ${show(value)}.`);
  }
  const expression = compiled(value, where);
  return (fields) =>
    expression.test(
      (typeof fields.value === 'string' ? fields.value : (readText(fields.value, 'message') ?? '')).slice(
        0,
        LONGEST_SEARCHED,
      ),
    );
}

function compiled(text: string, where: string): RE2JS {
  try {
    return RE2JS.compile(text);
  } catch (cause) {
    if (!(cause instanceof RE2JSException)) throw cause;
    throw new InvalidInputError(
      `${where} is no expression that can be searched in linear time (RE2 has no look-around and no back-references): ${cause.message}. Got ${show(text)}.`,
      'invalid_input',
      { cause },
    );
  }
}

function noStray(value: Readonly<Record<string, unknown>>, fields: readonly string[], where: string): void {
  const stray = Object.keys(value).find((key) => !fields.includes(key));
  if (stray !== undefined) throw refused(`${where} has no ${show(stray)}; it may have ${fields.join(', ')}.`);
}

function refused(message: string): InvalidInputError {
  return new InvalidInputError(message);
}
