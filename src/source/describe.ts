import { formatDuration, type Milliseconds } from '../duration.ts';
import { formatRate } from '../pace.ts';
import type { Cause, Evidence, Memory, NeedsPerson, Quota } from './memory.ts';

/**
 * The condition of a source, in the words of the command line. `watched`: it failed, and a second failure of another task would show that
 * it is down. `near_limit`: it said that little of its limit is left. `asked_to_wait`: it is shut until the Retry-After is over.
 */
export const CONDITIONS = [
  'watched',
  'near_limit',
  'asked_to_wait',
  'down',
  'probing',
  'ramping',
  'needs_person',
] as const;
export type Condition = (typeof CONDITIONS)[number];

export interface Described {
  readonly condition: Condition;
  /** How long it has not been in its normal state. */
  readonly sinceAgo: Milliseconds;
  /** Of the last failure that counted against it. */
  readonly reason: string;
  readonly message: string;
  /** How many different tasks failed at its fault. Only while it is watched. */
  readonly failedTasks?: number;
  /** While it is down or probed. */
  readonly failedProbes?: number;
  /** How long it is still shut, if it opens by itself. */
  readonly opensIn?: Milliseconds;
  /** How many tasks may start in a second, while its work is released slowly or it is near its limit. */
  readonly perSecond?: number;
  readonly text: string;
}

/** What is remembered of a source, in words; undefined for one in its normal state. `memory` is aged to the present. */
export function describe({ phase, evidence, permanent, quota }: Memory): Described | undefined {
  switch (phase.name) {
    case 'closed':
      return watched(evidence ?? permanent) ?? nearLimit(quota);
    case 'needs_person':
      return { condition: 'needs_person', ...since(phase), text: whyAPerson(phase) };
    case 'probing': {
      const { shutFor, failedProbes } = phase;
      const probes = failedProbes === 1 ? '1 probe has failed' : `${failedProbes} probes have failed`;
      return shutFor > 0
        ? {
            condition: 'down',
            ...since(phase),
            failedProbes,
            opensIn: shutFor,
            text: `It is down (${phase.last.reason}). ${probes}; the next one starts in ${formatDuration(shutFor)}.`,
          }
        : {
            condition: 'probing',
            ...since(phase),
            failedProbes,
            text: `It was down (${phase.last.reason}). One task at a time probes whether it works again; ${probes}.`,
          };
    }
    case 'ramping': {
      const { shutFor, ramp } = phase;
      if (shutFor > 0) {
        const text = `It asked to wait (${phase.last.reason}): nothing starts for ${formatDuration(shutFor)}.`;
        return { condition: 'asked_to_wait', ...since(phase), opensIn: shutFor, text };
      }
      if (ramp.free)
        return { condition: 'ramping', ...since(phase), text: 'It works again; its backlog is worked off.' };
      const text = `It works again: its work is released slowly, now ${formatRate(ramp.rate)}.`;
      return { condition: 'ramping', ...since(phase), perSecond: ramp.rate, text };
    }
  }
}

function since({ sinceAgo, last }: { readonly sinceAgo: Milliseconds; readonly last: Cause }) {
  return { sinceAgo, reason: last.reason, message: last.message };
}

function watched(evidence: Evidence | undefined): Described | undefined {
  if (evidence === undefined) return undefined;
  const failedTasks = new Set(evidence.failed.map(({ task }) => task)).size;
  const { reason, message } = evidence.last;
  const text = `It failed (${reason}), and has not answered since. If another task fails too, it counts as down.`;
  return { condition: 'watched', sinceAgo: evidence.lastAgo, reason, message, failedTasks, text };
}

function nearLimit(quota: Quota | undefined): Described | undefined {
  if (quota === undefined) return undefined;
  const { perSecond, resetsIn } = quota;
  const text = `Little of its limit is left: ${formatRate(perSecond)} until it resets in ${formatDuration(resetsIn)}.`;
  return { condition: 'near_limit', sinceAgo: 0, reason: '', message: '', perSecond, text };
}

function whyAPerson({ why, last }: NeedsPerson): string {
  switch (why) {
    case 'permanent':
      return `It refused several tasks for good (${last.reason}). Nothing starts until a person has repaired and released it.`;
    case 'long_retry_after':
      return `It asked for a longer wait than maxRetryAfter allows (${last.reason}). Nothing starts until a person releases it.`;
    case 'held_too_long':
      return `It has not answered for 7 days of waiting (${last.reason}). Nothing starts until a person releases it.`;
  }
}
