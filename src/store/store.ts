import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Because, Charge, ChargedCount, Decision, Facts } from '../failure/decide.ts';
import type { Failure, FailureKind, Loss } from '../failure/outcome.ts';
import type { TaskFilter } from '../filter.ts';
import type { Pace } from '../pace.ts';
import type { RemovableState, Retention } from '../retention.ts';
import type { Change, Restriction, RestrictionCause } from '../source/change.ts';
import type { EndedState, ImportState, Needs, QueueOrder, TaskState } from '../task.ts';
import type { ChangeFilter, ChangeRecord } from './changes.ts';
import type { FailureStore, Sighted } from './failure-groups.ts';
import type { ActRecord, Counted, CountedPeriods, DueQuestion, FallingDue } from './insight.ts';
import type { ProcessIdentity } from './liveness.ts';
import type { By, NewTask, Receipt, Unique } from './new-task.ts';
import type { RedriveStore } from './redrives.ts';
import type { ScheduleStore } from './schedules.ts';

export type { By, NewTask, Receipt, Unique } from './new-task.ts';

/**
 * The interface between Holdfast and a database. A store keeps facts and hands out leases. It never decides about a retry and
 * never calls back. Payloads, results and policies are JSON text that it does not read.
 */
export interface Store {
  readonly tasks: TaskStore;
  readonly sources: SourceStore;
  readonly redrives: RedriveStore;
  readonly schedules: ScheduleStore;
  readonly failures: FailureStore;
  readonly records: Records;
  readonly upkeep: Upkeep;
  /**
   * Enqueues on a handle of the caller, inside its transaction if one is open, otherwise in a transaction of its own. It is
   * synchronous if the database is; a database across a network returns promises. Absent: the store cannot do this.
   * @throws InvalidInputError or StoreError for a handle on which the task would be lost, or would be in another store.
   */
  within?(handle: unknown): Enqueuer;
}

/** Enqueues on a caller's handle, as in `TaskStore`. The tasks exist when the transaction commits. */
export type Enqueuer =
  /** Synchronous. If it throws, what it wrote is undone. */
  | { readonly waits: false; enqueue(tasks: readonly NewTask[]): readonly Receipt[] }
  | { readonly waits: true; enqueue(tasks: readonly NewTask[]): Promise<readonly Receipt[]> };

/** Opens a store: `sqlite('tasks.db')` returns one. Only `open` touches the disk. */
export interface StoreOpener {
  readonly kind: string;
  open(world: World): Promise<Store>;
}

/** The clock and the random numbers that an opener gets. */
export interface World {
  readonly clock: Clock;
  /** At least 0 and below 1. */
  readonly random: () => number;
}

// ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface TaskStore {
  /**
   * Records tasks durably. If a task of the type already has the same `key`, the new task is not recorded, and the receipt names
   * the first one, whatever `unique` says. At most one task of a type occupies a unique key at a time; `occupies` and that task's
   * scope say how long. If the key is occupied, the `onConflict` of the new task decides. A replaced task ends as cancelled, and
   * a task that replaces a held one is held.
   * @throws UniqueConflictError for `reject`: then no task of the call is recorded.
   */
  enqueue(tasks: readonly NewTask[]): Promise<readonly Receipt[]>;
  /**
   * Records tasks of another queue with their states and counts, and `imported` in their history. A known key is handled as in
   * `enqueue`: its task stays as it is.
   */
  import(tasks: readonly ImportedTask[]): Promise<readonly Receipt[]>;
  /** Registers a worker, which gets a lease that it must renew. */
  join(worker: NewWorker): Promise<number>;
  /** Leases ready tasks to a worker, in the order of their queues. Raises `executions`. Never waits. */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Extends the worker's lease, and returns which of the named leases are lost, and which tasks to cancel. Leases that the worker
   * has had for longer than a lease length and does not name go to recovery, because it does not know them any more.
   * `claimingFor` is how long its present claim has had no answer: leases since then are kept, because that answer may name them.
   * So are leases since the call was made, however long the store was away.
   */
  renew(
    worker: number,
    leases: readonly Lease[],
    claimingFor?: Milliseconds,
    /** It holds nothing, and has been given nothing for a while. */
    isIdle?: boolean,
  ): Promise<Renewal>;
  /**
   * What the worker must stop: running tasks that were cancelled, and those of the given leases, whose tasks have not begun,
   * whose source is held or whose queue is paused. Reads only.
   */
  recalls(worker: number, waiting: readonly Lease[]): Promise<Recalls>;
  /**
   * Writes decisions. Each is written only if the worker still has the lease and the task has the revision from which the
   * decision was made. If a task would wait again while another task has its unique key, it is superseded: it ends as cancelled,
   * and the rest of the call is not affected. From the second settlement of a task on, the rest of a call is judged like a call of
   * its own. A success whose lease was lost still counts if the task was not started again and
   * waits, is being recovered, or needs a person because of this loss. Such a success does not change its source.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly Settled[]>;
  /**
   * Saves values of a task, each of which replaces the one before. False if the lease is over, or was handed out by `recover`: then
   * nothing was changed.
   */
  save(lease: Lease, saved: Saved): Promise<boolean>;
  /** Takes over leases that ended without an outcome, and waiting tasks whose deadline has passed, to be decided about. */
  recover(worker: number, limit: number): Promise<Recovery>;
  /** Publishes what recovery needs to know about types, if it has changed since these workers joined. */
  publish(types: NewWorker['publishes'], workers: readonly number[]): Promise<void>;
  /** Stores why a worker claims nothing at present; undefined: it claims again. Does nothing if the worker is gone. */
  reportTrouble(worker: number, trouble: Trouble | undefined): Promise<void>;
  /**
   * Records that a worker is stopping. If its process is killed before it has ended, its tasks are lost `while_stopping`: then no
   * task is charged or becomes a suspect.
   */
  stopping(worker: number): Promise<void>;
  /** Records a stray error of an execution, whether its task has ended or not. Nothing is recorded for a task that was removed. */
  recordStray(stray: Stray): Promise<void>;
  /** Removes a worker. Tasks that it still has can be recovered at once. */
  leave(worker: number): Promise<void>;
  /**
   * Removes a worker that has ended as soon as the store can be reached: in the background, even after the store was closed,
   * while its process lives. Tasks that it still has are lost `while_stopping`. A `leave` that succeeds meanwhile ends this.
   */
  leaveLater(worker: number): void;
  /** Stores that leased tasks must not run twice, if it is not stored yet whether they may. Lost leases change nothing. */
  forbidSecondRun(leases: readonly Lease[]): Promise<void>;
  /**
   * An operator's action on tasks by id. A task whose state does not allow it stays as it is and is listed with the cause; so
   * does a task that would need a unique key that another task has. A retry that starts a new round removes a deadline that has
   * passed.
   */
  move(ids: readonly number[], move: Move): Promise<readonly Moved[]>;
  /**
   * Changes the payload of a task that waits or is held, if it still is `before`. Its next execution has a new idempotency key.
   * Returns whether it did.
   */
  amend(id: number, before: string, after: string): Promise<boolean>;
}

