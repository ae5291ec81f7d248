import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Because, Charge, ChargedCount, Decision, Facts } from '../failure/decide.ts';
import type { Failure, Loss } from '../failure/outcome.ts';
import type { Pace } from '../pace.ts';
import type { RemovableState, Retention } from '../retention.ts';
import type { Change, Restriction, RestrictionCause } from '../source/change.ts';
import type { ImportState, Needs, QueueOrder, TaskState, UniqueConflict, UniqueScope } from '../task.ts';
import type { ProcessIdentity } from './liveness.ts';
import type { RedriveStore } from './redrives.ts';

/**
 * The seam between Holdfast and a database. A store keeps facts and hands out leases; it never weighs a retry and never
 * calls back. Payloads, results and policies pass through it as JSON text that it does not read.
 */
export interface Store {
  readonly tasks: TaskStore;
  readonly sources: SourceStore;
  readonly redrives: RedriveStore;
  readonly records: Records;
  readonly upkeep: Upkeep;
  /**
   * Enqueues on a handle of the caller's, inside its transaction if one is open, else in one of its own. Where the database
   * answers at once, so does this; one across a network answers promises. Absent: the store cannot.
   * @throws InvalidInputError or StoreError for a handle on which the task would be lost, or would not be this store's.
   */
  within?(handle: unknown): Enqueuer;
}

/** What enqueues on a caller's handle. As in `TaskStore`; what was written counts when the transaction commits. */
export type Enqueuer =
  /** At once; what it wrote is undone where this throws. */
  | { readonly waits: false; enqueue(tasks: readonly NewTask[]): readonly Receipt[] }
  | { readonly waits: true; enqueue(tasks: readonly NewTask[]): Promise<readonly Receipt[]> };

/** What opens a store: `sqlite('tasks.db')` returns one. Opening it is what touches the disk. */
export interface StoreOpener {
  readonly kind: string;
  open(world: World): Promise<Store>;
}

/** Time and chance, as the opener is handed them. */
export interface World {
  readonly clock: Clock;
  /** At least 0 and below 1. */
  readonly random: () => number;
}

// ── Tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface TaskStore {
  /**
   * Records tasks durably. A task whose `key` its type already has is not recorded again: the first one is answered, whatever
   * its `unique` says. Of tasks of a type with the same unique key at most one occupies it at a time, as `occupies` has it
   * with that task's own scope; a new one meets it by its own `onConflict`. One that is replaced ends as cancelled, and what
   * replaces a held one is held.
   * @throws UniqueConflictError for `reject`: then none of the call's tasks is recorded.
   */
  enqueue(tasks: readonly NewTask[]): Promise<readonly Receipt[]>;
  /**
   * Records tasks of another queue as they stood there, with what was counted of them, and `imported` in their history. A key
   * that is known is answered as by `enqueue`, and that task stays as it is.
   */
  import(tasks: readonly ImportedTask[]): Promise<readonly Receipt[]>;
  /** Announces a worker, which gets a lease of its own to renew. */
  join(worker: NewWorker): Promise<number>;
  /** Leases ready tasks to a worker, in their queues' order. Raises `executions`. Never waits. */
  claim(request: ClaimRequest): Promise<Claim>;
  /**
   * Extends the worker's lease, and says which of the leases that it believes in are gone, and which to cancel. What the worker
   * holds and does not name, for longer than a lease, is given to recovery: it does not know of it any more. `claimingFor` is how
   * long its present claim has had no answer: what it was given since then may be named by that answer, and is kept.
   */
  renew(worker: number, leases: readonly Lease[], claimingFor?: Milliseconds): Promise<Renewal>;
  /**
   * What was taken back of a worker: cancels that were asked for, and which of these leases, of tasks that have not begun, are of
   * a source that is held or shut, or of a queue that is paused. Reads only.
   */
  recalls(worker: number, waiting: readonly Lease[]): Promise<Recalls>;
  /**
   * Writes decisions, each guarded by its lease and the revision of the facts that it was made from. What would wait again
   * while another task has its unique key is superseded by that one: it ends as cancelled, and nothing else is affected.
   * A success whose lease was lost still counts while nobody contradicts it: nobody has begun the task since, and it waits, is
   * being recovered, or needs a person for that very loss. It changes nothing of its source.
   */
  settle(settlements: readonly Settlement[]): Promise<readonly Settled[]>;
  /**
   * Saves the one checkpoint of a task, which later executions of it are handed: JSON text in place of what was saved before.
   * False where the lease is over, or was handed out by `recover`: then nothing was changed.
   */
  saveCheckpoint(lease: Lease, text: string): Promise<boolean>;
  /** Takes over leases that ended without an outcome, and waiting tasks whose deadline has passed, to be decided about. */
  recover(worker: number, limit: number): Promise<Recovery>;
  /** Says anew what recovery must know of types, where it has changed since their worker joined. */
  publish(types: NewWorker['publishes']): Promise<void>;
  /** Says why a worker claims nothing at present, or with undefined that it goes on. A worker that is gone is not told of. */
  reportTrouble(worker: number, trouble: Trouble | undefined): Promise<void>;
  /**
   * Says that a worker was told to stop. If its process is killed before it is done, what it held is lost `while_stopping`: nobody
   * is charged or suspected for that.
   */
  stopping(worker: number): Promise<void>;
  /** Records a stray error of an execution, whether its task has ended or not. Nothing is recorded for a task that was removed. */
  recordStray(stray: Stray): Promise<void>;
  /** Removes a worker. What it still holds becomes recoverable at once. */
  leave(worker: number): Promise<void>;
  /**
   * Removes a worker that has ended as soon as the store can be reached, in the background and also after the store was closed, for as
   * long as its process lives. What it still holds is lost `while_stopping`. A `leave` that succeeds meanwhile ends that.
   */
  leaveLater(worker: number): void;
  /** Stores that leased tasks must not run twice, where nobody has said yet whether they may. Leases that are gone change nothing. */
  forbidSecondRun(leases: readonly Lease[]): Promise<void>;
  /**
   * An operator's step, over tasks by id. What cannot take it stays as it is, and is named; so does what would enter the scope
   * of a unique key that another task has. A retry that starts a new round drops a deadline that has passed.
   */
  move(ids: readonly number[], move: Move): Promise<readonly Moved[]>;
}

export interface NewTask {
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly priority: number;
  readonly category?: string;
  readonly needs?: Needs;
  readonly payload: string;
  /** Absent where the enqueuer has no definition of the type: then its worker's definition says it. */
  readonly idempotent?: boolean;
  readonly key?: string;
  readonly unique?: Unique & { readonly onConflict: UniqueConflict };
  /** This task's own layer of policy. */
  readonly policy?: string;
  /** Due this long after the store's now; 0 is at once. */
  readonly delay: Milliseconds;
  /** Times that a person or another system named, in milliseconds of the epoch. */
  readonly dueAt?: number;
  readonly submittedAt?: number;
  readonly deadline?: number;
}

/** A task of another queue. What is counted here goes on from what was counted there. */
export interface ImportedTask extends Omit<NewTask, 'unique'>, Imported {
  /** Waiting: scheduled until it is due, then ready. */
  readonly stands: 'waiting' | Exclude<ImportState, 'scheduled' | 'ready'>;
  /** Of one that succeeded. */
  readonly result?: string;
  /** Of one that ended. Default: now. */
  readonly endedAt?: number;
  readonly by: By;
}

/** What had been counted of a task when it was imported. */
export interface Imported {
  /** At least as many as were charged and deferred. */
  readonly executions: number;
  readonly charged: readonly ChargedCount[];
  readonly deferrals: number;
  /** Of its last decision: there where something was charged or deferred, and where it is dead or needs a person. */
  readonly reason?: string;
  /** The message of its last failure. */
  readonly error?: string;
}

