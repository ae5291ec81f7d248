import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { isEnabled, type Logger } from '../log.ts';
import { PRUNE_EVERY, type RemovableState, type Retention } from '../retention.ts';
import type { PrunedTask, Store } from '../store/store.ts';
import type { Announcer } from './announcer.ts';
import { clockTrouble } from './clock-trouble.ts';
import { gatherFailures } from './failure-groups.ts';
import { forgetNormalSources } from './forget-sources.ts';
import type { RedriveDriver } from './redrive-driver.ts';
import type { ScheduleTicker } from './schedule-ticker.ts';

/** The least pause between two batches, so that others can use the store. */
const SHORTEST_PAUSE: Milliseconds = 5;

const ACTIONS_AT_ONCE = 100;

export interface ChoresOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
  readonly announcer: Announcer;
  readonly worker: string;
  /** The retention that applies now. */
  readonly retention: () => Retention;
  readonly onRemoved: (tasks: readonly PrunedTask[]) => void;
  readonly redrives: RedriveDriver;
  readonly schedules: ScheduleTicker;
}

interface Chore {
  readonly run: () => Promise<void>;
  /** What is logged if it fails. It is tried again at the next beat. */
  readonly failed: string;
}

/** The chores that one worker does for all workers of the store. Nothing waits for them. */
export class Chores {
  readonly #options: ChoresOptions;
  readonly #clockChore: Chore = {
    run: () => this.#lookAtClock(),
    failed: 'The clock of the store could not be read; trying again',
  };
  readonly #countChore: Chore = {
    run: () => this.#gatherCounts(),
    failed: 'The counts of settlements could not be added up; trying again',
  };
  readonly #all: readonly Chore[] = [
    { run: () => this.#logActions(), failed: 'The actions of operators could not be read for the log; trying again' },
    this.#clockChore,
    this.#countChore,
    { run: () => this.#prune(), failed: 'Old tasks could not be removed; trying again' },
    { run: () => this.#redrive(), failed: 'A redrive could not continue; trying again' },
    { run: () => this.#options.schedules.look(), failed: 'The schedules could not be read; trying again' },
  ];
  readonly #underWay = new Map<Chore, Promise<void>>();
  #doubted = false;
  #resting = true;
  /** Functions that end the pauses of running chores. */
  readonly #endPauses = new Set<() => void>();

  constructor(options: ChoresOptions) {
    this.#options = options;
  }

  /** Begins each chore that is not running. If the store says that no others are needed, only those of this process. */
  look(areNeeded = true): void {
    this.#resting = false;
    for (const chore of areNeeded ? this.#all : [this.#clockChore, this.#countChore]) {
      if (!this.#underWay.has(chore)) this.#underWay.set(chore, this.#run(chore));
    }
  }

  /** Whether no chore runs, or all that run wait for the clock. */
  get resting(): boolean {
    return this.#underWay.size === this.#endPauses.size;
  }

  /** Stops after the current batch. */
  async rest(): Promise<void> {
    this.#resting = true;
    this.#options.schedules.rest();
    for (const end of this.#endPauses) end();
    await Promise.all(this.#underWay.values());
    // One that ran may have set its timer again.
    if (this.#resting) this.#options.schedules.rest();
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

  async #gatherCounts(): Promise<void> {
    const { upkeep, failures } = this.#options.store;
    while (!this.#resting && (await upkeep.gatherCounts())) await this.#pause(SHORTEST_PAUSE);
    if (!failures.takeNew()) return;
    while (!this.#resting && (await gatherFailures(failures))) await this.#pause(SHORTEST_PAUSE);
  }

  /** If this log does not write lines of this level, another worker's log gets them. */
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
    if (!(await upkeep.takeTurn('retention', PRUNE_EVERY))) return;
    await forgetNormalSources(store);
    const counts: Partial<Record<RemovableState, number>> = {};
    let after: number | undefined;
    // A worker that took the turn removes at least one batch, even if it is stopped meanwhile.
    do {
      const began = clock.monotonic();
      const { removed, next } = await upkeep.prune(retention(), after);
      for (const { state } of removed) counts[state] = (counts[state] ?? 0) + 1;
      if (removed.length > 0) onRemoved(removed);
      after = next;
      // The pause is at least as long as the batch took.
      if (next !== undefined) await this.#pause(clock.monotonic() - began);
    } while (after !== undefined && !this.#resting);
    while (!this.#resting && (await upkeep.tidy()) > 0) await this.#pause(SHORTEST_PAUSE);
    if (Object.keys(counts).length === 0) return;
    announcer.log({ kind: 'pruned', removed: counts });
  }

  /** Until no redrive runs, or other processes drive all of them. */
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

  /** The least pause, so that others can use the store. */
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
