import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { FAILURE_KINDS, type FailureKind } from '../failure/outcome.ts';
import { parseFilter, refuseOtherKeys } from '../filter.ts';
import { name, refuseUnknown, text } from '../options.ts';
import { show } from '../show.ts';
import { MINUTE } from '../store/counters.ts';
import { fits } from '../store/filter.ts';
import type { CountedPeriods } from '../store/insight.ts';
import type { Records } from '../store/store.ts';
import { type Counted, readCountedAs } from '../telemetry/counted-as.ts';

export interface StatsOptions {
  /** Only tasks of this type. */
  readonly type?: string;
  /** Only tasks of this source. Sources that are not among the busiest are counted as `_other`. */
  readonly source?: string;
  /** Only what was settled since then: to the minute for the last two hours, to the hour for 14 days, else to the day. */
  readonly since?: Date;
  /** Only what fits a filter of `type`, `source`, `reason` and `since`, as in `list`: `type:sync -source:imap:* since:24h`. */
  readonly filter?: string;
  /** Also the counts of each span of time, such as `'5m'`, for plots. Counts that are kept by longer spans make the spans longer. */
  readonly bin?: DurationInput;
}

/** The newest bins are listed. */
const MOST_BINS = 400;

const FILTER_KEYS = ['type', 'source', 'reason', 'since'] as const;
const LONGEST_FILTER = 10_000;

/** What was counted of executions. Counts outlive their tasks, restarts and retention. */
export interface StatsReport {
  /** When the first of them was settled. A store that is older than its counters has none of before. */
  readonly since: Date | undefined;
  readonly total: Stats;
  /** By type, in the order of their names. */
  readonly types: readonly (Stats & { readonly type: string })[];
  /** By source, the busiest first. */
  readonly sources: readonly (Stats & { readonly source: string })[];
  /** With `bin`: the spans since `since` or the first count, the oldest first, also those in which nothing was counted. */
  readonly bins?: readonly StatsBin[];
}

/** What was counted of executions in a span of time. */
export interface StatsBin extends Pick<Stats, 'executions' | 'successes' | 'failures' | 'ended'> {
  readonly at: Date;
}

/** How executions went. A retry is an execution after a failure in the same round, charged or not. */
export interface Stats {
  /** All starts whose outcome was written; also those that were lost or interrupted. */
  readonly executions: number;
  readonly successes: number;
  readonly failures: number;
  /** Successes of all successes and failures; null if there are none. */
  readonly successRate: number | null;
  readonly retries: {
    /** Those that succeeded or failed. The others were interrupted, lost or put off by their handler. */
    readonly total: number;
    readonly successful: number;
    readonly failed: number;
    /** By the kind of the failure before. */
    readonly byFailureKind: Readonly<Record<FailureKind, number>>;
  };
  /** Charged failures plus one, over all successes; null if nothing succeeded. */
  readonly averageAttemptsUntilSuccess: number | null;
  /** Failures by their reason, the most frequent first. */
  readonly byReason: readonly { readonly reason: string; readonly kind: FailureKind; readonly count: number }[];
  /** How many executions succeeded at their first attempt, second attempt, and so on. 100 means 100 or more. */
  readonly byAttempt: readonly { readonly attempt: number; readonly successes: number; readonly failures: number }[];
  /** Executions that charged nothing: put off, interrupted, or lost with their worker. */
  readonly uncharged: { readonly deferred: number; readonly interrupted: number; readonly lost: number };
  /** Executions that ended their task. */
  readonly ended: {
    readonly dead: number;
    readonly needsManual: number;
    readonly cancelled: number;
  };
  /** Charged executions of tasks that in the end were dead or needed a person. */
  readonly wastedExecutions: number;
  /** Of tasks that succeeded, died or needed a person: how many of the attempts that their policies allow they used. */
  readonly budget: { readonly used: number; readonly allowed: number };
}

/** Settlements with what they are counted by. */
interface Count extends Counted {
  readonly count: number;
}

