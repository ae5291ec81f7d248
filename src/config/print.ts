import { stringify } from 'yaml';
import type { Milliseconds } from '../duration.ts';
import type { Backoff } from '../failure/backoff.ts';
import type { Jitter } from '../failure/jitter.ts';
import { type Field, POLICY_FIELDS, type Policy, RULE_FIELDS, type Shape } from '../failure/policy-fields.ts';
import type { Json } from '../task.ts';

/**
 * A policy as it would be written under `policies:` or `retry:`, with all values, so that reading it gives the same policy with the
 * same version.
 */
export function printPolicy(policy: Policy): string {
  return stringify(policyData(policy), { lineWidth: 120 });
}

/** As `printPolicy`, as data. */
export function policyData(policy: Policy): { readonly [key: string]: Json } {
  return { extends: 'none', ...optionsData(POLICY_FIELDS, policy) };
}

function optionsData(
  table: Readonly<Record<string, Field<unknown>>>,
  options: object,
): { readonly [key: string]: Json } {
  const said = options as Readonly<Record<string, unknown>>;
  const members = Object.entries(table).filter(([name]) => said[name] !== undefined);
  return Object.fromEntries(members.map(([name, { shape }]) => [name, optionData(shape, said[name])]));
}

/** The value of an option, as it is written in a file. */
export function optionData(shape: Shape, value: unknown): Json {
  switch (shape.kind) {
    case 'span':
    case 'limit':
      return spanText(value as Milliseconds | 'none');
    case 'backoff':
      return backoffData(value as Backoff);
    case 'jitter':
      return jitterData(value as Jitter);
    case 'rules': {
      const rules = Object.entries(value as Policy['rules']);
      return Object.fromEntries(rules.map(([name, rule]) => [name, optionsData(RULE_FIELDS, rule)]));
    }
    case 'whole':
    case 'choice':
    case 'flag':
    case 'flags':
      return value as Json;
  }
}

function backoffData(backoff: Backoff): Json {
  switch (backoff.kind) {
    case 'exponential':
      return { exponential: { base: spanText(backoff.base), factor: backoff.factor, cap: spanText(backoff.cap) } };
    case 'linear':
      return { linear: { step: spanText(backoff.step), cap: spanText(backoff.cap) } };
    case 'fixed':
      return { fixed: spanText(backoff.delay) };
    case 'schedule':
      return { schedule: backoff.delays.map(spanText) };
    case 'custom':
      return { custom: backoff.name };
    case 'immediate':
    case 'none':
      return backoff.kind;
  }
}

function jitterData(jitter: Jitter): Json {
  return jitter.kind === 'proportional' ? jitter.factor : jitter.kind;
}

const UNITS = [
  [86_400_000, 'd'],
  [3_600_000, 'h'],
  [60_000, 'm'],
  [1_000, 's'],
  [1, 'ms'],
] as const;

/** The exact duration, with as many units as needed. */
function spanText(span: Milliseconds | 'none'): string {
  if (span === 'none') return span;
  let rest = span;
  const parts = UNITS.map(([size, unit]) => {
    const amount = Math.floor(rest / size);
    rest -= amount * size;
    return amount > 0 ? `${amount}${unit}` : '';
  });
  return parts.join('') || '0s';
}
