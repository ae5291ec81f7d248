import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError, StoreError } from '../errors.ts';
import { LIMIT_OPTIONS, type LimitOptions, limitsGiven } from '../limits.ts';
import { moment, name, refuseUnknown } from '../options.ts';
import type { Limits } from '../pace.ts';
import { aged, isNormal } from '../source/memory.ts';
import { operate, type SourceAction } from '../source/operate.ts';
import { readMemory } from '../source/stored.ts';
import type { SourceRecord, Store } from '../store/store.ts';
import { ACTION_OPTIONS, type ActionOptions, by } from './operate.ts';

/** Workers may change the state of a source between a look at it and the action. */
const MOST_TRIES = 100;

const NOTHING_REMEMBERED = { tokens: 0, refunds: [] };

/** Who holds a source, why, and until when. */
export interface HoldSourceOptions extends ActionOptions {
  /** The hold ends by itself after so long. */
  readonly for?: DurationInput;
  /** The hold ends by itself then. */
  readonly until?: Date;
}

/** What a person does to sources, as `holdfast.sources`. */
export class Sources {
  readonly #store: Store;

  /** Made by `openHoldfast`. */
  constructor(store: Store) {
    this.#store = store;
  }

  /** Every source that is not in its normal state: what holds it, its limits, and how many of its tasks run. */
  list(): Promise<readonly SourceRecord[]> {
    return this.#store.records.sources();
  }

  /**
   * Holds a source: none of its tasks is claimed until it is released, or the time is over, however many there are. What runs goes on;
   * what a worker had claimed ahead and not begun is handed back. Of a source that is held, only the end of its hold changes.
   */
  async hold(source: string, options: HoldSourceOptions = {}): Promise<void> {
    refuseUnknown(options, [...ACTION_OPTIONS, 'for', 'until'], 'sources.hold');
    const { for: time, until, ...whose } = options;
    const whom = by(whose, 'sources.hold');
    await this.#store.sources.hold(name(source, 'source'), whom, this.#lengthOf(time, until));
  }

  /**
   * Ends what holds a source: an operator's hold, an outage, a Retry-After, or that it needs a person. Its tasks go on in the order of
   * their queues. One that needed a person is probed first, by one task at a time; after an outage or Retry-After they are released slowly.
   */
  async release(source: string): Promise<void> {
    await this.#store.sources.release(name(source, 'source'));
    await this.#operate(source, 'release');
  }

  /**
   * Has one task try at once whether a source works that is shut by an outage, a Retry-After, or because it needs a person. Answers
   * false where it is not shut so; an operator's hold is not ended by this.
   */
  async probe(source: string): Promise<boolean> {
    return this.#operate(name(source, 'source'), 'probe');
  }

  /**
   * Limits a source for all workers: how often its tasks may start (`pace`), and how many may run at the same time (`concurrency`).
   * What is left out stays; null removes a limit. What a person sets here goes before what code and configuration say.
   */
  async limit(source: string, options: LimitOptions & ActionOptions): Promise<void> {
    refuseUnknown(options, [...LIMIT_OPTIONS, ...ACTION_OPTIONS], 'sources.limit');
    const { pace, concurrency, ...whose } = options;
    const given = { ...(pace !== undefined && { pace }), ...(concurrency !== undefined && { concurrency }) };
    const limits = limitsGiven(given, 'sources.limit');
    const whom = by(whose, 'sources.limit');
    await this.#store.sources.limit(name(source, 'source'), limits, { ...whom, origin: 'person' });
  }

  /** Changes what is remembered of a source. Answers whether that was to be changed. */
  async #operate(source: string, action: SourceAction): Promise<boolean> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const state = await this.#store.sources.state(source);
      if (!state) return false;
      const memory = aged(readMemory(state.memory), state.age);
      // Nothing can be learnt from a memory that cannot be read, and what it restricts has to end.
      const change = isNormal(memory) ? NOTHING_REMEMBERED : operate(memory, action)?.change;
      if (!change) return false;
      if (await this.#store.sources.change(source, { revision: state.revision, change })) return true;
    }
    throw new StoreError('store_busy', `The state of ${source} changes all the time. Try again.`, { retryable: true });
  }

  #lengthOf(time: DurationInput | undefined, until: Date | undefined): Milliseconds | undefined {
    if (time !== undefined && until !== undefined) {
      throw new InvalidInputError('sources.hold takes `for` or `until`, not both.');
    }
    if (time !== undefined) return duration(time, 'for');
    if (until === undefined) return undefined;
    const length = moment(until, 'until').getTime() - this.#store.upkeep.now();
    if (length > 0) return length;
    throw new InvalidInputError(`until must be in the future, got ${until.toISOString()}.`);
  }
}

/** Limits a source as code or configuration says. */
export async function limitByConfig(store: Store, source: string, limits: Limits): Promise<void> {
  await store.sources.limit(source, limits, { actor: 'config', origin: 'config' });
}