export interface Receipt {
  readonly id: number;
  /** False where a task with this key or unique key was there before: the id is that one's. */
  readonly created: boolean;
  /** The task with the same unique key that waited, and was cancelled in favour of this one. */
  readonly replaced?: number;
}

/** A key that only one task of a type has at a time. */
export interface Unique {
  readonly key: string;
  /** How long the task has it: until it has ended, or until it starts. */
  readonly while: UniqueScope;
}

export interface NewWorker {
  readonly name: string;
  readonly leaseFor: Milliseconds;
  /**
   * How long a handler of it may go on after its last renewal. For so long nobody takes its tasks over while its process is
   * provably alive. Absent: 0, its lease alone counts.
   */
  readonly mayRunFor?: Milliseconds | 'none';
  /** What it claims, so that others can say which tasks nobody takes. Absent: anything without needs. */
  readonly takes?: Takes;
  /** What recovery must know of the types that this worker runs, as JSON by type. */
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
  /** How many suspects may be among them at most, of those that may run beside others. */
  readonly suspects: number;
  /** Whether a suspect that must run alone may come, as `mustRunAlone` has it. Where it comes, nothing comes with it. */
  readonly alone: boolean;
  /** Types whose tasks must not run twice: that is stored with those that are claimed, where nobody has said it yet. */
  readonly notIdempotent?: readonly string[];
  /** Nothing but these tasks. */
  readonly only?: readonly number[];
  /** Not these tasks: their earlier execution still runs in the claiming process. */
  readonly except: readonly number[];
  /**
   * Up to so many more after the limit is reached, if all up to there are of these types, and as long as the next ones in order
   * are too, may run twice, have no deadline and are no suspects: for a worker that is about to have room for them. A suspect that
   * `suspects` and `alone` do not admit is passed over.
   */
  readonly ahead?: { readonly limit: number; readonly types: readonly string[] };
}

export interface Claim {
  /** False where the store does not know the worker: it left, or was forgotten after a long silence, and has to join. */
  readonly known: boolean;
  readonly tasks: readonly Claimed[];
  /** When the next waiting task falls due or meets its deadline, as far as the store knows. */
  readonly nextDueIn?: Milliseconds;
  /**
   * Waiting tasks whose deadline has passed, leased to be decided about as by `recover`: of all queues, and so many at most that
   * no claim takes long. Where there are more, `nextDueIn` is 0. Among `tasks` there are none of them: no task starts late.
   */
  readonly expired: readonly Recovered[];
}

/** Proof that one worker may run one task now: settling needs all three. */
export interface Lease {
  readonly task: number;
  readonly execution: number;
  readonly token: string;
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
  /** Nobody said whether it is idempotent: the facts take it for so, unless the definition says otherwise. */
  readonly idempotenceUnsaid?: true;
  /** The message of the failure before this execution, if one failed. */
  readonly lastError?: string;
  /** What an earlier execution saved last, as JSON. It is kept over rounds, and removed with its task. */
  readonly checkpoint?: string;
  /** What holds no JSON in a damaged row: its counters, which count as zero, or its needs, which then keep no worker from it. */
  readonly unreadable?: readonly string[];
  /** Of its source; absent where that is in its normal state. A recovery does not name it. */
  readonly sourceState?: SourceState;
  /** This execution is the one probe of its source. */
  readonly probe?: true;
  /** After this claim no ready task of the source was left. Only where the source has a state. */
  readonly drained?: true;
}

export interface Recovery {
  readonly tasks: readonly Recovered[];
  /** When a lease that has run out may be taken over, unless it is renewed. Absent where there is none but of living processes. */
  readonly nextIn?: Milliseconds;
  /** Other processes of this host in which workers live: when one dies, its tasks may be taken over at once. */
  readonly neighbours: readonly ProcessIdentity[];
}