/** A task of another queue. Its counts continue from those of the other queue. */
export interface ImportedTask extends Omit<NewTask, 'unique'>, Imported {
  /** Waiting: scheduled until it is due, then ready. */
  readonly stands: 'waiting' | Exclude<ImportState, 'scheduled' | 'ready'>;
  /** The result, if it succeeded. */
  readonly result?: string;
  /** When it ended, if it ended. Default: now. */
  readonly endedAt?: number;
  readonly by: By;
}

/** The counts of a task when it was imported. */
export interface Imported {
  /** At least the sum of its charges and deferrals. */
  readonly executions: number;
  readonly charged: readonly ChargedCount[];
  readonly deferrals: number;
  /** The reason of its last decision. Present if something was charged or deferred, or if it is dead or needs a person. */
  readonly reason?: string;
  /** The message of its last failure. */
  readonly error?: string;
}

export interface NewWorker {
  readonly name: string;
  readonly leaseFor: Milliseconds;
  /**
   * How long its handlers may run after its last renewal. During this time, its tasks are not taken over if its process is
   * provably alive. Absent: 0, only the lease counts.
   */
  readonly mayRunFor?: Milliseconds | 'none';
  /** What it claims, to find out which tasks no worker takes. Absent: any task without needs. */
  readonly takes?: Takes;
  /** The program that it is in: the path of its script. */
  readonly program?: string;
  /** What recovery needs to know about the types that this worker runs, as JSON by type. */
  readonly publishes: Readonly<Record<string, string>>;
}

/** What keeps a worker from working, such as a full disk. */
export interface Trouble {
  /** Of the last failure at the worker's fault, and its message. */
  readonly reason: string;
  readonly message: string;
}

/** An error of a handler that nobody waited for: a rejected promise, or an exception in a timer. */
export interface Stray {
  readonly task: number;
  readonly execution: number;
  readonly worker: string;
  readonly failure: Failure;
}

/** Which tasks a worker may take. */
export interface Takes {
  /** Absent: any. */
  readonly types?: readonly string[];
  readonly queues?: readonly string[];
  readonly categories?: readonly string[];
  readonly capabilities: Needs;
}

export interface ClaimRequest extends Takes {
  readonly worker: number;
  readonly limit: number;
  /** The most suspects among them that may run beside others. */
  readonly suspects: number;
  /** Whether a suspect that must run alone may be claimed (see `mustRunAlone`). It is then the only task of the claim. */
  readonly alone: boolean;
  /** Types whose tasks must not run twice. This is stored with the claimed tasks, if it is not stored yet whether they may. */
  readonly notIdempotent?: readonly string[];
  /** Only these tasks. */
  readonly only?: readonly number[];
  /** Not these tasks: their earlier execution still runs in the claiming process. */
  readonly except: readonly number[];
  /**
   * Up to this many more tasks beyond the limit, for a worker that will soon have free slots. Only if all tasks of the claim are
   * of these types, and only while the next tasks in order are too, may run twice, have no deadline and are no suspects. A
   * suspect that `suspects` and `alone` do not allow is skipped.
   */
  readonly ahead?: { readonly limit: number; readonly types: readonly string[] };
}

