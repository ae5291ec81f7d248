import { FULL, PER_SUCCESS, tokensAfter } from '../../src/budget.ts';
import type { Milliseconds } from '../../src/duration.ts';
import type { Pace } from '../../src/pace.ts';
import { nextStartAfter, startsAllowed, stricter, underPace } from '../../src/starts.ts';
import type { LimitOrigin, QueueSettings, Restriction, SourceChange, SourceLimits } from '../../src/store/store.ts';

/** What is kept of one source. */
export interface ModelSource {
  state?: { revision: number; readonly memory: string; readonly writtenAt: number; readonly restriction?: Restriction };
  /** The highest number that a state of it had. */
  highest: number;
  hold?: { readonly until?: number };
  pace?: { readonly pace: Pace; readonly origin: LimitOrigin };
  concurrency?: { readonly most: number; readonly origin: LimitOrigin };
  /** Absent: full. */
  tokens?: { readonly count: number; readonly at: number };
  nextStart: number | null;
}

/** How many tasks of a source may be started: exactly so many, but for how numbers are rounded. */
export interface ModelRoom {
  readonly starts: number;
  readonly tokens: { readonly least: number; readonly most: number };
  /** New work and backlog take turns, so that its order is not that of its queue. */
  readonly ramping: boolean;
}

/** Rates whose intervals are whole numbers, so that nothing is rounded. */
export const PACES: readonly Pace[] = [
  { perSecond: 10, burst: 1 },
  { perSecond: 1, burst: 3 },
  { perSecond: 0.1, burst: 1 },
];

/** The sources of a model: states, restrictions, holds, limits and budgets. */
export class ModelSources {
  readonly #sources = new Map<string, ModelSource>();

  of(name: string): ModelSource {
    const known = this.#sources.get(name) ?? { highest: 0, nextStart: null };
    this.#sources.set(name, known);
    return known;
  }

  get names(): readonly string[] {
    return [...this.#sources.keys()];
  }

  /** Whether anything may keep tasks of it from starting. */
  isRestricted(name: string): boolean {
    const { hold, state, pace, concurrency, tokens } = this.of(name);
    return Boolean(hold || state?.restriction || pace || concurrency || tokens);
  }

  revisionOf(name: string): number {
    return this.of(name).state?.revision ?? 0;
  }

  /** Makes a change; the number of a new state is the store's to choose. */
  change(name: string, { memory, restriction, tokens }: NonNullable<SourceChange['change']>, now: number): void {
    const source = this.of(name);
    if (memory === undefined) delete source.state;
    else {
      const revision = source.state ? source.state.revision + 1 : Number.NaN;
      source.state = { revision, memory, writtenAt: now, ...(restriction && { restriction }) };
    }
    if (source.tokens && tokens !== 0) this.#setTokens(source, this.#tokensOf(source, now) + tokens, now);
    this.#rulesChanged(source, now);
  }

  /** The store has said which number the present state has. */
  learn(name: string, revision: number | undefined): string[] {
    const source = this.of(name);
    if (revision === undefined) return source.state ? [`${name} has no state`] : [];
    if (!source.state) return [`${name} has a state`];
    const { revision: expected } = source.state;
    const isNew = Number.isNaN(expected);
    if (isNew ? revision <= source.highest : revision !== expected)
      return [`the state of ${name} has number ${revision}`];
    source.state.revision = revision;
    source.highest = Math.max(source.highest, revision);
    return [];
  }

  hold(name: string, forMs: Milliseconds | undefined, now: number): void {
    this.of(name).hold = forMs === undefined ? {} : { until: now + forMs };
  }

  release(name: string): void {
    delete this.of(name).hold;
  }

  limit(name: string, { pace, concurrency }: SourceLimits, origin: LimitOrigin, now: number): void {
    const source = this.of(name);
    const mayChange = (before: { readonly origin: LimitOrigin } | undefined) =>
      origin === 'person' || before?.origin !== 'person';
    if (pace !== undefined && mayChange(source.pace)) {
      if (pace) source.pace = { pace, origin };
      else delete source.pace;
    }
    if (concurrency !== undefined && mayChange(source.concurrency)) {
      if (concurrency === null) delete source.concurrency;
      else source.concurrency = { most: concurrency, origin };
    }
    this.#rulesChanged(source, now);
  }

  #rulesChanged(source: ModelSource, now: number): void {
    const pace = paceOf(source);
    source.nextStart = pace && source.nextStart !== null ? underPace(pace, source.nextStart, now) : null;
  }