/** Why somebody else's lease, or none, is being decided about. */
export interface Recovered extends Claimed {
  readonly why: 'loss' | 'expiry';
  /** Of a loss: found when its worker was first seen to be gone, and kept since. */
  readonly how?: Loss;
  /** The name of the worker that went away. */
  readonly lostBy?: string;
  /** What a worker of its type published of it, as JSON. */
  readonly published?: string;
}

export interface Renewal {
  /** As in `Claim`. */
  readonly known: boolean;
  readonly lost: readonly Lease[];
  readonly cancelled: readonly Lease[];
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
  readonly report: Report;
  /**
   * What it changes of its source. Absent: `{ revision: 0 }`, it was made where the source had no state. `'any'`: it says nothing of
   * its source, as an interruption, a loss or an expiry.
   */
  readonly source?: SourceChange | 'any';
}

/** What is worth remembering of how an execution went. */
export interface Report {
  readonly ranFor: Milliseconds;
  /** The outcome's kind: success, failure, deferral, interruption, loss or expiry. */
  readonly outcome: string;
  readonly failure?: Failure;
  /** What a deferral or interruption said, or a note on a success. */
  readonly message?: string;
  /** It was handed back before its handler began, so no clock of the task begins with it. */
  readonly unbegun?: true;
}

export type Settled =
  /** Written now. `state` is where the task is: cancelled for one that was to wait again and was superseded. */
  | { readonly answer: 'settled'; readonly state: TaskState }
  /** The very same settlement had been written before. */
  | { readonly answer: 'already' }
  /** The lease was no longer this one's. Nothing changed; the report was kept as evidence. */
  | { readonly answer: 'stale' }
  /** The facts, or the state of the source, changed since the claim: decide again from these. */
  | {
      readonly answer: 'changed';
      readonly revision: number;
      readonly facts: Facts;
      /** Absent: its source is in its normal state now. */
      readonly sourceState?: SourceState;
    };

/** Who did it, and a word about why. */
export interface By {
  readonly actor: string;
  readonly note?: string;
}

export type Move = By &
  /** `redrive` is a retry of what has ended or needs a person, by a redrive. */
  (
    | { readonly verb: 'cancel' | 'retry' | 'redrive' | 'hold' | 'release' }
    | { readonly verb: 'resolve'; readonly as: 'succeeded' | 'retry' | 'dead'; readonly result?: string }
  );

export type Moved =
  | { readonly id: number; readonly moved: true; readonly from: TaskState; readonly to: TaskState }
  /** A cancel of a running task is a request: its worker hears of it by news, or at its next renewal. */
  | { readonly id: number; readonly moved: false; readonly from: TaskState; readonly why: 'requested' }
  | {
      readonly id: number;
      readonly moved: false;
      readonly from: TaskState;
      readonly why: 'conflict';
      /** The task that has its unique key, where it is that which stands in the way. */
      readonly occupiedBy?: number;
    }
  | { readonly id: number; readonly moved: false; readonly why: 'missing' };

// ── Sources and queues ───────────────────────────────────────────────────────────────────────────────────────────────

export interface SourceStore extends SourceStates {
  /**
   * Holds a source: none of its tasks is claimed from now on, or for so long. Touches the source and not its tasks. Of a source that
   * is held, only how long is changed.
   */
  hold(source: string, by: By, forMs?: Milliseconds): Promise<void>;
  release(source: string): Promise<void>;
  /** Pauses a queue: none of its tasks is claimed. */
  pause(queue: string, by: By): Promise<void>;
  resume(queue: string): Promise<void>;
  /** Sets up a queue; what is left out stays. Resolves when its waiting tasks are in the new order. */
  setUp(queue: string, settings: Partial<QueueSettings>): Promise<void>;
}

/** What is kept of sources that are not in their normal state, and the limits of sources. */
export interface SourceStates {
  state(source: string): Promise<SourceState | undefined>;
  /** Changes the state of a source as a settlement does. False where the revision is not the current one: nothing is changed. */
  change(source: string, change: SourceChange): Promise<boolean>;
  /**
   * Sets limits of a source; null removes one, and what is left out stays. What the configuration says does not replace what a
   * person set.
   */
  limit(source: string, limits: SourceLimits, by: By & { readonly origin: LimitOrigin }): Promise<void>;
}