export interface Claim {
  /**
   * False if the store does not know the worker: it left, or was removed after a long time without a renewal. Then it must join
   * again.
   */
  readonly known: boolean;
  readonly tasks: readonly Claimed[];
  /** When the next waiting task is due or reaches its deadline, as far as the store knows. */
  readonly nextDueIn?: Milliseconds;
  /**
   * Waiting tasks whose deadline has passed, leased to be decided about as by `recover`. They are of all queues, and few enough
   * that no claim takes long. If there are more, `nextDueIn` is 0. `tasks` has none of them: no task starts after its deadline.
   */
  readonly expired: readonly Recovered[];
}

/** Proof that one worker may run one task now: settling needs all three. */
export interface Lease {
  readonly task: number;
  readonly execution: number;
  readonly token: string;
}

/** What an execution saves of its task while it runs, as JSON. */
export interface Saved {
  /** For later executions. */
  readonly checkpoint?: string;
  /** For people who look at the task. */
  readonly progress?: string;
}

export interface Claimed {
  readonly lease: Lease;
  readonly revision: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly key?: string;
  readonly payload: string;
  readonly policy?: string;
  readonly submittedAt: number;
  readonly deadline?: number;
  readonly facts: Facts;
  /** It is not stored whether it is idempotent. The facts say true; the definition may say otherwise. */
  readonly idempotenceUnsaid?: true;
  /** The failure before this execution, if one failed in this round. */
  readonly lastFailure?: LastFailure;
  /** What an earlier execution saved last, as JSON. It is kept over rounds, and removed with its task. */
  readonly checkpoint?: string;
  /**
   * The damaged parts of its row, which are not JSON: its counters, which count as zero, or its needs, which are then ignored.
   */
  readonly unreadable?: readonly string[];
  /** How many executions it had when it got a new idempotency key, if that was in this round. */
  readonly keyFrom?: number;
  /** The state of its source. Absent if the source is in its normal state, and in a recovery. */
  readonly sourceState?: SourceState;
  /** This execution is the one probe of its source. */
  readonly probe?: true;
  /** No ready task of the source was left after this claim. Only set if the source has a state. */
  readonly drained?: true;
}

/** The last failure of a task in its round. Its kind and reason are `unknown` if the task was imported. */
export interface LastFailure {
  readonly kind: FailureKind;
  readonly reason: string;
  readonly message: string;
  /** Absent if an older version of Holdfast stored it, or the task was imported. */
  readonly fingerprint?: string;
}

export interface Recovery {
  readonly tasks: readonly Recovered[];
  /**
   * When a lease that has run out may be taken over, unless it is renewed. Absent if there is none, or only leases of living
   * processes.
   */
  readonly nextIn?: Milliseconds;
  /** Other processes of this host with workers. When one dies, its tasks may be taken over at once. */
  readonly neighbours: readonly ProcessIdentity[];
}

/** Why this task is being decided about without an execution of this worker. */
export interface Recovered extends Claimed {
  readonly why: 'loss' | 'expiry';
  /** How a lost task was lost. This is determined when its worker is first found gone, and stored. */
  readonly how?: Loss;
  /** The name of the worker that lost it. */
  readonly lostBy?: string;
  /** What a worker published about its type, as JSON. */
  readonly published?: string;
}

export interface Renewal {
  /** As in `Claim`. */
  readonly known: boolean;
  readonly lost: readonly Lease[];
  readonly cancelled: readonly Lease[];
  /** Absent where the store does not say it. */
  readonly needed?: Needed;
  /**
   * The worker need not poll before its next renewal, in `renewIn`: the store tells it of work, or that renewal does. Its lease is
   * `leaseFor` long, until a claim gives it a task.
   */
  readonly idle?: { readonly renewIn: Milliseconds; readonly leaseFor: Milliseconds };
}

/** What a worker is to look for at once. */
export interface Needed {
  /** There is work now, or will be before the next renewal. Only said to a worker that is idle. */
  readonly work: boolean;
  /** Workers are gone, or others have joined. */
  readonly recovery: boolean;
  readonly chores: boolean;
}

export interface Recalls {
  readonly cancelled: readonly Lease[];
  readonly held: readonly Lease[];
}

export interface Settlement {
  readonly lease: Lease;
  readonly revision: number;
  readonly decision: Decision;
  readonly result?: string;
  /** The last progress of the execution, if it is not saved yet. Saved like any other, before the decision is written. */
  readonly progress?: string;
  readonly report: Report;
  /**
   * The change of its source. Absent: `{ revision: 0 }`, the source had no state when it was decided. `'any'`: it does not
   * concern its source, like an interruption, a loss or an expiry.
   */
  readonly source?: SourceChange | 'any';
  /** Under which key the store counts it, if it is written: see `Records.counters`. Absent: it is not counted. */
  readonly countedAs?: string;
  /** What it says of groups of failures. Absent: nothing. */
  readonly sighting?: Sighted;
}

