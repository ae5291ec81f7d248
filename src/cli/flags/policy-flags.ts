import { type Policy, type PolicyOptions, policyOver } from '../../failure/policy.ts';
import type { ReadRule } from '../../failure/policy-fields.ts';
import { PRESET_NAMES, presetNamed } from '../../failure/presets.ts';
import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';
import { nearest } from '../suggest.ts';
import { type Delays, parseBackoffFlag } from './backoff-flag.ts';
import { span } from './moment.ts';

export interface PolicyFlags {
  readonly policy?: string;
  readonly attempts?: string;
  readonly backoff?: string;
  readonly attemptTimeout?: string;
}

/**
 * A task's own policy layer, from the flags of its command. Undefined if they do not change its type's policy. `--attempts` and
 * `--backoff` apply to every failure, so they change the rules too, except those that end the task or ask a person at the first
 * failure.
 * @throws Problem naming the flag and its value.
 */
export function policyLayer(flags: PolicyFlags, ofType: Policy, chosen?: Policy): PolicyOptions | undefined {
  const whole = flags.policy === undefined ? chosen : presetCalled(flags.policy);
  const delays = flags.backoff === undefined ? undefined : parseBackoffFlag(flags.backoff);
  const attempts = attemptsFrom(flags.attempts, delays);
  const timeout = timeoutFrom(flags.attemptTimeout);
  const layer = {
    ...whole,
    ...delays,
    ...(attempts !== undefined && { maxAttempts: attempts }),
    ...(timeout !== undefined && { timeout }),
    ...rulesFor(whole ?? ofType, delays, attempts),
  } as PolicyOptions;
  if (Object.keys(layer).length === 0) return undefined;
  policyOver(layer, ofType);
  return layer;
}

function presetCalled(text: string): Policy {
  const found = presetNamed(text.replaceAll('-', '_').toLowerCase());
  if (found) return found;
  const [like] = nearest(text, PRESET_NAMES);
  throw usage(`--policy: there is no preset "${visible(text)}"`, {
    hints: [like === undefined ? `presets: ${PRESET_NAMES.join(', ')}` : `did you mean "${like}"?`],
  });
}

function attemptsFrom(text: string | undefined, delays: Delays | undefined): number | undefined {
  if (text !== undefined) return wholeNumberFlag(text, '--attempts', 1);
  return delays?.backoff.kind === 'schedule' ? delays.backoff.delays.length + 1 : undefined;
}

function timeoutFrom(text: string | undefined): string | undefined {
  if (text === undefined || text === 'none') return text;
  const limit = span(text, '--attempt-timeout');
  if (limit === 0) throw usage(`--attempt-timeout must be longer than 0, got ${visible(text)}; "none" turns it off`);
  return `${limit}ms`;
}

function rulesFor(
  policy: Policy,
  delays: Delays | undefined,
  attempts: number | undefined,
): { rules?: Record<string, ReadRule> } {
  const rules = Object.entries(policy.rules);
  if (rules.length === 0 || (delays === undefined && attempts === undefined)) return {};
  return { rules: Object.fromEntries(rules.map(([name, rule]) => [name, adjusted(rule, delays, attempts)])) };
}

function adjusted(rule: ReadRule, delays: Delays | undefined, attempts: number | undefined): ReadRule {
  if (rule.maxAttempts === 1) return rule;
  const { backoff: _, jitter: __, ...rest } = rule;
  return {
    ...(delays ? rest : rule),
    ...(attempts !== undefined && rule.maxAttempts !== undefined && { maxAttempts: attempts }),
  };
}

/** The whole number of a flag. @throws Problem naming the flag and its value. */
export function wholeNumberFlag(text: string, flag: string, least: number, most = Number.MAX_SAFE_INTEGER): number {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  throw usage(`${flag} must be a whole number ${range}, got "${visible(text)}"`);
}