export interface SourceLimits {
  readonly pace?: Pace | null;
  /** How many tasks may run at once. */
  readonly concurrency?: number | null;
}

export type LimitOrigin = 'config' | 'person';

/** What a store remembers of a source that is not in its normal state. */
export interface SourceState {
  /** At least 1. A later one of the same source has a higher number, also after the state was removed meanwhile. */
  readonly revision: number;
  /** JSON text that the store does not read. */
  readonly memory: string;
  /** How long ago it was written. */
  readonly age: Milliseconds;
}

/**
 * What an outcome changes of its source. Within one call of `settle` each change counts the revision up by one: the next settlement
 * of the same source names that number, from 0 on where there was no state. Where one of them is `changed` for its source, all
 * that follow of the same source are.
 */
export interface SourceChange {
  /** Of the state that it was made from; 0 where there was none. */
  readonly revision: number;
  /**
   * Absent: nothing changes, and the revision is only checked. A success without a change adds to the source's budget if that is
   * not full.
   *
   * Its `refunds` are of executions that were charged to their task in its present round, if that has not ended. The charge in the
   * history becomes `refunded`, the count of its reason goes down by one, and a verdict that the task waits for is dropped.
   */
  readonly change?: Change;
}

export type { Refund as ExecutionOfTask, Restriction, RestrictionCause } from '../source/change.ts';

export interface QueueSettings {
  /** `fifo` unless set. */
  readonly order: QueueOrder;
  /**
   * Whether its sources are served in turn, the one served longest ago first: then the order holds inside each source only.
   * A source that the queue sees for the first time goes to the back of the line. A turn is one task, or, where more than a
   * thousand sources wait, up to four. False unless set.
   */
  readonly fair: boolean;
  /** How often its tasks may start. Null: no limit. */
  readonly pace?: Pace | null;
  /** How many of its tasks may run at once. Null: no limit. */
  readonly concurrency?: number | null;
}

// ── Records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

export interface Records {
  find(id: number): Promise<TaskRecord | undefined>;
  /** The newest task with this key; keys are one a type. */
  findByKey(key: string, type?: string): Promise<TaskRecord | undefined>;
  /** Newest first, a page at a time. */
  list(filter: ListFilter): Promise<readonly TaskRecord[]>;
  /**
   * The facts by which the end of a task's present execution would be decided, or of its next one: as a claim hands them out.
   * Undefined where there is no such task.
   */
  facts(id: number): Promise<Facts | undefined>;
  /** What happened to a task, oldest first: eventful executions and operators' steps. */
  history(id: number): Promise<readonly HistoryEntry[]>;
  counts(): Promise<Counts>;
  workers(): Promise<readonly WorkerRecord[]>;
  /** Every source that has a state, a hold or a limit, or whose budget is not full. */
  sources(): Promise<readonly SourceRecord[]>;
  queues(): Promise<readonly QueueRecord[]>;
  /**
   * What is ready and what runs, of every source that `sources` lists, then of at most so many others that have any: the fullest
   * first.
   */
  countsBySource(most: number): Promise<readonly SourceCounts[]>;
  /**
   * What is ready, running and scheduled, of every queue. Of the scheduled ones only the `most` that fall due next are looked
   * at; where there are more, `exact` is false and the number is a least one.
   */
  countsByQueue(most: number): Promise<readonly QueueCounts[]>;
  /** The names of the sources of which a task was ever due. */
  sourceNames(): Promise<readonly string[]>;
  /** What a worker of this type published of it last, as JSON; undefined where none ever did. */
  published(type: string): Promise<string | undefined>;
}