/** What is stored in the history about an execution. */
export interface Report {
  readonly ranFor: Milliseconds;
  /** The outcome's kind: success, failure, deferral, interruption, loss or expiry. */
  readonly outcome: string;
  readonly failure?: Failure;
  /** The message of a deferral or interruption, or a note on a success. */
  readonly message?: string;
  /** It was handed back before its handler began, so it does not count as the first start. */
  readonly unbegun?: true;
}

export type Settled =
  /** It is written. `state` is the state of the task: cancelled if it would have waited again but was superseded. */
  | { readonly answer: 'settled'; readonly state: TaskState }
  /** The same settlement was written before. */
  | { readonly answer: 'already' }
  /** The lease was lost. The task was not changed; the report was kept as evidence. */
  | { readonly answer: 'stale' }
  /** The facts, or the state of the source, have changed since the claim: decide again with these, which are those after the call. */
  | {
      readonly answer: 'changed';
      readonly revision: number;
      readonly facts: Facts;
      /** Absent: its source is in its normal state now. */
      readonly sourceState?: SourceState;
    };

export type Move = By & {
  /** Only tasks that are in one of these states; another one is a conflict. */
  readonly from?: readonly TaskState[];
  /** Only tasks that have had exactly so many executions; another one is a conflict. */
  readonly executions?: number;
} /** `redrive` is a retry by a redrive, of a task that has ended or needs a person. */ & (
    | { readonly verb: 'cancel' | 'redrive' | 'hold' | 'release' }
    /** `newKey`: its next execution has a new idempotency key, also in the same round. */
    | { readonly verb: 'retry'; readonly newKey?: boolean }
    | { readonly verb: 'resolve'; readonly as: 'succeeded' | 'retry' | 'dead'; readonly result?: string }
  );

export type Moved =
  | { readonly id: number; readonly moved: true; readonly from: TaskState; readonly to: TaskState }
  /** A cancel of a running task is a request. Its worker finds it after a message, or at its next renewal. */
  | { readonly id: number; readonly moved: false; readonly from: TaskState; readonly why: 'requested' }
  | {
      readonly id: number;
      readonly moved: false;
      readonly from: TaskState;
      readonly why: 'conflict';
      /** The task that has its unique key, if this is the cause. */
      readonly occupiedBy?: number;
    }
  | { readonly id: number; readonly moved: false; readonly why: 'missing' };

// ── Sources and queues ───────────────────────────────────────────────────────────────────────────────────────────────

/** The holds, states and limits of sources, and the settings of queues. */
export interface SourceStore {
  /**
   * Holds a source: none of its tasks is claimed from now on, or for the given time. Changes the source and not its tasks. If the
   * source is already held, only the end of the hold changes.
   */
  hold(source: string, by: By, forMs?: Milliseconds): Promise<void>;
  release(source: string, by?: By): Promise<void>;
  /** Pauses a queue: none of its tasks is claimed. */
  pause(queue: string, by: By): Promise<void>;
  resume(queue: string, by?: By): Promise<void>;
  /** Changes settings of a queue; a setting that is left out stays. Resolves when its waiting tasks are in the new order. */
  setUp(queue: string, settings: Partial<QueueSettings>): Promise<void>;
  /** The state of a source that is not in its normal state. */
  state(source: string): Promise<SourceState | undefined>;
  /**
   * Changes the state of a source as a settlement does. False if the revision is not the current one: then nothing is changed.
   */
  change(source: string, change: SourceChange): Promise<boolean>;
  /**
   * Sets limits of a source; null removes a limit, and a limit that is left out stays. A limit of the configuration does not
   * replace one of a person.
   */
  limit(source: string, limits: SourceLimits, by: By & { readonly origin: LimitOrigin }): Promise<void>;
}

export interface SourceLimits {
  readonly pace?: Pace | null;
  /** How many tasks may run at the same time. */
  readonly concurrency?: number | null;
}

export type LimitOrigin = 'config' | 'person';

/** The state of a source that is not in its normal state. */
export interface SourceState {
  /** At least 1. A later state of the same source has a higher revision, even if the state was removed meanwhile. */
  readonly revision: number;
  /** JSON text that the store does not read. */
  readonly memory: string;
  /** How long ago it was written. */
  readonly age: Milliseconds;
}

/**
 * The change of a source by an outcome. Within one call of `settle`, each change raises the revision by one, and the next
 * settlement of the same source names the raised revision (starting at 0 if there was no state). If one of them gets `changed`
 * because of its source, so do all later ones of this source.
 */
