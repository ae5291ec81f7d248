import { setTimeout } from 'node:timers/promises';
import type { TaskFilter } from '../filter.ts';
import type { RemovableState, Retention } from '../retention.ts';
import type { ChangeFilter, ChangeRecord } from '../store/changes.ts';
import type { ActRecord, DueQuestion, FallingDue } from '../store/insight.ts';
import { COMPARED_AT_ONCE } from '../store/slices.ts';
import type {
  ClockRecord,
  Counts,
  CountsBy,
  ExecutionEntry,
  ImportedTask,
  LastTaker,
  Move,
  Moved,
  PruneCount,
  PrunedTask,
  QueueSince,
  ReadyCount,
  ReadyKind,
  Receipt,
  SourceRecord,
  Space,
  Store,
} from '../store/store.ts';
import { RedriveDriver } from '../worker/redrive-driver.ts';
import { NewEvents, type NewestEvents, newestEvents } from './events.ts';
import { type FailureGroupView, failureGroupsSeen } from './failures.ts';
import { removeOld } from './pruning.ts';
import { type Task, taskFrom } from './task-view.ts';

/** The pause between two steps of tidying, so that others can write to the store. */
const TIDY_PAUSE_MS = 5;

/** How many tasks are read at once. */
const RECORDS_AT_ONCE = 1_000;

export interface Search {
  /** May be infinite. */
  readonly limit: number;
  readonly before?: number | undefined;
  /** May be infinite. */
  readonly most: number;
  readonly keep?: (task: Task) => boolean;
}

/** How many tasks one call may remove. */
const REMOVED_AT_ONCE = 500;

/** Operations of a store for the command line and a dashboard. Programs do not need them. */
export class Administration {
  readonly #store: Store;

  constructor(store: Store) {
    this.#store = store;
  }

  /** As `countsBy` of the store. */
  countsBy<By extends keyof CountsBy>(by: By, most: number): Promise<readonly CountsBy[By][]> {
    return this.#store.records.countsBy(by, most);
  }

  /** As `changes` of the store. */
  changes(filter: ChangeFilter): Promise<readonly ChangeRecord[]> {
    return this.#store.records.changes(filter);
  }

  /** At most so many of the sources that need a person, are down or are held, in this order. */
  sourcesInTrouble(most: number): Promise<readonly SourceRecord[]> {
    return this.#store.records.sources(most);
  }

  /** As `readyOf` of the store. */
  readyOf(sources: readonly string[]): Promise<readonly ReadyCount[]> {
    return this.#store.records.readyOf(sources);
  }

  /** As `withoutWorker` of the store. */
  withoutWorker(most: number): Promise<readonly ReadyKind[]> {
    return this.#store.records.withoutWorker(most);
  }

  /** As `oldestReady` of the store. */
  oldestReady(): Promise<readonly QueueSince[]> {
    return this.#store.records.oldestReady();
  }

  /** As `oldestRunning` of the store. */
  oldestRunning(): Promise<readonly QueueSince[]> {
    return this.#store.records.oldestRunning();
  }