  success(name: string, now: number): void {
    const source = this.of(name);
    if (source.tokens) this.#setTokens(source, this.#tokensOf(source, now) + PER_SUCCESS, now);
  }

  /** What may be started now, where so many of its tasks run and so many of them are probes that hold up others. */
  roomOf(
    name: string,
    { running, probes }: { readonly running: number; readonly probes: number },
    now: number,
  ): ModelRoom {
    const source = this.of(name);
    const { restriction } = source.state ?? {};
    const pace = paceOf(source);
    const count = this.#tokensOf(source, now);
    return {
      starts:
        this.opensAt(name, now) > now
          ? 0
          : Math.max(
              0,
              Math.min(
                restriction?.probing ? 1 - probes : Number.POSITIVE_INFINITY,
                pace ? startsAllowed(pace, source.nextStart, now) : Number.POSITIVE_INFINITY,
                source.concurrency ? source.concurrency.most - running : Number.POSITIVE_INFINITY,
              ),
            ),
      tokens: { least: Math.floor(count - 1e-6), most: Math.floor(count + 1e-6) },
      ramping: restriction?.ramping === true,
    };
  }

  /** When the hold of a source ends, by an operator or by its state; infinity if only a person ends it. */
  opensAt(name: string, now: number): number {
    const { hold, state } = this.of(name);
    const shutFor = state?.restriction?.shutFor;
    const held = hold ? (hold.until ?? Number.POSITIVE_INFINITY) : now;
    if (shutFor === undefined || !state) return held;
    return Math.max(held, shutFor === 'released' ? Number.POSITIVE_INFINITY : state.writtenAt + shutFor);
  }

  /** All times at which something of a source may change by itself. */
  timesOf(name: string, now: number): number[] {
    const { hold, state, nextStart, tokens } = this.of(name);
    const shutFor = state?.restriction?.shutFor;
    const left = tokens ? 1 - this.#tokensOf(this.of(name), now) : 0;
    const times = [
      hold?.until,
      typeof shutFor === 'number' && state ? state.writtenAt + shutFor : undefined,
      nextStart === null ? undefined : Math.ceil(nextStart),
      ...(left > 0 ? [-1, 0, 1].map((by) => now + Math.ceil(left * 10_000) + by) : []),
    ];
    return times.flatMap((time) => (time !== undefined && time > now ? [time] : []));
  }

  /** A claim has started so many of its tasks, and so many of those took a token. */
  started(name: string, starts: number, tokens: number, now: number): void {
    const source = this.of(name);
    const pace = paceOf(source);
    if (pace) source.nextStart = nextStartAfter(pace, source.nextStart, starts, now);
    if (tokens > 0) this.#setTokens(source, Math.max(0, this.#tokensOf(source, now) - tokens), now);
  }

  #tokensOf({ tokens }: ModelSource, now: number): number {
    return tokens ? tokensAfter(tokens.count, now - tokens.at) : FULL;
  }

  #setTokens(source: ModelSource, count: number, now: number): void {
    if (count >= FULL) delete source.tokens;
    else source.tokens = { count, at: now };
  }
}

function paceOf({ pace, state }: ModelSource): Pace | undefined {
  return stricter(state?.restriction?.pace, pace?.pace);
}

/** The limits of a queue. */
export class ModelLimits {
  pace: Pace | null = null;
  concurrency: number | null = null;
  nextStart: number | null = null;

  set({ pace, concurrency }: Partial<QueueSettings>): void {
    if (pace !== undefined && JSON.stringify(pace) !== JSON.stringify(this.pace)) {
      this.pace = pace;
      this.nextStart = null;
    }
    if (concurrency !== undefined) this.concurrency = concurrency;
  }

  roomFor(running: number, now: number): number {
    const starts = this.pace ? startsAllowed(this.pace, this.nextStart, now) : Number.POSITIVE_INFINITY;
    return Math.max(0, Math.min(starts, (this.concurrency ?? Number.POSITIVE_INFINITY) - running));
  }

  started(starts: number, now: number): void {
    if (this.pace && starts > 0) this.nextStart = nextStartAfter(this.pace, this.nextStart, starts, now);
  }
}