export interface SourceChange {
  /** The revision of the state from which it was made; 0 if there was none. */
  readonly revision: number;
  /**
   * Absent: the state does not change, and only the revision is checked. A success without a change adds to the source's budget
   * if it is not full.
   *
   * Its `refunds` name executions. An execution is refunded if it was charged to its task in the present round, and the task has
   * not ended: its charge in the history becomes `refunded`, the count of its reason goes down by one, and a verdict of the task
   * is removed.
   */
  readonly change?: Change;
}

export type { Refund as ExecutionOfTask, Restriction, RestrictionCause } from '../source/change.ts';

export interface QueueSettings {
  /** `fifo` unless set. */
  readonly order: QueueOrder;
  /**
   * Whether its sources take turns: the source whose last turn is longest ago comes first, and the order of the queue applies
   * only within each source. A new source gets the last turn. A turn is one task, or up to four if more than a thousand sources
   * wait. Default false.
   */
  readonly fair: boolean;
  /** How often its tasks may start. Null: no limit. */
  readonly pace?: Pace | null;
  /** How many of its tasks may run at the same time. Null: no limit. */
  readonly concurrency?: number | null;
}

// ── Records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Records {
  /** A task by its id, or the newest with this key. Types do not share keys. */
  find(task: number | TaskKey): Promise<TaskRecord | undefined>;
  /** Newest first, a page at a time. */
  list(filter: ListFilter): Promise<readonly TaskRecord[]>;
  /** The ids of the tasks of one slice that match, newest first. No call takes long, however many tasks there are. */
  select(filter: TaskFilter, slice?: Slice): Promise<Selected>;
  /** The tasks with these ids that are there, newest first. */
  records(ids: readonly number[]): Promise<readonly TaskRecord[]>;
  /** The last executions of these tasks that were decided about, or the last of these that failed. By task. */
  lastExecutions(ids: readonly number[], which: 'any' | 'failed'): Promise<ReadonlyMap<number, ExecutionEntry>>;
  /**
   * The facts with which the outcome of a task's present or next execution would be decided, as a claim hands them out. Undefined
   * if there is no such task.
   */
  facts(id: number): Promise<Facts | undefined>;
  /** What happened to a task, oldest first: executions with a history row, and operators' actions. */
  history(id: number): Promise<readonly HistoryEntry[]>;
  /**
   * What is in the histories of all tasks in a span of time: executions that left an entry, stray errors, and actions of people. A success
   * at the first attempt leaves none.
   */
  events(span: EventSpan): Promise<readonly TaskEvent[]>;
  counts(): Promise<Counts>;
  /** How many tasks each state has: a part of `counts` that takes less time. */
  totals(): Promise<Counts['byState']>;
  /**
   * How many settlements were written since this time, by their `countedAs`. Each is counted in the transaction that writes it, and
   * stays counted when its task is removed. Counts are kept by minute for two hours, by hour for 14 days, by day for 400 days, and then by
   * 400 days; the period in which `since` lies counts as a whole.
   */
  counters(since: number): Promise<Counters>;
  /** As `counters`, and by the periods in which the counts are kept. */
  counterPeriods(since: number): Promise<Counters<CountedPeriods>>;
  /** The actions of people on tasks, the newest first. `before`: only those with smaller ids. */
  acts(filter: { readonly before?: number | undefined; readonly limit: number }): Promise<readonly ActRecord[]>;
  /** Which scheduled tasks fall due in a time. */
  fallingDue(question: DueQuestion): Promise<FallingDue>;
  /**
   * What happened to sources and queues, the newest first: changes of the state of a source, and actions of people. Each is written
   * with its change, and kept for 30 days.
   */
  changes(filter: ChangeFilter): Promise<readonly ChangeRecord[]>;
  workers(): Promise<readonly WorkerRecord[]>;
  /**
   * Every source that has a state, a hold or a limit, or whose budget is not full. With `mostInTrouble`: at most so many of those that
   * need a person, are down or are held, in this order.
   */
  sources(mostInTrouble?: number): Promise<readonly SourceRecord[]>;
  queues(): Promise<readonly QueueRecord[]>;
  /**
   * By source: of every source that `sources` lists, and of at most `most` others: those with the most tasks first. By queue: of
   * every queue. At most `most` scheduled tasks are counted; if there are more, `exact` is false and the number is a minimum.
   */
  countsBy<By extends keyof CountsBy>(by: By, most: number): Promise<readonly CountsBy[By][]>;
  /** Of these sources, those that have ready tasks, and how many. */
  readyOf(sources: readonly string[]): Promise<readonly ReadyCount[]>;
  /**
   * The ready tasks that no worker with a valid lease takes and nothing else holds, by queue, type, category and needs. Of each, at
   * most `most` are counted.
   */
  withoutWorker(most: number): Promise<readonly ReadyKind[]>;
  /**
   * Of each queue with the order `fifo` and ready tasks: when the one that has waited longest was submitted, or ran last. Held tasks
   * are left out, and those of held sources are not.
   */
  oldestReady(): Promise<readonly QueueSince[]>;
  /** Of each queue with running tasks: when the execution began that has run longest. */
  oldestRunning(): Promise<readonly QueueSince[]>;
  /** The names of all sources that have had a ready task, in order. Given `from`: at most `most`, from this name on. */
  sourceNames(from?: string, most?: number): Promise<readonly string[]>;
  /** Of these types: the worker that took each last by its name, whether it is still there or not. None if no worker did. */
  lastTakers(types: readonly string[]): Promise<readonly LastTaker[]>;
  /** What a worker last published about this type, as JSON; undefined if none did. */
  published(type: string): Promise<string | undefined>;
  /** The tasks of the group whose follow-up has this id, in the order of their ids; none if it is no follow-up. */
  groupOf(followUp: number): Promise<readonly TaskOfGroup[]>;
}

