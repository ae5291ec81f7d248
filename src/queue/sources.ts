import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError, StoreError } from '../errors.ts';
import { LIMIT_OPTIONS, type LimitOptions, limitsGiven } from '../limits.ts';
import { moment, name, refuseUnknown } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import type { Limits } from '../pace.ts';
import { newCondition } from '../source/condition.ts';
import { aged, isNormal, NORMAL } from '../source/memory.ts';
import { operate, type SourceAction } from '../source/operate.ts';
import { readMemory } from '../source/stored.ts';
import { factsOfCondition } from '../store/changes.ts';
import type { By, SourceRecord, Store } from '../store/store.ts';
import { ACTION_OPTIONS, type ActionOptions, by } from './operate.ts';

/** How often an action is tried again, because workers may change the state of the source between reading and writing it. */
const MOST_TRIES = 100;

const NOTHING_REMEMBERED = { tokens: 0, refunds: [] };

/** Who holds a source, why, and until when. */
export interface HoldSourceOptions extends ActionOptions {
  /** The hold ends by itself after this time. */
  readonly for?: DurationInput;
  /** The hold ends by itself then. */
  readonly until?: Date;
}

/** The operations of `holdfast.sources`. */
export class Sources {
  readonly #store: Store;

  /** Made by `openHoldfast`. */
  constructor(store: Store) {
    this.#store = store;
  }

  /** Lists every source that is not in its normal state: what holds it, its limits, and how many of its tasks run. */
  list(): Promise<readonly SourceRecord[]> {
    return this.#store.records.sources();
  }

  /**
   * Holds a source: none of its tasks is claimed until it is released, or until the given time. Running tasks go on; tasks that
   * were claimed ahead and have not begun are handed back. If it is already held, only the end of the hold changes.
   */
  async hold(source: string, options: HoldSourceOptions = {}): Promise<void> {
    refuseUnknown(options, [...ACTION_OPTIONS, 'for', 'until'], 'sources.hold');
    const { for: time, until, ...whose } = options;
    const whom = by(whose, 'sources.hold');
    await this.#store.sources.hold(name(source, 'source'), whom, this.#lengthOf(time, until));
  }

  /**
   * Releases a source from an operator's hold, an outage, a Retry-After, or the need for a person. Its tasks go on in the order
   * of their queues. A source that needed a person is first tested, with one task at a time; after an outage or a Retry-After,
   * its tasks are released slowly.
   */
  async release(source: string, options: ActionOptions = {}): Promise<void> {
    const whom = by(options, 'sources.release');
    await this.#store.sources.release(name(source, 'source'), whom);
    await this.#operate(source, 'release', whom);
  }

  /**
   * Lets one task test at once whether a source works that is held by an outage, by a Retry-After, or because it needs a person.
   * Returns false if it is not held in this way. It does not end an operator's hold.
   */
  async probe(source: string, options: ActionOptions = {}): Promise<boolean> {
    return this.#operate(name(source, 'source'), 'probe', by(options, 'sources.probe'));
  }

  /**
   * Limits a source for all workers: how often its tasks may start (`pace`), and how many may run at the same time
   * (`concurrency`). A limit that is left out stays; null removes it. A limit that a person sets here wins over code and
   * configuration.
   */
  async limit(source: string, options: LimitOptions & ActionOptions): Promise<void> {
    refuseUnknown(options, [...LIMIT_OPTIONS, ...ACTION_OPTIONS], 'sources.limit', OTHERWISE_CALLED.limits);
    const { pace, concurrency, ...whose } = options;
    const given = { ...(pace !== undefined && { pace }), ...(concurrency !== undefined && { concurrency }) };
    const limits = limitsGiven(given, 'sources.limit');
    const whom = by(whose, 'sources.limit');
    await this.#store.sources.limit(name(source, 'source'), limits, { ...whom, origin: 'person' });
  }

  /** Changes the memory of a source. Returns whether there was anything to change. */
  async #operate(source: string, action: SourceAction, whom: By): Promise<boolean> {
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      const state = await this.#store.sources.state(source);
      if (!state) return false;
      const memory = aged(readMemory(state.memory), state.age);
      // A memory that cannot be read counts as none, and its restriction must end.
      const done = isNormal(memory) ? { memory: NORMAL, change: NOTHING_REMEMBERED } : operate(memory, action);
      if (!done) return false;
      const condition = newCondition(memory, done.memory, done.change);
      const facts = condition
        ? factsOfCondition(condition, { change: action, by: whom })
        : JSON.stringify({ change: action, by: whom });
      const change = { ...done.change, facts };
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

/** Sets the limits of a source from code or configuration. */
export async function limitByConfig(store: Store, source: string, limits: Limits): Promise<void> {
  await store.sources.limit(source, limits, { actor: 'config', origin: 'config' });
}
