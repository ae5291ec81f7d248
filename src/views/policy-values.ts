import { formatDuration } from '../duration.ts';
import { type Backoff, describeBackoff } from '../failure/backoff.ts';
import type { Jitter } from '../failure/jitter.ts';
import { type SourceSwitches, SPAN_OPTIONS } from '../failure/policy-fields.ts';
import { formatPace, type Pace } from '../pace.ts';
import { jitterWords } from './task-text.ts';
import { visible } from './visible.ts';

/** What is a span of time, of a policy and of the `worker:` section. */
const SPANS = [...SPAN_OPTIONS, 'leaseFor', 'pollInterval', 'grace'];

/** A value of a policy or a limit as people write it. Safe to print. */
export function valueWords(path: readonly string[], value: unknown): string {
  const name = path.at(-1) ?? '';
  if (value === undefined) return 'nothing';
  if (typeof value === 'number' && SPANS.includes(name)) return formatDuration(value);
  if (name === 'backoff') return visible(describeBackoff(value as Backoff));
  if (name === 'source') return switchWords(value as SourceSwitches);
  if (name === 'pace') return value === null ? 'none' : formatPace(value as Pace);
  if (name === 'concurrency' && value === null) return 'none';
  if (name === 'jitter') return jitterWords(value as Jitter);
  return visible(typeof value === 'string' ? value : JSON.stringify(value));
}

/** `breaker, budget`: which parts of the memory of a source are on. */
function switchWords(switches: SourceSwitches): string {
  const on = Object.entries(switches).flatMap(([name, isOn]) => (isOn ? [name] : []));
  return on.length === 0 ? 'off' : on.join(', ');
}

/** `rules fs.locked maxAttempts`. Safe to print. */
export function pathWords(path: readonly string[]): string {
  return visible(path.join(' '));
}