/** The worker that last took a type. */
export interface LastTaker {
  readonly type: string;
  readonly worker: string;
  readonly host: string;
  readonly program?: string;
  /** Until when its lease lasts or lasted, but not later than now. */
  readonly at: number;
}

/** A task of a group. */
export interface TaskOfGroup {
  readonly id: number;
  /** How it ended for the first time; absent: it has not. A retry after that does not change it. */
  readonly ended?: EndedState;
  /** Its result, as JSON, if it has succeeded. */
  readonly result?: string;
}

export interface Counters<Row extends Counted = Counted> {
  /** When the first of these settlements was written. Absent if there are none. */
  readonly firstAt?: number;
  readonly counts: readonly Row[];
}

export interface TaskKey {
  readonly key: string;
  readonly type?: string | undefined;
}

export interface CountsBy {
  readonly source: SourceCounts;
  readonly queue: QueueCounts;
}

export interface QueueSince {
  readonly queue: string;
  readonly since: number;
}

/** How many tasks of a source or type are ready. */
export interface ReadyCount {
  readonly name: string;
  readonly ready: number;
}

/** How many tasks of one queue, type, category and needs are ready. */
export interface ReadyKind {
  readonly queue: string;
  readonly type: string;
  readonly category?: string;
  readonly needs?: Needs;
  readonly ready: number;
}

export interface SourceCounts extends ReadyCount {
  readonly running: number;
}

export interface QueueCounts extends SourceCounts {
  readonly scheduled: number;
  readonly exact: boolean;
}

export interface SourceRecord {
  readonly name: string;
  /** By an operator. */
  readonly hold?: By & { readonly at: number; readonly until?: number };
  readonly state?: SourceState & {
    readonly restriction?: Restriction;
    /** How long until it opens by itself; 0 if it is open now. Absent: only a person or an outcome opens it. */
    readonly opensIn?: Milliseconds;
  };
  /** The tokens left in its budget; absent if it is full. */
  readonly tokens?: number;
  readonly limits?: {
    readonly pace?: Pace;
    readonly concurrency?: number;
    readonly by: By & { readonly at: number; readonly origin: LimitOrigin };
  };
  /** How many of its tasks run. */
  readonly running?: number;
}

export interface QueueRecord extends QueueSettings {
  readonly name: string;
  readonly paused?: By & { readonly at: number };
}

/**
 * Why a ready task does not start: an operator holds its source; its source is down (`breaker`), asked for a pause (`rate_limit`) or
 * needs a person; the budget of its source for retries is used up; its source or its queue may start nothing right now (`pace`) or
 * runs as many as it may (`concurrency`); its queue is paused; or no worker has its type and meets its needs.
 */
export type HeldBy =
  | 'source_held'
  | RestrictionCause
  | 'budget'
  | 'pace'
  | 'concurrency'
  | 'queue_paused'
  | 'no_worker';

export interface ListFilter extends TaskFilter {
  /** Only tasks with a smaller id than this. */
  readonly before?: number;
  readonly limit: number;
}

/** A slice of the tasks, the newest first. */
export interface Slice {
  /** Only tasks with smaller ids. */
  readonly before?: number;
  /** At most so many are returned. Default: as many as are compared. */
  readonly size?: number;
  /** How many tasks in the states of the filter are compared with the rest of it, if it has more than states. Default 10,000. */
  readonly compared?: number;
}

export interface Selected {
  readonly ids: readonly number[];
  /** Where the next slice begins. Absent if no other task can match. */
  readonly next?: number;
}

