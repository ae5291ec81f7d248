import { type DurationInput, formatDuration, needUnit, span } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { isRecord, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import { ceiling, hasOneDelay, parseBackoff } from './backoff.ts';
import { jittered, parseJitter, proportional } from './jitter.ts';
import { OTHERWISE_CALLED } from './otherwise-called.ts';
import { isFamily, isReason } from './outcome.ts';
import {
  type Field,
  POLICY_FIELDS,
  type ReadOptions,
  type ReadRule,
  RULE_FIELDS,
  type Shape,
  SPAN_OPTIONS,
} from './policy-fields.ts';
import { refusal } from './refusal.ts';

/**
 * Reads the options of a policy that code gave. Each span of time needs its unit, except in a whole policy, whose spans are milliseconds.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function optionsGiven(options: unknown): ReadOptions {
  const given = record(options, 'A policy');
  if ('version' in given) return { ...parseOptions(given), version: String(given.version) };
  for (const name of SPAN_OPTIONS) needUnit(given[name], name, 'invalid_policy');
  const read = parseOptions(given);
  const useless = uselessIn(read);
  if (useless !== undefined) throw refusal(useless);
  return read;
}

/** What of these options can have no effect, and what to write instead. */
function uselessIn(read: ReadOptions): string | undefined {
  for (const { backoff, maxAttempts } of [read, ...Object.values(read.rules ?? {})]) {
    // One attempt means no retries.
    if (backoff?.kind !== 'schedule' || maxAttempts === undefined || maxAttempts === 1) continue;
    if (maxAttempts > backoff.delays.length) continue;
    const all = backoff.delays.length + 1;
    return (
      `maxAttempts ${maxAttempts} uses only ${maxAttempts - 1} of the ${all - 1} delays of the schedule. ` +
      `Leave maxAttempts out, which makes it ${all}, or shorten the schedule.`
    );
  }
  for (const { backoff, adaptive } of [read, ...Object.values(read.rules ?? {})]) {
    if (adaptive === true && backoff !== undefined && hasOneDelay(backoff)) {
      return 'adaptive has no effect with this backoff: it chooses among longer delays, and all are the same. Leave it out, or write an exponential backoff.';
    }
  }
  const { backoff, jitter = proportional(0.1) } = read;
  if (backoff === undefined || backoff.kind === 'change' || backoff.kind === 'custom' || read.maxAttempts === 1)
    return undefined;
  const first = ceiling(backoff, 1);
  for (const name of ['giveUpAfter', 'maxTotalDelay'] as const) {
    const limit = read[name];
    if (typeof limit !== 'number' || jittered(first, jitter, 0).low <= limit) continue;
    return (
      `No retry fits into ${name} ${formatDuration(limit)}: the first one waits ${formatDuration(first)}. ` +
      `Raise ${name}, or shorten the first delay.`
    );
  }
  return undefined;
}

/**
 * Reads the options of a policy, from code, a configuration or a store. A number is milliseconds. `version` is ignored, because it is
 * computed.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function parseOptions(options: unknown): Omit<ReadOptions, 'version'> {
  const { version: _, ...said } = record(options, 'A policy');
  return parse(said, POLICY_FIELDS, 'A policy');
}

type Fields = Readonly<Record<string, Field<unknown>>>;

/** Reads the options that `fields` describe. `undefined` counts as left out. */
function parse(value: unknown, fields: Fields, what: string, whose = ''): object {
  const parsed: Record<string, unknown> = {};
  refuseUnknown(record(value, what), Object.keys(fields), what, OTHERWISE_CALLED.policy, 'invalid_policy');
  for (const [name, option] of Object.entries(value as object)) {
    if (option !== undefined)
      parsed[name] = parseOption((fields[name] as Field<unknown>).shape, option, `${name}${whose}`);
  }
  return parsed;
}

function parseOption(shape: Shape, value: unknown, what: string): unknown {
  switch (shape.kind) {
    case 'whole':
      if (Number.isSafeInteger(value) && (value as number) >= shape.least) return value;
      throw refusal(`${what} must be a whole number of at least ${shape.least}, got ${show(value)}.`);
    case 'span':
      return span(value as DurationInput, what, 'invalid_policy');
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
  const limit = span(value as DurationInput, what, 'invalid_policy');
  if (limit < least) throw refusal(`${what} must be longer than 0, got ${show(value)}. 'none' turns it off.`);
  return limit;
}

function parseFlags(known: Readonly<Record<string, string>>, value: unknown, what: string): object {
  const names = Object.keys(known);
  const flags: Record<string, unknown> = {};
  refuseUnknown(record(value, what), names, what, {}, 'invalid_policy');
  for (const [name, on] of Object.entries(value as object)) {
    if (on !== undefined) flags[name] = oneOf([true, false], on, `${name} of ${what}`);
  }
  return flags;
}

function parseRules(value: unknown, what: string): Readonly<Record<string, ReadRule>> {
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
  if (isRecord(value)) return value;
  const retries =
    what === 'A policy' && Number.isSafeInteger(value) && (value as number) >= 0 ? (value as number) : undefined;
  const instead =
    retries !== undefined
      ? ` For ${retries} ${retries === 1 ? 'retry' : 'retries'}, write { maxAttempts: ${retries + 1} }.`
      : what === 'A policy'
        ? ' Write options such as { maxAttempts: 4 }, or a preset such as presets.httpDelivery.'
        : '';
  throw refusal(`${what} must be an object, got ${show(value)}.${instead}`);
}

function oneOf(allowed: readonly unknown[], value: unknown, what: string): unknown {
  if (allowed.includes(value)) return value;
  throw refusal(`${what} must be one of ${allowed.join(', ')}, got ${show(value)}.`);
}

/** Adds the name of the option to an error about a part of it. */
function within(read: (value: unknown) => unknown, value: unknown, what: string): unknown {
  try {
    return read(value);
  } catch (error) {
    throw error instanceof InvalidInputError ? refusal(`${what}: ${error.message}`) : error;
  }
}
