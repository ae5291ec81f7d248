import { afterEach, beforeEach, expect } from 'vitest';
import type { Milliseconds } from '../../src/duration.ts';
import type { Because, Decision, Step } from '../../src/failure/decide.ts';
import type { Failure, FailureKind } from '../../src/failure/outcome.ts';
import type {
  Claimed,
  ClaimRequest,
  ImportedTask,
  Lease,
  Move,
  NewTask,
  NewWorker,
  Recovered,
  Renewal,
  Report,
  Settled,
  Settlement,
  Store,
  TaskRecord,
  World,
} from '../../src/store/store.ts';
import type { TaskState } from '../../src/task.ts';
import { type VirtualWorld, virtualWorld } from './virtual-world.ts';

/** What a store brings to be tested. */
export interface StoreFactory {
  /** Opens a store on empty data of its own. */
  open(world: World): Promise<Store>;
  /** Opens the data of the last `open` once more, as another process would. */
  openSecond?(world: World): Promise<Store>;
  /** It never forgets a source, for a row of it costs nothing that is noticed. */
  readonly keepsNames?: true;
  /** Removes the data. The stores on it are closed by then. */
  close(): Promise<void>;
}

export const LEASE: Milliseconds = 30_000;
/** How often a worker renews, and how long a lease that ran out is watched before it is taken over. */
export const RENEW_INTERVAL: Milliseconds = LEASE / 3;

/** A test's store, its world and the people in it. Every test gets a new one, which is verified when the test ends. */
export class Scene {
  world: VirtualWorld = virtualWorld();
  #factory: StoreFactory;
  #stores: Store[] = [];
  /** What each worker got. */
  #held = new Map<number, readonly Lease[]>();

  constructor(factory: StoreFactory) {
    this.#factory = factory;
  }

  async begin(): Promise<void> {
    this.world = virtualWorld();
    this.#held = new Map();
    this.#stores = [await this.#factory.open(this.world)];
  }