export interface TaskRecord {
  readonly id: number;
  readonly type: string;
  readonly state: TaskState;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly needs?: Needs;
  readonly key?: string;
  readonly unique?: Unique;
  readonly payload: string;
  readonly result?: string;
  readonly policy?: string;
  /** What an execution reported last of its progress, and when. */
  readonly progress?: string;
  readonly progressAt?: number;
  readonly idempotent: boolean;
  readonly submittedAt: number;
  readonly createdAt: number;
  /** When a scheduled task is due. */
  readonly dueAt?: number;
  /** It is due when its group has ended. */
  readonly waitsForGroup?: true;
  readonly deadline?: number;
  readonly endedAt?: number;
  /** How often a worker claimed it, over all rounds. Mostly that is one call of its handler. */
  readonly executions: number;
  readonly charged: readonly ChargedCount[];
  readonly deferrals: number;
  readonly recoveries: number;
  /** How many of its last executions were lost with their workers. From 2 on it runs alone. */
  readonly lostInARow: number;
  /** The reason of its last decision. */
  readonly reason?: string;
  /** The damaged columns of its row, which are not JSON. They are empty or absent here. Such a task is not run; it needs a person. */
  readonly unreadable?: readonly string[];
  /** For a ready task that cannot start: what holds it. */
  readonly heldBy?: HeldBy;
  /** How long until this ends by itself, if it is known. */
  readonly heldFor?: Milliseconds;
  /** For a running task: its worker, since when it runs, and whether it was cancelled. */
  readonly running?: { readonly worker: string; readonly since: number; readonly cancelRequested: boolean };
}

export type HistoryEntry = ExecutionEntry | StrayEntry | ActionEntry;

export interface ExecutionEntry {
  readonly kind: 'execution';
  readonly execution: number;
  readonly worker: string;
  readonly startedAt: number;
  readonly endedAt: number;
  readonly outcome: string;
  readonly next: string;
  /** The next state, and the delay. */
  readonly after?: Milliseconds;
  /** `refunded`: it was charged to the task, and given back when its source was found to be down. */
  readonly charge: Charge['to'] | 'refunded';
  readonly failure?: Failure;
  readonly message?: string;
  readonly because?: Because;
  /** Reported by a worker whose lease was lost: kept as evidence, but not applied. */
  readonly late: boolean;
  /** As in `TaskRecord`. */
  readonly unreadable?: readonly string[];
}

/** A part of the history of any task. */
export interface TaskEvent {
  /** Different for each event. */
  readonly id: string;
  readonly at: number;
  readonly task: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly entry: HistoryEntry;
}

/** What happened to a source or a queue. */
export interface ChangeEvent {
  /** Different for each event. */
  readonly id: string;
  readonly at: number;
  readonly change: ChangeRecord;
}

export type HappenedEvent = TaskEvent | ChangeEvent;

/** From a time on and before another one: at most so many events, the oldest first or the newest first. */
export interface EventSpan {
  readonly from: number;
  readonly before: number;
  readonly limit: number;
  readonly newestFirst: boolean;
}

/** It did not change the task. */
export interface StrayEntry {
  readonly kind: 'stray';
  readonly at: number;
  readonly worker: string;
  readonly execution: number;
  readonly failure?: Failure;
  /** As of an execution. */
  readonly unreadable?: readonly string[];
}

export interface ActionEntry {
  readonly kind: 'action';
  readonly at: number;
  readonly actor: string;
  readonly verb: string;
  readonly note?: string;
  readonly from: TaskState | 'elsewhere';
  readonly to: TaskState;
  /** The counts of an imported task, if there were any. */
  readonly imported?: Imported;
  /** As in `TaskRecord`. */
  readonly unreadable?: readonly string[];
}

export interface Counts {
  readonly byState: Readonly<Record<TaskState, number>>;
  /** How many of the scheduled tasks failed or were deferred before. */
  readonly retrying: number;
  /** Waiting tasks that are due. */
  readonly due: number;
  /** Tasks that need a person or are dead, by reason. */
  readonly byReason: readonly { readonly state: TaskState; readonly reason: string; readonly count: number }[];
  readonly nextDueAt?: number;
}

export interface WorkerRecord {
  readonly id: number;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  /** The path of the script that it is in. */
  readonly program?: string;
  readonly joinedAt: number;
  readonly leaseUntil: number;
  /**
   * Whether it still has its tasks: its lease has not run out, or its process is provably alive and may go on. For a worker on
   * another host or in another pid namespace, only the lease counts.
   */
  readonly keepsTasks: boolean;
  readonly running: number;
  /** What it may claim. */
  readonly takes: Takes;
  /** The versions of the policies that it published, by type, and since when it has them. */
  readonly policies?: { readonly since: number; readonly of: Readonly<Record<string, string>> };
  /** Why it claims nothing at present, and since when. */
  readonly trouble?: Trouble & { readonly since: number };
}

/**
 * What may have happened: tasks became ready, running or claimed tasks were cancelled or held, workers came or went, or schedules
 * were set. `any` if
 * it is not known which.
 */
export type News = 'work' | 'recall' | 'workers' | 'schedules' | 'any';

