import {
  type DurationInput,
  formatDuration,
  LONGEST,
  type Milliseconds,
  needUnit,
  span as readSpan,
} from '../duration.ts';
import { likeName } from '../nearest.ts';
import { isRecord, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import type { Writable } from '../writable.ts';
import { OTHERWISE_CALLED } from './otherwise-called.ts';
import { refusal, tagged } from './refusal.ts';

/** How long the k-th retry waits, before jitter. Plain data, but for `custom`. */
export type Backoff =
  | { readonly kind: 'exponential'; readonly base: Milliseconds; readonly factor: number; readonly cap: Milliseconds }
  | { readonly kind: 'linear'; readonly step: Milliseconds; readonly cap: Milliseconds }
  | { readonly kind: 'fixed'; readonly delay: Milliseconds }
  | { readonly kind: 'schedule'; readonly delays: readonly Milliseconds[] }
  | { readonly kind: 'immediate' }
  | { readonly kind: 'none' }
  | { readonly kind: 'custom'; readonly name: string; readonly delay: (retry: number) => Milliseconds };

/** Options of `exponential` or `linear` that replace those of the less specific level. The others keep their values from there. */
export interface BackoffChange {
  readonly kind: 'change';
  readonly base?: Milliseconds;
  readonly factor?: number;
  readonly step?: Milliseconds;
  readonly cap?: Milliseconds;
}

/** A backoff, the short form of one, as in a file, or only the options to change: `{ base: '60s' }` keeps factor and cap. */
export type BackoffInput =
  | Backoff
  | BackoffChange
  | ExponentialOptions
  | LinearOptions
  | (Partial<ExponentialOptions> & ({ readonly factor: number } | { readonly cap: DurationInput }))
  | { readonly delay: DurationInput }
  | 'immediate'
  | 'none'
  | { readonly exponential: ExponentialOptions }
  | { readonly linear: LinearOptions }
  | { readonly fixed: DurationInput }
  | { readonly schedule: readonly DurationInput[] };

export interface ExponentialOptions {
  readonly base: DurationInput;
  readonly factor?: number;
  readonly cap?: DurationInput;
}

export interface LinearOptions {
  readonly step: DurationInput;
  readonly cap?: DurationInput;
}

const HOUR = 3_600_000;

/** Retry k waits `base · factor^(k−1)`, at most `cap` (1 h): the first retry waits `base`. `factor` is 2 by default. */
export function exponential(options: ExponentialOptions): Backoff {
  return readExponential(members(options, 'exponential', "exponential({ base: '5s', cap: '1h' })"));
}

/** Retry k waits `step · k`, at most `cap` (1 h). */
export function linear(options: LinearOptions): Backoff {
  return readLinear(members(options, 'linear', "linear({ step: '30s', cap: '10m' })"));
}

/** Every retry waits the same time. */
export function fixed(delay: DurationInput): Backoff {
  needUnit(delay, 'delay', 'invalid_policy');
  return { kind: 'fixed', delay: span(delay, 'delay') };
}

/** Retry k waits the k-th delay; after the last one, the last repeats. */
export function schedule(delays: readonly DurationInput[]): Backoff {
  if (Array.isArray(delays))
    for (const [i, delay] of delays.entries()) needUnit(delay, `delay ${i + 1}`, 'invalid_policy');
  return readSchedule(delays);
}

/** The options of a backoff in code, in which each span of time has its unit. */
function members<Options>(options: Options, kind: keyof typeof FIELDS, example: string): Options {
  if (!isRecord(options)) throw refusal(`${kind} takes an object such as ${example}, got ${show(options)}.`);
  refuseUnknown(options, FIELDS[kind], kind, OTHERWISE_CALLED.backoff, 'invalid_policy');
  for (const name of BACKOFF_SPANS) needUnit(options[name], name, 'invalid_policy');
  return options;
}

function readExponential(options: ExponentialOptions): Backoff {
  const base = span(options.base, 'base');
  const { factor = 2, cap } = options;
  return { kind: 'exponential', base, factor: readFactor(factor), cap: capAbove(cap, base, 'base') };
}

function readFactor(factor: unknown): number {
  // The type is checked too, because '2' behaves like a number until it is added to one.
  if (typeof factor !== 'number' || !Number.isFinite(factor) || factor < 1) {
    throw refusal(`factor must be a number of at least 1, got ${show(factor)}.`);
  }
  return factor;
}

function readChange({ base, factor, step, cap }: Partial<ExponentialOptions & LinearOptions>): BackoffChange {
  if (step !== undefined && (base ?? factor) !== undefined) {
    throw refusal('step is an option of linear, base and factor are options of exponential: leave one of them out.');
  }
  const change: Writable<BackoffChange> = { kind: 'change' };
  if (base !== undefined) change.base = span(base, 'base');
  if (factor !== undefined) change.factor = readFactor(factor);
  if (step !== undefined) change.step = span(step, 'step');
  const first = change.base ?? change.step ?? 0;
  if (cap !== undefined) change.cap = capAbove(cap, first, step === undefined ? 'base' : 'step');
  return change;
}

/** A backoff with some options changed. Without `base` or `step`, only a backoff that has the options changes. */
export function changedBackoff(below: Backoff, { base, factor, step, cap }: BackoffChange): Backoff {
  if (below.kind === 'linear' ? base === undefined : step !== undefined) {
    const from = below.kind === 'linear' ? below : { step: HOUR, cap: HOUR };
    const bounds = bounded({ first: step, cap }, { first: from.step, cap: from.cap });
    return { kind: 'linear', step: bounds.first, cap: bounds.cap };
  }
  if (below.kind !== 'exponential' && base === undefined) return below;
  const from = below.kind === 'exponential' ? below : { base: 0, factor: 2, cap: HOUR };
  const bounds = bounded({ first: base, cap }, { first: from.base, cap: from.cap });
  return { kind: 'exponential', base: bounds.first, factor: factor ?? from.factor, cap: bounds.cap };
}

interface Bounds {
  readonly first: Milliseconds;
  readonly cap: Milliseconds;
}

/** Of two values that contradict each other, the one that is changed wins. */
function bounded(changed: { readonly [Name in keyof Bounds]: Milliseconds | undefined }, from: Bounds): Bounds {
  const { first = Math.min(from.first, changed.cap ?? from.cap) } = changed;
  return { first, cap: changed.cap ?? Math.max(from.cap, first) };
}

function readLinear(options: LinearOptions): Backoff {
  const step = span(options.step, 'step');
  return { kind: 'linear', step, cap: capAbove(options.cap, step, 'step') };
}

function readSchedule(delays: readonly DurationInput[]): Backoff {
  if (!Array.isArray(delays) || delays.length === 0) {
    throw refusal(`schedule needs a list of at least one delay, such as schedule(['5m', '15m']), got ${show(delays)}.`);
  }
  return { kind: 'schedule', delays: Array.from(delays, (delay, i) => span(delay, `delay ${i + 1}`)) };
}

/** Retries at once. For tests, and for failures that a second attempt always fixes. */
export const immediate: Backoff = { kind: 'immediate' };

/** Never retries, for any reason: instead of a retry, the task ends or a person is asked. */
export const none: Backoff = { kind: 'none' };

/**
 * A function of your own, called with the number of the retry (from 1). It must be pure; an invalid result counts as 0.
 * Decisions and policy versions contain only its name, so give a changed function a new name.
 */
export function custom(name: string, delay: (retry: number) => Milliseconds): Backoff {
  if (typeof name !== 'string' || name === '') {
    throw refusal(`A custom backoff needs a name, which decisions show, got ${show(name)}.`);
  }
  if (typeof delay !== 'function') {
    throw refusal(`The custom backoff ${show(name)} needs a function from retry to milliseconds, got ${show(delay)}.`);
  }
  return { kind: 'custom', name, delay };
}

const FIELDS = {
  exponential: ['base', 'factor', 'cap'],
  linear: ['step', 'cap'],
  fixed: ['delay'],
  schedule: ['delays'],
  immediate: [],
  none: [],
  custom: ['name', 'delay'],
  change: ['base', 'factor', 'step', 'cap'],
} as const satisfies Readonly<Record<(Backoff | BackoffChange)['kind'], readonly string[]>>;

/** The fields above that are spans of time. */
export const BACKOFF_SPANS: readonly string[] = ['base', 'cap', 'step', 'delay', 'delays'];

/**
 * Reads a backoff that is plain data: built by hand, or from a configuration, and its short forms.
 * @throws InvalidInputError for an unknown kind or field, and for what the function of that kind refuses.
 */
export function parseBackoff(value: unknown): Backoff | BackoffChange {
  if (value === 'immediate') return immediate;
  if (value === 'none') return none;
  const short = isRecord(value) && !('kind' in value) ? Object.entries(value) : [];
  const [form, content] = short.length === 1 ? (short[0] as [string, unknown]) : [''];
  if (form !== '' && Object.hasOwn(SHORT_FORMS, form)) return (SHORT_FORMS[form] as Reader)(content as never);
  if (form === 'delay') return fixed(content as never);
  if (isChange(value)) return readChange(members(value, 'change', ''));
  if (!isRecord(value) || !('kind' in value)) throw refusal(`write ${helperFor(value)}, got ${show(value)}.`);
  const given = tagged(value, FIELDS, 'a backoff');
  switch (given.kind) {
    case 'exponential':
      return readExponential(given as never);
    case 'linear':
      return readLinear(given as never);
    case 'fixed':
      return { kind: 'fixed', delay: span(given.delay as never, 'delay') };
    case 'schedule':
      return readSchedule(given.delays as never);
    case 'immediate':
      return immediate;
    case 'none':
      return none;
    case 'custom':
      return custom(given.name as never, given.delay as never);
    case 'change':
      return readChange(given as never);
  }
}

/** Whether each member is an option to change. */
function isChange(value: unknown): value is Readonly<Record<string, never>> {
  if (!isRecord(value)) return false;
  const names: readonly string[] = Object.keys(value);
  return names.length > 0 && names.every((name) => (FIELDS.change as readonly string[]).includes(name));
}

type Reader = (content: never) => Backoff;
const SHORT_FORMS: Readonly<Record<string, Reader>> = { exponential, linear, fixed, schedule };

/** Suggests the function that makes the backoff that was probably meant. */
function helperFor(value: unknown): string {
  const helpers: Readonly<Record<string, string>> = {
    exponential: "exponential({ base: '5s', cap: '1h' })",
    linear: "linear({ step: '30s', cap: '10m' })",
    fixed: "fixed('30s')",
    schedule: "schedule(['5m', '15m'])",
    custom: "custom('name', (retry) => milliseconds)",
  };
  const text = typeof value === 'string' ? (likeName(value, Object.keys(helpers)) ?? '') : '';
  const isSpan = typeof value === 'number' || (typeof value === 'string' && /^\d/.test(value));
  const meant = Array.isArray(value)
    ? 'schedule'
    : typeof value === 'function'
      ? (Object.keys(SHORT_FORMS).find((kind) => SHORT_FORMS[kind] === value) ?? 'custom')
      : isSpan
        ? 'fixed'
        : text;
  return helpers[meant] ?? `a backoff such as ${helpers.exponential}, ${helpers.schedule} or none`;
}

/** The delay of retry `k` (from 1) before jitter: finite, whole, between 0 and ten years for every k. `none` has no retry: 0. */
export function ceiling(backoff: Backoff, k: number): Milliseconds {
  switch (backoff.kind) {
    case 'exponential':
      // 0 · ∞ is NaN: a base of zero stays zero however often it is multiplied.
      return backoff.base === 0 ? 0 : Math.round(Math.min(backoff.base * backoff.factor ** (k - 1), backoff.cap));
    case 'linear':
      return Math.round(Math.min(backoff.step * k, backoff.cap));
    case 'fixed':
      return backoff.delay;
    case 'schedule':
      return backoff.delays[Math.min(k, backoff.delays.length) - 1] as Milliseconds;
    case 'immediate':
    case 'none':
      return 0;
    case 'custom':
      return sane(backoff, k);
  }
}

/** Whether all retries wait the same time, as far as plain data tells. */
export function hasOneDelay(backoff: Backoff | BackoffChange): boolean {
  return backoff.kind !== 'change' && backoff.kind !== 'custom' && ceiling(backoff, 1) === ceiling(backoff, 1_000);
}

/** The formula as text, as decisions and `explain` show it. */
export function describeBackoff(backoff: Backoff): string {
  switch (backoff.kind) {
    case 'exponential':
      return `exponential ${formatDuration(backoff.base)} ×${backoff.factor} ≤ ${formatDuration(backoff.cap)}`;
    case 'linear':
      return `linear ${formatDuration(backoff.step)} ≤ ${formatDuration(backoff.cap)}`;
    case 'fixed':
      return `fixed ${formatDuration(backoff.delay)}`;
    case 'schedule':
      return `schedule ${backoff.delays.map(formatDuration).join(', ')}`;
    case 'immediate':
    case 'none':
      return backoff.kind;
    case 'custom':
      return `custom ${backoff.name}`;
  }
}

function capAbove(cap: DurationInput | undefined, first: Milliseconds, name: string): Milliseconds {
  if (cap === undefined) return Math.max(HOUR, first);
  const ms = span(cap, 'cap');
  if (ms < first) {
    throw refusal(
      `cap must not be below ${name}, got ${formatDuration(ms)} below ${formatDuration(first)}: every delay would be the cap.`,
    );
  }
  return ms;
}

function span(input: DurationInput, what: string): Milliseconds {
  return readSpan(input, what, 'invalid_policy');
}

function sane(backoff: Extract<Backoff, { kind: 'custom' }>, k: number): Milliseconds {
  try {
    const delay = backoff.delay(k);
    return typeof delay === 'number' && delay > 0 ? Math.min(Math.round(delay), LONGEST) : 0;
  } catch {
    // If the application's function throws, the task must still get a due time.
    return 0;
  }
}