export async function statsFrom(records: Records, options: StatsOptions, now: number): Promise<StatsReport> {
  refuseUnknown(options, ['type', 'source', 'since', 'filter', 'bin'], 'stats');
  const given = options.filter === undefined ? '' : text(options.filter, 'filter', LONGEST_FILTER);
  refuseOtherKeys(given, FILTER_KEYS);
  const filter = parseFilter(given, new Date(now));
  if (options.since && filter.endedFrom !== undefined) {
    throw new InvalidInputError('stats has `since` twice: in `filter` and in `since`.');
  }
  const { type, source, since = new Date(filter.endedFrom ?? 0) } = options;
  for (const each of ['type', 'source'] as const) if (options[each] !== undefined) name(options[each], each);
  if (!(since instanceof Date) || Number.isNaN(since.getTime())) {
    throw new InvalidInputError(`\`since\` must be a Date, got ${show(since)}.`);
  }
  const isChosen = (each: Count) =>
    (type ?? each.type) === each.type && (source ?? each.source) === each.source && fits(filter, each);
  const span = options.bin === undefined ? undefined : binFrom(options.bin);
  if (span === undefined) {
    const { firstAt, counts } = await records.counters(since.getTime());
    return reportOf(firstAt, counts.map(read).filter(isChosen));
  }
  const { firstAt, counts } = await records.counterPeriods(since.getTime());
  const chosen = counts.map(read).filter(isChosen);
  return { ...reportOf(firstAt, chosen), bins: binsOf(chosen, { span, since: since.getTime(), now }) };
}

function reportOf(firstAt: number | undefined, chosen: readonly Count[]): StatsReport {
  return {
    since: firstAt === undefined ? undefined : new Date(firstAt),
    total: statsOf(chosen),
    types: by('type', chosen),
    sources: by('source', chosen).sort((a, b) => b.executions - a.executions),
  };
}

function read<Stored extends { readonly countedAs: string; readonly count: number }>(stored: Stored): Stored & Count {
  return Object.assign(readCountedAs(stored.countedAs), stored);
}

function binFrom(given: DurationInput): Milliseconds {
  const span = duration(given, 'bin');
  if (span >= MINUTE) return span;
  throw new InvalidInputError(`\`bin\` must be at least a minute, got ${show(given)}: counts are kept by the minute.`);
}

function binsOf(
  chosen: readonly (Count & CountedPeriods)[],
  { span: least, since, now }: { readonly span: Milliseconds; readonly since: number; readonly now: number },
): readonly StatsBin[] {
  // A period that is longer than a bin cannot be divided.
  const span = chosen.reduce((longest, periods) => Math.max(longest, periods.span), least);
  const newest = now - (now % span);
  /** How many bins before the newest one a time is in. */
  const before = (time: number) => (newest - (time - (time % span))) / span;
  let oldest = since > 0 ? before(since) : undefined;
  // First the numbers alone, for each way to end: a store may have several hundred thousand of them.
  const byEnd = new Map<string, { readonly end: Pick<Count, 'outcome' | 'next'>; readonly counts: Float64Array }>();
  for (const { outcome, next, at, counted } of chosen) {
    const name = `${outcome} ${next}`;
    const { counts } = byEnd.get(name) ?? { counts: new Float64Array(MOST_BINS) };
    if (!byEnd.has(name)) byEnd.set(name, { end: { outcome, next }, counts });
    for (let i = 0; i < at.length; i += 1) {
      const bin = before(at[i] as number);
      if (oldest === undefined || bin > oldest) oldest = bin;
      if (bin >= 0 && bin < MOST_BINS) counts[bin] = (counts[bin] as number) + (counted[i] ?? 0);
    }
  }
  if (oldest === undefined) return [];
  const bins = Math.min(MOST_BINS, oldest + 1);
  return Array.from({ length: bins }, (_, i) => {
    const bin = bins - 1 - i;
    const sums = noSums();
    for (const { end, counts } of byEnd.values()) addEnd(sums, end, counts[bin] as number);
    return { at: new Date(newest - bin * span), ...sums };
  });
}

/** How executions went, by outcome and next state alone. */
interface Sums {
  executions: number;
  successes: number;
  failures: number;
  readonly ended: { dead: number; needsManual: number; cancelled: number };
}

function noSums(): Sums {
  return { executions: 0, successes: 0, failures: 0, ended: { dead: 0, needsManual: 0, cancelled: 0 } };
}