  /** As `failures.list`, but writes nothing: it answers also if the disk is full, or while another process writes. */
  failureGroups(): Promise<readonly FailureGroupView[]> {
    return failureGroupsSeen(this.#store);
  }

  /** As `acts` of the store. */
  acts(filter: Parameters<Store['records']['acts']>[0]): Promise<readonly ActRecord[]> {
    return this.#store.records.acts(filter);
  }

  /** As `fallingDue` of the store. */
  fallingDue(question: DueQuestion): Promise<FallingDue> {
    return this.#store.records.fallingDue(question);
  }

  /** The names of all sources that have had a ready task; given `from`, at most `most` of them from this name on. */
  sourceNames(from?: string, most?: number): Promise<readonly string[]> {
    return this.#store.records.sourceNames(from, most);
  }

  /** The names of all schedules. */
  async scheduleNames(): Promise<readonly string[]> {
    return (await this.#store.schedules.list()).map(({ name }) => name);
  }

  /** What happened to tasks, sources and queues: the newest events that fit a filter. @throws InvalidFilterError. */
  events(options: { readonly filter?: string; readonly limit: number }): Promise<NewestEvents> {
    return newestEvents(this.#store, options);
  }

  /** Reads what happens from now on. @throws InvalidFilterError. */
  follow(filter: string): NewEvents {
    return new NewEvents(this.#store, filter);
  }

  /** Takes the next steps of the redrives that no worker drives. `release` ends it. */
  redriveDriver(): Pick<RedriveDriver, 'drive' | 'release'> {
    return new RedriveDriver({ store: this.#store.redrives, onEnd: () => {} });
  }

  /** As `lastTakers` of the store. */
  lastTakers(types: readonly string[]): Promise<readonly LastTaker[]> {
    return this.#store.records.lastTakers(types);
  }

  /** Whether a worker ever published something about this type. */
  async isPublished(type: string): Promise<boolean> {
    return (await this.#store.records.published(type)) !== undefined;
  }

  /** The newest task of a type with this key. */
  async findByKey(key: string, type: string): Promise<Task | undefined> {
    const record = await this.#store.records.find({ key, type });
    return record && taskFrom(record);
  }

  /** Records imported tasks that were checked before, in one transaction. */
  recordImported(tasks: readonly ImportedTask[]): Promise<readonly Receipt[]> {
    return this.#store.tasks.import(tasks);
  }

  /** How many tasks each state has. */
  totals(): Promise<Counts['byState']> {
    return this.#store.records.totals();
  }

  /** As `lastExecutions` of the store. */
  lastExecutions(tasks: readonly Task[], which: 'any' | 'failed'): Promise<ReadonlyMap<number, ExecutionEntry>> {
    const ids = tasks.map(({ id }) => id);
    return ids.length === 0 ? Promise.resolve(new Map()) : this.#store.records.lastExecutions(ids, which);
  }

  /**
   * The newest tasks that match, of the newest `most` that may. `next`: where to go on, if there may be more. It may be there although
   * fewer than `limit` were found. `keep`: of these, only tasks that it accepts.
   */
  async search(
    filter: TaskFilter,
    { limit, before, most, keep }: Search,
  ): Promise<{ readonly tasks: readonly Task[]; readonly next: number | null }> {
    const found: Task[] = [];
    for (let [start, searched] = [before, 0]; ; ) {
      const compared = Math.min(COMPARED_AT_ONCE, most - searched);
      const wanted = keep ? RECORDS_AT_ONCE : Math.min(RECORDS_AT_ONCE, limit + 1 - found.length);
      const slice = { size: wanted, compared, ...(start !== undefined && { before: start }) };
      const { ids, next } = await this.#store.records.select(filter, slice);
      const tasks = ids.length === 0 ? [] : (await this.#store.records.records(ids)).map(taskFrom);
      found.push(...(keep ? tasks.filter(keep) : tasks));
      // One more than is wanted says that there are more.
      if (found.length > limit) return { tasks: found.slice(0, limit), next: found[limit - 1]?.id ?? null };
      if (next === undefined) return { tasks: found, next: null };
      searched += ids.length === wanted ? ids.length : compared;
      if (searched >= most) return { tasks: found, next };
      start = next;
    }
  }

  /** The ids of all tasks that match now, the newest first. */
  async select(filter: TaskFilter): Promise<readonly number[]> {
    const found: number[] = [];
    for (let before: number | undefined; ; ) {
      const { ids, next } = await this.#store.records.select(filter, before === undefined ? {} : { before });
      found.push(...ids);
      if (next === undefined) return found;
      before = next;
    }
  }

  /** An action on several tasks in one transaction. */
  moveAll(ids: readonly number[], move: Move): Promise<readonly Moved[]> {
    return this.#store.tasks.move(ids, move);
  }

  clock(): Promise<ClockRecord> {
    return this.#store.upkeep.clock();
  }

  /** Sets the store's clock to the wall clock. @throws StoreError if the store follows a server's clock. */
  resetClock(): Promise<void> {
    return this.#store.upkeep.resetClock();
  }

  /** As `space` of the store. */
  space(): Promise<Space> {
    return this.#store.upkeep.space();
  }

  /** As `backUp` of the store. */
  backUp(file: string): Promise<void> {
    return this.#store.upkeep.backUp(file);
  }

  /** As `vacuum` of the store. */
  vacuum(): Promise<void> {
    return this.#store.upkeep.vacuum();
  }

  /** As `endLeases` of the store. */
  endLeases(): Promise<void> {
    return this.#store.upkeep.endLeases();
  }

  /** As `verify` of the store. */
  verify(): Promise<readonly string[]> {
    return this.#store.upkeep.verify();
  }

  /** How many tasks `prune` would remove now, by state and reason. */
  prunable(retention: Retention): Promise<readonly PruneCount[]> {
    return this.#store.upkeep.prunable(retention);
  }

  /** Removes those of these tasks that are in one of these states, in batches. */
  async remove(
    ids: readonly number[],
    states: readonly RemovableState[],
    onRemoved: (tasks: readonly PrunedTask[]) => void,
  ): Promise<void> {
    const { upkeep } = this.#store;
    for (let i = 0; i < ids.length; i += REMOVED_AT_ONCE) {
      const some = ids.slice(i, i + REMOVED_AT_ONCE);
      for (let after: number | undefined = 0; after !== undefined; ) {
        const { removed, next }: Awaited<ReturnType<typeof upkeep.remove>> = await upkeep.remove(some, states, after);
        onRemoved(removed);
        after = next;
        await setTimeout(TIDY_PAUSE_MS);
      }
    }
  }

  /** Removes every task whose retention is over, in batches, and then the names that no task uses any more. */
  async prune(retention: Retention, onRemoved: (tasks: readonly PrunedTask[]) => void): Promise<void> {
    const { upkeep } = this.#store;
    await removeOld(upkeep, retention, onRemoved);
    while ((await upkeep.tidy()) > 0) await setTimeout(TIDY_PAUSE_MS);
  }
}