// ── Upkeep ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Upkeep {
  /** Where and what the store is, for people. */
  describe(): StoreDescription;
  /** The store's own clock, in milliseconds of the epoch. */
  now(): number;
  /** The condition of this clock. */
  clock(): Promise<ClockRecord>;
  /**
   * Sets the store's clock to the host's wall clock, even back: an operator says that the wall clock is right. Times that were
   * written with a later clock are moved back by the same amount: leases, waits of retries, places in the order, and the last
   * times of chores. Deadlines, the history, and the first due time of a task stay.
   * @throws StoreError if the store follows a server's clock.
   */
  resetClock(): Promise<void>;
  /** How much space it takes. */
  space(): Promise<Space>;
  /**
   * Writes a consistent copy to a new file, while others go on writing.
   * @throws StoreError if the file exists, or if the store is backed up by the tools of its server.
   */
  backUp(file: string): Promise<void>;
  /** Gives free space back to the disk. Others wait meanwhile. @throws StoreError if the server does this by itself. */
  vacuum(): Promise<void>;
  /**
   * Ends all leases, after a backup was restored. Workers that ran before can change no task any more. Their tasks are recovered at
   * once, and nobody is charged.
   */
  endLeases(): Promise<void>;
  /** Whether all processes that use the store are on this host. Then, if one cannot write to it, the others cannot either. */
  readonly isLocal: boolean;
  /**
   * Calls back when something happened that concerns workers. This is only a hint; workers also poll. Returns a function that
   * ends it.
   */
  onNews(listener: (news: News) => void): () => void;
  /** Every broken invariant that it finds, as sentences; none if the store is sound. */
  verify(): Promise<readonly string[]>;
  /** How many tasks `prune` would remove at this moment, by state and reason: first what succeeded, then the most frequent. */
  prunable(retention: Retention): Promise<readonly PruneCount[]>;
  /**
   * Removes a small batch of tasks whose retention is over, each with everything that belongs to it, so that its key is free
   * again. Other writers should wait at most 50 ms for it. It goes through the tasks in its own order, starting after `after`; if
   * the process dies, the next call starts again. Tasks that have not ended are never removed, except `needs_manual` if the
   * retention names a time for it.
   */
  prune(retention: Retention, after?: number): Promise<Pruned>;
  /**
   * Removes those of these tasks that are in one of these states, in the order of their ids, each with everything that belongs to it. It may stop
   * early: `next` is the id after which the next call continues.
   */
  remove(ids: readonly number[], states: readonly RemovableState[], after?: number): Promise<Pruned>;
  /**
   * Removes some of the names that no task uses any more, if there are very many of them, and gives some free space back to the disk,
   * if there is much. Returns how much it did; 0 when it is done. A removed name that is used again is made anew.
   */
  tidy(): Promise<number>;
  /**
   * Adds some of the newest counts of settlements to the counters of their minutes. Does nothing if this process has settled nothing
   * since the last call. Returns whether there are more.
   */
  gatherCounts(): Promise<boolean>;
  /** Whether this caller does a chore now: true for exactly one of all processes, once in the given time. */
  takeTurn(chore: string, every: Milliseconds): Promise<boolean>;
  /**
   * Operators' actions, and cancellations that followed from unique keys, that are not logged yet. Each is returned once, to one
   * of all processes, oldest first. Without those that settlements return in their answers, imports, and actions older than a
   * day.
   */
  takeActions(limit: number): Promise<readonly ActionTaken[]>;
  /**
   * Before a close: after this time, pending calls are not waited for any more. They reject with an error that says that it is
   * not known whether they were written. Then this resolves. If it is called several times, the shortest time counts.
   */
  giveUpAfter(time: Milliseconds): Promise<void>;
  /** Waits for pending calls and closes the database. Calls after it are refused. */
  close(): Promise<void>;
}

/** The store's clock, compared with the host's. */
export interface ClockRecord {
  readonly now: number;
  readonly wall: number;
  /** The wall clock jumped forward. The store will follow it after this time, if it stays there. */
  readonly believedIn?: Milliseconds;
  /** The clock was this much later after a boot than before it. */
  readonly leapt?: Milliseconds;
  /** For how long no task is removed by age, because the clock jumped. */
  readonly removesIn?: Milliseconds;
}

/** How many tasks of a state have ended with, or need a person for, a reason. Succeeded tasks have no reason. */
export interface PruneCount {
  readonly state: RemovableState;
  readonly reason?: string;
  readonly count: number;
}

export interface PrunedTask {
  readonly id: number;
  readonly type: string;
  readonly state: RemovableState;
  readonly reason?: string;
}

export interface Pruned {
  readonly removed: readonly PrunedTask[];
  /** The id after which to continue; absent when all tasks were checked. */
  readonly next?: number;
}

/** An action in the history of a task, with its task. */
export interface ActionTaken extends By {
  readonly task: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly at: number;
  readonly verb: string;
  readonly from: TaskState;
  readonly to: TaskState;
}

export interface Space {
  readonly bytes: number;
  /** Bytes within these that hold nothing. Absent: not known. */
  readonly free?: number;
  /** The size of the write-ahead log, if it is a file beside the store. */
  readonly log?: number;
  /** Rows that are deleted or replaced, and not cleared up yet. */
  readonly deadRows?: number;
}

export interface StoreDescription {
  readonly kind: string;
  readonly where: string;
  readonly schema: number;
  readonly durability: string;
  readonly driver: string;
}