  async end(): Promise<void> {
    try {
      for (const store of this.#stores) expect(await store.upkeep.verify()).toEqual([]);
    } finally {
      for (const store of this.#stores) await store.upkeep.close();
      await this.#factory.close();
    }
  }

  get hasSecond(): boolean {
    return this.#factory.openSecond !== undefined;
  }

  get store(): Store {
    const [first] = this.#stores;
    if (first === undefined) throw new Error('The scene has not begun, or its store was closed.');
    return first;
  }

  /** Another process's handle on the same data. */
  async openSecond(world = virtualWorld(2, this.world.clock)): Promise<Store> {
    if (!this.#factory.openSecond) throw new Error('This store has no second handle.');
    const second = await this.#factory.openSecond(world);
    this.#stores.push(second);
    return second;
  }

  /** Closes the first store; a second one, if open, takes its place. */
  async closeStore(): Promise<Store> {
    const { store } = this;
    await store.upkeep.close();
    this.#stores.shift();
    return store;
  }

  now(): number {
    return this.store.upkeep.now();
  }

  advance(by: Milliseconds): void {
    this.world.clock.advance(by);
  }

  async enqueue(...tasks: readonly Partial<NewTask>[]): Promise<number[]> {
    const receipts = await this.store.tasks.enqueue(tasks.map(newTask));
    return receipts.map(({ id }) => id);
  }

  async enqueueOne(task: Partial<NewTask> = {}): Promise<number> {
    const [id] = await this.enqueue(task);
    return id as number;
  }

  async import(...tasks: readonly Partial<ImportedTask>[]): Promise<number[]> {
    const receipts = await this.store.tasks.import(tasks.map(imported));
    return receipts.map(({ id }) => id);
  }

  join(name = 'alice', worker: Partial<NewWorker> = {}): Promise<number> {
    return this.store.tasks.join({ name, leaseFor: LEASE, publishes: {}, ...worker });
  }

  async claim(worker: number, request: Partial<ClaimRequest> = {}): Promise<readonly Claimed[]> {
    const { tasks } = await this.store.tasks.claim(claimRequest(worker, request));
    this.#hold(worker, tasks);
    return tasks;
  }

  /** Claims this task and nothing else. */
  async claimTask(worker: number, id: number): Promise<Claimed> {
    const [claimed] = await this.claim(worker, { only: [id], limit: 1 });
    if (claimed === undefined) throw new Error(`Task #${id} was not there to be claimed.`);
    return claimed;
  }

  /** Records a task and claims it. */
  async start(worker: number, task: Partial<NewTask> = {}): Promise<Claimed> {
    return this.claimTask(worker, await this.enqueueOne(task));
  }

  async settle(claimed: Held, decision: Decision, more: Partial<Settlement> = {}): Promise<Settled> {
    const [answer] = await this.store.tasks.settle([settlement(claimed, decision, more)]);
    return answer as Settled;
  }

  /** Renews all that the worker ever got: it believes in it until it is told otherwise. */
  async renew(worker: number): Promise<Renewal> {
    return this.store.tasks.renew(worker, this.#held.get(worker) ?? []);
  }

  #hold(worker: number, tasks: readonly Claimed[]): void {
    this.#held.set(worker, [...(this.#held.get(worker) ?? []), ...tasks.map(({ lease }) => lease)]);
  }

  /** What a worker does every interval: it renews, then looks for what others lost. */
  async recover(worker: number, limit = 100): Promise<readonly Recovered[]> {
    await this.renew(worker);
    const { tasks } = await this.store.tasks.recover(worker, limit);
    this.#hold(worker, tasks);
    return tasks;
  }

  /** Lets a lease run out before the recoverer's eyes, for as long as it takes to be taken over. */
  async recoverAfterSilence(worker: number): Promise<readonly Recovered[]> {
    this.advance(LEASE + 1);
    expect(await this.recover(worker)).toEqual([]);
    this.advance(RENEW_INTERVAL + 1);
    return this.recover(worker);
  }

  async move(id: number, move: Verb) {
    const [answer] = await this.store.tasks.move([id], { actor: 'maria', ...move });
    return answer;
  }

  async find(id: number): Promise<TaskRecord> {
    const record = await this.store.records.find(id);
    if (record === undefined) throw new Error(`There is no task #${id}.`);
    return record;
  }

  async stateOf(id: number): Promise<TaskState> {
    return (await this.find(id)).state;
  }

  /** A new task in this state. */
  async taskIn(state: TaskState): Promise<number> {
    const id = await this.enqueueOne(state === 'scheduled' ? { delay: 60_000 } : {});
    switch (state) {
      case 'scheduled':
      case 'ready':
        break;
      case 'held':
        await this.move(id, { verb: 'hold' });
        break;
      case 'cancelled':
        await this.move(id, { verb: 'cancel' });
        break;
      default: {
        const claimed = await this.claimTask(await this.join('stager'), id);
        if (state !== 'running') {
          await this.settle(claimed, state === 'succeeded' ? succeeded() : ended(state, 'fs.locked'));
        }
      }
    }
    expect(await this.stateOf(id)).toBe(state);
    return id;
  }
}

/** A scene for each test of the enclosing `describe`. */
export function useScene(factory: StoreFactory): Scene {
  const scene = new Scene(factory);
  beforeEach(() => scene.begin());
  afterEach(() => scene.end());
  return scene;
}

/** `Omit` that goes into each member of a union. */
type Without<T, K extends PropertyKey> = T extends unknown ? Omit<T, K> : never;
export type Verb = Without<Move, 'actor'> & { readonly actor?: string };

/** What settling needs of a claim. */
export type Held = Pick<Claimed, 'lease' | 'revision'>;

export function newTask(task: Partial<NewTask> = {}): NewTask {
  return {
    type: 'mail',
    queue: 'default',
    source: 'imap:INBOX',
    priority: 0,
    payload: '{}',
    idempotent: true,
    delay: 0,
    ...task,
  };
}

/** A task of another queue; it waits, and was never tried, unless `task` says otherwise. */
export function imported(task: Partial<ImportedTask> = {}): ImportedTask {
  return {
    ...newTask(task),
    stands: 'waiting',
    executions: 0,
    charged: [],
    deferrals: 0,
    by: { actor: 'maria' },
    ...task,
  };
}

export function claimRequest(worker: number, request: Partial<ClaimRequest> = {}): ClaimRequest {
  return { worker, limit: 100, capabilities: {}, suspects: 1, alone: true, except: [], ...request };
}

export function idsOf(claimed: readonly Claimed[]): number[] {
  return claimed.map(({ lease }) => lease.task);
}

/** A settlement whose report fits its decision; `more` says otherwise. */
export function settlement(claimed: Held, decision: Decision, more: Partial<Settlement> = {}): Settlement {
  return { lease: claimed.lease, revision: claimed.revision, decision, report: reportOf(decision), ...more };
}

function reportOf(decision: Decision): Report {
  if (decision.next === 'succeeded') return { ranFor: 5, outcome: 'success' };
  if (decision.because.step === 'recovery') return { ranFor: 0, outcome: 'loss' };
  if (decision.next === 'cancelled') return { ranFor: 5, outcome: 'interruption', message: 'It was told to stop.' };
  switch (decision.charge.to) {
    case 'task':
      return { ranFor: 5, outcome: 'failure', failure: failure(decision.reason, decision.charge.kind) };
    case 'deferrals':
      return { ranFor: 5, outcome: 'deferral', message: 'Later.' };
    case 'recoveries':
      return { ranFor: 5, outcome: 'loss' };
    case 'source':
      return { ranFor: 5, outcome: 'failure', failure: { ...failure(decision.reason), fault: 'source' } };
    case 'nobody':
      return { ranFor: 5, outcome: 'interruption', message: 'It was handed back.' };
  }
}

export function failure(reason = 'fs.locked', kind: FailureKind = 'transient'): Failure {
  return {
    kind,
    reason,
    fault: 'task',
    ambiguous: false,
    name: 'Error',
    message: `It failed with ${reason}.`,
    evidence: { rule: 'code', field: 'code' },
  };
}

export function because(step: Step = 'retry', more: Partial<Because> = {}): Because {
  return { step, rule: 'policy', policyVersion: 'v1', text: 'So it was decided.', ...more };
}

export function succeeded(): Decision {
  return { next: 'succeeded', because: because('success') };
}

export function cancelled(): Decision {
  return { next: 'cancelled', reason: 'cancelled', because: because('cancelled') };
}

/** A failure charged to the task, to be tried again. */
export function retryIn(after: Milliseconds, reason = 'fs.locked', kind: FailureKind = 'transient'): Decision {
  return {
    next: 'scheduled',
    after,
    reason,
    charge: { to: 'task', reason, kind },
    lostInARow: 0,
    because: because(),
  };
}

/** "Later", which is nobody's failure. */
export function deferredFor(after: Milliseconds, reason = 'asked.later'): Decision {
  return {
    next: 'scheduled',
    after,
    reason,
    charge: { to: 'deferrals' },
    lostInARow: 0,
    because: because('deferral'),
  };
}

/** A shutdown handed it back: ready at once, at nobody's expense. */
export function handedBack(): Decision {
  return {
    next: 'scheduled',
    after: 0,
    reason: 'worker.interrupted',
    charge: { to: 'nobody' },
    lostInARow: 0,
    because: because('interrupted'),
  };
}

/** The report of what was handed back before its handler began. */
export const UNBEGUN: Report = { ranFor: 0, outcome: 'interruption', message: 'It was handed back.', unbegun: true };

/** Lost with its worker, for the first time in a row unless said: a suspect from now on. */
export function lost(charged: 'charged' | 'free', lostInARow = 1): Decision {
  return {
    next: 'scheduled',
    after: 0,
    reason: 'worker.lost',
    charge: { to: charged === 'charged' ? 'recoveries' : 'nobody' },
    lostInARow,
    because: because('recovery'),
  };
}

export function ended(next: 'dead' | 'needs_manual' | 'cancelled', reason = 'fs.locked'): Decision {
  if (next === 'cancelled') return cancelled();
  return { next, reason, charge: { to: 'task', reason, kind: 'transient' }, because: because('max_attempts') };
}