function addEnd(sums: Sums, { outcome, next }: Pick<Count, 'outcome' | 'next'>, count: number): void {
  if (RAN.includes(outcome)) sums.executions += count;
  if (outcome === 'success') sums.successes += count;
  if (outcome === 'failure') sums.failures += count;
  if (next === 'dead') sums.ended.dead += count;
  if (next === 'needs_manual') sums.ended.needsManual += count;
  if (next === 'cancelled') sums.ended.cancelled += count;
}

/** The statistics of each type or source, in the order of their names. */
function by<Of extends 'type' | 'source'>(what: Of, counts: readonly Count[]): (Stats & Record<Of, string>)[] {
  const groups = new Map<string, Count[]>();
  for (const each of counts) {
    const group = groups.get(each[what]);
    if (group) group.push(each);
    else groups.set(each[what], [each]);
  }
  return [...groups]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, group]) => ({ [what]: name, ...statsOf(group) }) as Stats & Record<Of, string>);
}

function statsOf(counts: readonly Count[]): Stats {
  const ends = noSums();
  const sums = { attemptsOfSuccesses: 0, wasted: 0 };
  const retries = { successful: 0, failed: 0 };
  const byFailureKind = Object.fromEntries(FAILURE_KINDS.map((kind) => [kind, 0])) as Record<FailureKind, number>;
  const byAttempt = new Map<number, { successes: number; failures: number }>();
  const uncharged = { deferred: 0, interrupted: 0, lost: 0 };
  const budget = { used: 0, allowed: 0 };
  const failed: Count[] = [];
  for (const each of counts) {
    const { outcome, next, charge, after, attempt, maxAttempts, count } = each;
    addEnd(ends, each, count);
    const [isSuccess, isFailure] = [outcome === 'success', outcome === 'failure'];
    const gaveUp = next === 'dead' || next === 'needs_manual';
    if (isSuccess) sums.attemptsOfSuccesses += attempt * count;
    if (isFailure) failed.push(each);
    if (isSuccess || isFailure) {
      if (after !== undefined) {
        retries[isSuccess ? 'successful' : 'failed'] += count;
        byFailureKind[after] += count;
      }
      const tried = byAttempt.get(attempt) ?? { successes: 0, failures: 0 };
      tried[isSuccess ? 'successes' : 'failures'] += count;
      byAttempt.set(attempt, tried);
    }
    if (outcome === 'deferral' || (isFailure && charge !== 'task')) uncharged.deferred += count;
    if (outcome === 'interruption') uncharged.interrupted += count;
    if (outcome === 'loss') uncharged.lost += count;
    if (gaveUp) sums.wasted += attempt * count;
    if (isSuccess || gaveUp) {
      budget.used += attempt * count;
      budget.allowed += Math.max(attempt, maxAttempts) * count;
    }
  }
  return {
    ...ends,
    successRate: quotient(ends.successes, ends.successes + ends.failures),
    retries: { total: retries.successful + retries.failed, ...retries, byFailureKind },
    averageAttemptsUntilSuccess: quotient(sums.attemptsOfSuccesses, ends.successes),
    byReason: reasonsOf(failed),
    byAttempt: [...byAttempt]
      .sort(([a], [b]) => a - b)
      .map(([attempt, tried]) => ({ attempt, ...tried }))
      .filter((each) => each.successes + each.failures > 0),
    uncharged,
    wastedExecutions: sums.wasted,
    budget,
  };
}

const RAN: readonly string[] = ['success', 'failure', 'deferral', 'interruption', 'loss'];

function reasonsOf(failures: readonly Count[]): Stats['byReason'] {
  const reasons = new Map<string, { reason: string; kind: FailureKind; count: number }>();
  for (const { reason = 'unknown', kind = 'unknown', count } of failures) {
    const one = reasons.get(`${reason} ${kind}`) ?? { reason, kind, count: 0 };
    one.count += count;
    reasons.set(`${reason} ${kind}`, one);
  }
  return [...reasons.values()].sort((a, b) => b.count - a.count || (a.reason < b.reason ? -1 : 1));
}

function quotient(part: number, whole: number): number | null {
  return whole === 0 ? null : part / whole;
}
