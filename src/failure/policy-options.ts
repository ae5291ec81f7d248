import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';
import { parseBackoff } from './backoff.ts';
import { parseJitter } from './jitter.ts';
import { isFamily, isReason } from './outcome.ts';
import {
  type Field,
  POLICY_FIELDS,
  type PolicyContent,
  RULE_FIELDS,
  type RuleOptions,
  type Shape,
} from './policy-fields.ts';
import { isRecord, refusal } from './refusal.ts';

/**
 * Reads the options of a policy, from code or from a configuration. `version` is ignored, because it is computed.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function parseOptions(options: unknown): Partial<PolicyContent> {
  const { version: _, ...said } = record(options, 'A policy');
  return parse(said, POLICY_FIELDS, 'A policy');
}

type Fields = Readonly<Record<string, Field<unknown>>>;

/** Reads the options that `fields` describe. `undefined` counts as left out. */
function parse(value: unknown, fields: Fields, what: string, whose = ''): object {
  const parsed: Record<string, unknown> = {};
  for (const [name, option] of Object.entries(record(value, what))) {
    const field = Object.hasOwn(fields, name) ? fields[name] : undefined;
    if (!field) throw refusal(`${what} has no option ${show(name)}. It has: ${Object.keys(fields).join(', ')}.`);
    if (option !== undefined) parsed[name] = parseOption(field.shape, option, `${name}${whose}`);
  }
  return parsed;
}

function parseOption(shape: Shape, value: unknown, what: string): unknown {
  switch (shape.kind) {
    case 'whole':
      if (Number.isSafeInteger(value) && (value as number) >= shape.least) return value;
      throw refusal(`${what} must be a whole number of at least ${shape.least}, got ${show(value)}.`);
    case 'span':
      return duration(value as DurationInput, what, 'invalid_policy');
    case 'limit':
      return parseLimit(shape.least, value, what);
    case 'choice':
      return oneOf(shape.of, value, what);
    case 'flag':
      return oneOf([true, false], value, what);
    case 'backoff':
      return within(parseBackoff, value, what);
    case 'jitter':
      return within(parseJitter, value, what);
    case 'rules':
      return parseRules(value, what);
    case 'flags':
      return parseFlags(shape.of, value, what);
  }
}

/** A time limit of zero would end every execution as it starts; elsewhere 0 means "no limit", so it is refused. */
function parseLimit(least: number, value: unknown, what: string): unknown {
  if (value === 'none') return value;
  const limit = duration(value as DurationInput, what, 'invalid_policy');
  if (limit < least) throw refusal(`${what} must be longer than 0, got ${show(value)}. 'none' turns it off.`);
  return limit;
}

function parseFlags(known: Readonly<Record<string, string>>, value: unknown, what: string): object {
  const names = Object.keys(known);
  const flags: Record<string, unknown> = {};
  for (const [name, on] of Object.entries(record(value, what))) {
    if (!names.includes(name)) throw refusal(`${what} has no flag ${show(name)}. It has: ${names.join(', ')}.`);
    if (on !== undefined) flags[name] = oneOf([true, false], on, `${name} of ${what}`);
  }
  return flags;
}

function parseRules(value: unknown, what: string): Readonly<Record<string, RuleOptions>> {
  const rules = Object.entries(record(value, what)).filter(([, rule]) => rule !== undefined);
  return Object.fromEntries(
    rules.map(([name, rule]) => {
      if (!isReason(name) && !isFamily(name)) {
        throw refusal(`A rule's name must be a reason ('fs.locked'), a family ('fs.*') or a kind, got ${show(name)}.`);
      }
      return [name, parse(rule, RULE_FIELDS, `The rule '${name}'`, ` of the rule '${name}'`)];
    }),
  );
}

function record(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (!isRecord(value)) throw refusal(`${what} must be an object, got ${show(value)}.`);
  return value;
}

function oneOf(allowed: readonly unknown[], value: unknown, what: string): unknown {
  if (allowed.includes(value)) return value;
  throw refusal(`${what} must be one of ${allowed.join(', ')}, got ${show(value)}.`);
}

/** Says which option an objection to a part of it is about. */
function within(read: (value: unknown) => unknown, value: unknown, what: string): unknown {
  try {
    return read(value);
  } catch (error) {
    throw error instanceof InvalidInputError ? refusal(`${what}: ${error.message}`) : error;
  }
}
