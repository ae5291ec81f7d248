import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { type ObservedRetries, waitClass, waitOfClass } from '../failure/adaptive.ts';
import { type Decision, type Facts, waitedFor } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import { answerFor, type Policy } from '../failure/policy.ts';
import type { Claimed, Counters, Store } from '../store/store.ts';
import { type Retried, readCountedAs } from '../telemetry/counted-as.ts';

/*
 * What adaptive delays are learned from. A retry is counted with its settlement, so the counts outlive restarts and are the same for
 * all workers. They are read only when a policy that adapts delays decides about a failure.
 */

const DAY: Milliseconds = 24 * 3_600_000;

/** The retries of the last day count if they are at least so many, otherwise those of the last 7 days. */
const ENOUGH_IN_A_DAY = 100;

/** Counts that are at most this old are not read again. */
const FRESH_FOR: Milliseconds = 60_000;

/** The reason of a failure whose delay its policy adapts; undefined for any other outcome. */
export function adaptedReason(outcome: Outcome, policy: Policy): string | undefined {
  if (outcome.kind !== 'failure') return undefined;
  const { reason, kind } = outcome.failure;
  return answerFor(policy, reason, kind).adaptive ? reason : undefined;
}

/** As what a retry is counted, if its policy adapts delays, and it succeeded or failed again for the same reason. */
export function retriedAs(
  { lastFailure }: Claimed,
  { charged }: Facts,
  policy: Policy,
  outcome: Outcome,
  decision: Decision,
): Retried | undefined {
  if (!lastFailure || !answerFor(policy, lastFailure.reason, lastFailure.kind).adaptive) return undefined;
  const { reason } = lastFailure;
  const waited = waitedFor(charged, reason);
  const failedAgain = 'charge' in decision && decision.charge.to === 'task' && decision.reason === reason;
  if (waited === 0 || !(outcome.kind === 'success' || failedAgain)) return undefined;
  return { reason, waitClass: waitClass(waited) };
}

type Counts = Omit<ObservedRetries, 'waited'>;

/** By type, source and reason, and then by the class of the wait. */
type CountsByReason = ReadonlyMap<string, ReadonlyMap<number, Counts>>;

/** What retries of all types did. */
export class RetryCounts {
  readonly #ofDay: CountsByReason;
  readonly #ofWeek: CountsByReason;

  constructor(ofDay: CountsByReason = new Map(), ofWeek: CountsByReason = new Map()) {
    this.#ofDay = ofDay;
    this.#ofWeek = ofWeek;
  }

  static async read({ records, upkeep }: Store): Promise<RetryCounts> {
    const [ofDay, ofWeek] = await Promise.all(
      [DAY, 7 * DAY].map(async (time) => countsFrom(await records.counters(upkeep.now() - time))),
    );
    return new RetryCounts(ofDay, ofWeek);
  }

  /** Those of a type and source for a reason; those after the shortest wait first. */
  of({ type, source }: { readonly type: string; readonly source: string }, reason: string): readonly ObservedRetries[] {
    const key = keyOf(type, source, reason);
    const [ofDay, ofWeek] = [this.#ofDay, this.#ofWeek].map((counts) => [...(counts.get(key) ?? [])]);
    const inDay = (ofDay ?? []).reduce((sum, [, { retries }]) => sum + retries, 0);
    return ((inDay < ENOUGH_IN_A_DAY ? ofWeek : ofDay) ?? [])
      .sort(([a], [b]) => a - b)
      .map(([exponent, counts]) => ({ waited: waitOfClass(exponent), ...counts }));
  }
}

function countsFrom({ counts: all }: Counters): CountsByReason {
  const byReason = new Map<string, Map<number, Counts>>();
  for (const { countedAs, count } of all) {
    const { type, source, outcome, retried } = readCountedAs(countedAs);
    if (!retried) continue;
    const key = keyOf(type, source, retried.reason);
    const classes = byReason.get(key) ?? new Map<number, Counts>();
    const { retries, succeeded } = classes.get(retried.waitClass) ?? { retries: 0, succeeded: 0 };
    const more = outcome === 'success' ? count : 0;
    classes.set(retried.waitClass, { retries: retries + count, succeeded: succeeded + more });
    byReason.set(key, classes);
  }
  return byReason;
}

function keyOf(...names: readonly string[]): string {
  return JSON.stringify(names);
}

/** The counts that a worker knows. */
export class KnownRetries {
  readonly #store: Store;
  readonly #clock: Clock;
  #counts = new RetryCounts();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading = Promise.resolve();

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  of(...about: Parameters<RetryCounts['of']>): readonly ObservedRetries[] {
    return this.#counts.of(...about);
  }

  /** Reads the counts if they are old. Never rejects: if they cannot be read, those that are known are used. */
  refresh(): Promise<void> {
    if (this.#clock.monotonic() - this.#readAt >= FRESH_FOR) {
      this.#readAt = this.#clock.monotonic();
      this.#reading = this.#read();
    }
    return this.#reading;
  }

  async #read(): Promise<void> {
    try {
      this.#counts = await RetryCounts.read(this.#store);
    } catch {
      // The store does not answer, so the outcome cannot be written yet either.
    }
  }
}