export interface SourceCounts {
  readonly name: string;
  readonly ready: number;
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
    /** How long until it opens by itself; 0 where it is open now. Absent: a person or an outcome opens it. */
    readonly opensIn?: Milliseconds;
  };
  /** Tokens of its budget that are left; absent where it is full. */
  readonly tokens?: number;
  readonly limits?: {
    readonly pace?: Pace;
    readonly concurrency?: number;
    readonly by: By & { readonly at: number; readonly origin: LimitOrigin };
  };
  /** Tasks that run. */
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

export interface ListFilter {
  readonly states?: readonly TaskState[];
  readonly types?: readonly string[];
  readonly queues?: readonly string[];
  readonly sources?: readonly string[];
  readonly reasons?: readonly string[];
  /** Only tasks with a smaller id than this. */
  readonly before?: number;
  readonly limit: number;
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
  readonly idempotent: boolean;
  readonly submittedAt: number;
  readonly createdAt: number;
  /** When a scheduled task falls due. */
  readonly dueAt?: number;
  readonly deadline?: number;
  readonly endedAt?: number;
  /** Of all rounds. */
  readonly executions: number;
  readonly charged: readonly ChargedCount[];
  readonly deferrals: number;
  readonly recoveries: number;
  /** As in `Facts`. */
  readonly lostInARow: number;
  /** The reason of the last decision. */
  readonly reason?: string;
  /** What holds no JSON in a damaged row, and is left out or empty here. */
  readonly unreadable?: readonly string[];
  /** For a ready task that cannot start: what holds it. */
  readonly heldBy?: HeldBy;
  /** How long until that ends by itself, where it is known. */
  readonly heldFor?: Milliseconds;
  /** For a running task: whose it is, since when, and whether a cancel was asked for. */
  readonly running?: { readonly worker: string; readonly since: number; readonly cancelRequested: boolean };
}

export type HistoryEntry =
  | {
      readonly kind: 'execution';
      readonly execution: number;
      readonly worker: string;
      readonly startedAt: number;
      readonly endedAt: number;
      readonly outcome: string;
      readonly next: string;
      /** Where it was to go next, for how long. */
      readonly after?: Milliseconds;
      /** `refunded`: it was charged to the task, and taken back when its source turned out to be down. */
      readonly charge: Charge['to'] | 'refunded';
      readonly failure?: Failure;
      readonly message?: string;
      readonly because?: Because;
      /** Reported by a worker whose lease had ended: kept, not applied. */
      readonly late: boolean;
      /** As in `TaskRecord`. */
      readonly unreadable?: readonly string[];
    }
  /** It changed nothing of what became of the task. */
  | {
      readonly kind: 'stray';
      readonly at: number;
      readonly worker: string;
      readonly execution: number;
      readonly failure?: Failure;
      /** As of an execution. */
      readonly unreadable?: readonly string[];
    }
  | {
      readonly kind: 'action';
      readonly at: number;
      readonly actor: string;
      readonly verb: string;
      readonly note?: string;
      readonly from: TaskState | 'elsewhere';
      readonly to: TaskState;
      /** Of a task that was imported: what had been counted of it, if anything. */
      readonly imported?: Imported;
      /** As in `TaskRecord`. */
      readonly unreadable?: readonly string[];
    };

export interface Counts {
  readonly byState: Readonly<Record<TaskState, number>>;
  /** Of the scheduled ones, those that failed or were put off before. */
  readonly retrying: number;
  /** Waiting tasks that are due. */
  readonly due: number;
  /** What needs a person or died, by reason. */
  readonly byReason: readonly { readonly state: TaskState; readonly reason: string; readonly count: number }[];
  readonly nextDueAt?: number;
}

export interface WorkerRecord {
  readonly id: number;
  readonly name: string;
  readonly host: string;
  readonly pid: number;
  readonly joinedAt: number;
  readonly leaseUntil: number;
  /**
   * Whether its tasks are still its own: its lease runs, or it has run out and the process is provably alive and may go on. One
   * of another host or pid namespace is judged by its lease.
   */
  readonly keepsTasks: boolean;
  readonly running: number;
  /** What it claims of its own accord. */
  readonly takes: Takes;
  /** Why it claims nothing at present, and since when. */
  readonly trouble?: Trouble & { readonly since: number };
}

