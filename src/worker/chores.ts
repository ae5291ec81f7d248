import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { isEnabled, type Logger } from '../log.ts';
import type { RemovableState, Retention } from '../retention.ts';
import type { PrunedTask, Store } from '../store/store.ts';
import type { Announcer } from './announcer.ts';
import { clockTrouble } from './clock-trouble.ts';
import { forgetNormalSources } from './forget-sources.ts';
import type { RedriveDriver } from './redrive-driver.ts';

/** So often one of all workers removes what is old. */
const EVERY: Milliseconds = 3_600_000;

/** How long others have the store to themselves at least, between two batches. */
const SHORTEST_PAUSE: Milliseconds = 5;

const ACTIONS_AT_ONCE = 100;

export interface ChoresOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly announcer: Announcer;
  readonly worker: string;
  /** What is to be kept today. */
  readonly retention: () => Retention;
  readonly onRemoved: (tasks: readonly PrunedTask[]) => void;
  readonly redrives: RedriveDriver;
}

interface Chore {
  readonly run: () => Promise<void>;
  /** What is logged where it failed. It is tried again at the next look. */
  readonly failed: string;
}

/** What one worker does for all that share the store. Nothing waits for it. */
export class Chores {
  readonly #options: ChoresOptions;
  readonly #all: readonly Chore[] = [
    { run: () => this.#logActions(), failed: 'What operators did could not be read; trying again' },
    { run: () => this.#lookAtClock(), failed: 'The clock of the store could not be read; trying again' },
    { run: () => this.#prune(), failed: 'Old tasks could not be removed; trying again' },
    { run: () => this.#redrive(), failed: 'A redrive could not go on; trying again' },
  ];
  readonly #underWay = new Map<Chore, Promise<void>>();
  #doubted = false;
  #resting = true;
  /** What ends the pauses of chores that are under way and wait for the clock. */
  readonly #endPauses = new Set<() => void>();

  constructor(options: ChoresOptions) {
    this.#options = options;
  }

  /** Begins each chore that is not under way. */
  look(): void {
    this.#resting = false;
    for (const chore of this.#all) {
      if (!this.#underWay.has(chore)) this.#underWay.set(chore, this.#run(chore));
    }
  }

  /** Whether it does nothing, or waits for the clock. */
  get resting(): boolean {
    return this.#underWay.size === this.#endPauses.size;
  }

  /** Ends with the batch that is under way. */
  async rest(): Promise<void> {
    this.#resting = true;
    for (const end of this.#endPauses) end();
    await Promise.all(this.#underWay.values());
  }

  async #run(chore: Chore): Promise<void> {
    try {
      await chore.run();
    } catch (error) {
      const { log, worker } = this.#options;
      log.error({ err: error, worker }, chore.failed);
    }
    this.#underWay.delete(chore);
  }

  /** Says once that the clock jumped, and once more if it jumps again later. */
  async #lookAtClock(): Promise<void> {
    const { store, log, worker } = this.#options;
    const clock = await store.upkeep.clock();
    const trouble = clockTrouble(clock);
    if (trouble !== undefined && !this.#doubted) log.warn({ ...clock, worker }, trouble);
    this.#doubted = trouble !== undefined;
  }

  /** A log that takes no such lines leaves them to the log of another worker. */
  async #logActions(): Promise<void> {
    const { store, log, announcer } = this.#options;
    while (isEnabled(log, 'info') && !this.#resting) {
      const actions = await store.upkeep.takeActions(ACTIONS_AT_ONCE);
      for (const action of actions) announcer.log({ kind: 'action', action });
      if (actions.length < ACTIONS_AT_ONCE) return;
    }
  }

  async #prune(): Promise<void> {
    const { store, clock, announcer, retention, onRemoved } = this.#options;
    const { upkeep } = store;
    if (!(await upkeep.takeTurn('retention', EVERY))) return;
    await forgetNormalSources(store);
    const counts: Partial<Record<RemovableState, number>> = {};
    let after: number | undefined;
    // Who took the turn removes something, however soon it is told to rest.
    do {
      const began = clock.monotonic();
      const { removed, next } = await upkeep.prune(retention(), after);
      for (const { state } of removed) counts[state] = (counts[state] ?? 0) + 1;
      if (removed.length > 0) onRemoved(removed);
      after = next;
      // As long as it was taken from them.
      if (next !== undefined) await this.#pause(clock.monotonic() - began);
    } while (after !== undefined && !this.#resting);
    while (!this.#resting && (await upkeep.tidy()) > 0) await this.#pause(SHORTEST_PAUSE);
    if (Object.keys(counts).length === 0) return;
    announcer.log({ kind: 'pruned', removed: counts });
  }

  /** Until no redrive is left that runs, or others drive them all. */
  async #redrive(): Promise<void> {
    const { redrives } = this.#options;
    try {
      while (!this.#resting) {
        const wait = await redrives.drive();
        if (wait === undefined) return;
        await this.#pause(wait);
      }
    } finally {
      await redrives.release();
    }
  }

  /** Others have the store for at least so long. */
  async #pause(time: Milliseconds): Promise<void> {
    if (this.#resting) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        stop();
        this.#endPauses.delete(end);
        resolve();
      };
      const stop = this.#options.clock.after(Math.max(time, SHORTEST_PAUSE), end);
      this.#endPauses.add(end);
    });
  }
}