/**
 * What may have happened: work became ready, something was taken back of a worker, or workers came or went. `any` where that
 * cannot be told apart.
 */
export type News = 'work' | 'recall' | 'workers' | 'any';

// ── Upkeep ───────────────────────────────────────────────────────────────────────────────────────────────────────────

interface Upkeep {
  /** Where and what the store is, for people. */
  describe(): StoreDescription;
  /** The store's own clock, in milliseconds of the epoch. */
  now(): number;
  /** What there is to say of that clock. */
  clock(): Promise<ClockRecord>;
  /**
   * Sets the store's clock to the host's wall clock, also back: an operator says that this one is right. What was written by a
   * later time and counts from it is brought back by as much: leases, the waits of retries, places in the order, and when chores were
   * done. Deadlines, the history, and when a task is to run first stay.
   * @throws StoreError where the store follows a server's clock.
   */
  resetClock(): Promise<void>;
  /** Whether all that use the store are on this host: then who cannot write to it fails for the same reason as all others. */
  readonly isLocal: boolean;
  /** Calls back when something happened that workers may want to know of. A hint: polling is the truth. Returns what ends it. */
  onNews(listener: (news: News) => void): () => void;
  /** Every broken invariant that is found, as sentences; none in a sound store. */
  verify(): Promise<readonly string[]>;
  /** How many tasks `prune` would remove at this moment, by state and reason: first what succeeded, then the most frequent. */
  prunable(retention: Retention): Promise<readonly PruneCount[]>;
  /**
   * Removes some of the tasks whose time is up, each with everything that belongs to it, so that its key is free again. Nobody
   * else waits for it longer than 50 ms. It goes through the tasks in an order of its own, from `after` on; nothing needs to be remembered of
   * a call whose process died. What has not ended is never touched, but for `needs_manual` where the retention names a time.
   */
  prune(retention: Retention, after?: number): Promise<Pruned>;
  /**
   * Forgets some of the names that no task uses any more, where there are very many of them. Answers how many; 0 when it is
   * done. Nothing that it forgets has to be there: a name that comes back is made anew.
   */
  tidy(): Promise<number>;
  /** Whether a chore is this caller's to do now: true for one of all processes, once in so long. */
  takeTurn(chore: string, every: Milliseconds): Promise<boolean>;
  /**
   * Steps that operators took, and those that followed from unique keys, which nobody's log was told of yet: each is handed
   * out to one of all processes, once, oldest first. Without what settlements tell by their answers, what was imported, and
   * what is older than a day.
   */
  takeActions(limit: number): Promise<readonly ActionTaken[]>;
  /**
   * For who is about to close: what the database has not taken after so long is not waited for any more, and its callers hear that
   * it is not known to be written. Resolves then. Whoever says less says it for all.
   */
  giveUpAfter(time: Milliseconds): Promise<void>;
  /** Finishes what was called and lets go of the database. Calls after it are refused. */
  close(): Promise<void>;
}

/** The store's clock, beside the host's. */
export interface ClockRecord {
  readonly now: number;
  readonly wall: number;
  /** The wall clock jumped forward, and is not believed yet: it is after so long, if it stays there. */
  readonly believedIn?: Milliseconds;
  /** The machine was started anew, and the clock was so much later than before. */
  readonly leapt?: Milliseconds;
  /** For so long no task is removed by age, because the clock jumped. */
  readonly removesIn?: Milliseconds;
}

/** How many tasks of a state have come to rest for a reason; it is absent where there was none, as for those that succeeded. */
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
  /** Where to go on; absent when all were looked at. */
  readonly next?: number;
}

/** A step in the history of a task, and whose it is. */
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

export interface StoreDescription {
  readonly kind: string;
  readonly where: string;
  readonly schema: number;
  readonly durability: string;
  readonly driver: string;
}
