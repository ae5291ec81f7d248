import type { Clock } from '../clock.ts';
import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { Failed, isSignal } from '../failure/signals.ts';
import { isRecord, refuseUnknown, wholeNumber } from '../options.ts';

/** How tasks of a type are gathered for one call of `runBatch`. */
export interface BatchOptions {
  /** The most tasks of a batch, at least 2. Each of them takes a slot of the worker, so its `concurrency` limits this too. */
  readonly size: number;
  /**
   * How long the first task of a batch waits for more. It waits no longer if the batch or the worker is full. Default 0: a batch has the
   * tasks that were claimed together.
   */
  readonly wait?: DurationInput;
}

/** What is read here of a task whose handler runs. */
interface RunningTask {
  readonly id: number;
  readonly signal: AbortSignal;
}

/** The batches of a type. */
export interface Batching {
  readonly size: number;
  readonly wait: Milliseconds;
  readonly run: (tasks: readonly never[]) => unknown;
}

export function parseBatch(batch: unknown, runBatch: unknown, what: string): Batching {
  if (typeof runBatch !== 'function' || !isRecord(batch)) {
    throw new InvalidInputError(`${what} needs both: batch: { size: 100 } and runBatch: (tasks) => ….`);
  }
  refuseUnknown(batch, ['size', 'wait'], `\`batch\` of ${what}`);
  return {
    size: wholeNumber(batch.size, 'batch.size', 2, 10_000),
    wait: batch.wait === undefined ? 0 : duration(batch.wait as DurationInput, 'batch.wait'),
    run: runBatch as Batching['run'],
  };
}

/** Runs one task as a batch of its own. */
export async function runAlone(batching: Batching, input: unknown, task: RunningTask): Promise<unknown> {
  return new Promise(
    (resolve, reject) => void runTogether(batching, [{ task: withInput(task, input), begin() {}, resolve, reject }]),
  );
}

/** A task that waits for its batch, and how its handler ends. */
interface Member {
  readonly task: RunningTask;
  readonly begin: () => void;
  readonly resolve: (returned: unknown) => void;
  readonly reject: (thrown: unknown) => void;
}

interface Gathering {
  readonly members: Member[];
  stopWaiting: () => void;
}

/** Gathers the executions of a worker into batches. Each one keeps its own lease, time limit, history and settlement. */
export class Batches {
  readonly #clock: Clock;
  readonly #hasFreeSlot: () => boolean;
  readonly #gathering = new Map<Batching, Gathering>();

  constructor(clock: Clock, hasFreeSlot: () => boolean) {
    this.#clock = clock;
    this.#hasFreeSlot = hasFreeSlot;
  }

  /**
   * Resolves with the result of this task, or rejects with its failure, when its batch has ended. Calls `begin` when its batch begins.
   */
  run(batching: Batching, input: unknown, task: RunningTask, begin: () => void): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const gathering = this.#gathering.get(batching) ?? this.#begin(batching);
      gathering.members.push({ task: withInput(task, input), begin, resolve, reject });
      if (gathering.members.length === batching.size) this.#end(batching, gathering);
      else if (batching.wait > 0 && !this.#hasFreeSlot()) this.#endAfterTurn(batching, gathering);
    });
  }

  #begin(batching: Batching): Gathering {
    const gathering: Gathering = { members: [], stopWaiting: () => {} };
    this.#gathering.set(batching, gathering);
    if (batching.wait === 0) this.#endAfterTurn(batching, gathering);
    else gathering.stopWaiting = this.#clock.after(batching.wait, () => this.#end(batching, gathering));
    return gathering;
  }

  /** Tasks that were claimed together begin in the same turn of the event loop. */
  #endAfterTurn(batching: Batching, gathering: Gathering): void {
    gathering.stopWaiting();
    const turn = setImmediate(() => this.#end(batching, gathering));
    gathering.stopWaiting = () => clearImmediate(turn);
  }

  #end(batching: Batching, gathering: Gathering): void {
    gathering.stopWaiting();
    this.#gathering.delete(batching);
    void runTogether(batching, gathering.members);
  }
}

/** Adds to the task itself: a copy would lose what its getters will return later. */
function withInput(task: RunningTask, input: unknown): RunningTask {
  return Object.assign(task, { input });
}

async function runTogether({ run }: Batching, members: readonly Member[]): Promise<void> {
  // A task that was cancelled or lost while it waited must not begin.
  const begun = members.filter(({ task, begin, reject }) => {
    if (task.signal.aborted) reject(task.signal.reason);
    else begin();
    return !task.signal.aborted;
  });
  if (begun.length === 0) return;
  try {
    const endings = endingsOf(await run(begun.map(({ task }) => task as never)), begun);
    begun.forEach(({ resolve, reject }, at) => {
      const ending = endings[at];
      if (isSignal(ending) || ending instanceof Error) reject(ending);
      else if (isRecord(ending) && ending.status === 'rejected' && 'reason' in ending) reject(ending.reason);
      else if (isRecord(ending) && ending.status === 'fulfilled' && 'value' in ending) resolve(ending.value);
      else resolve(ending);
    });
  } catch (thrown) {
    for (const { reject } of begun) reject(thrown);
  }
}

/** What `runBatch` returned for each task, in their order. */
function endingsOf(returned: unknown, members: readonly Member[]): readonly unknown[] {
  if (returned === undefined) return members.map(() => undefined);
  if (isSignal(returned)) throw returned;
  if (returned instanceof Map) {
    return members.map(({ task: { id } }) =>
      returned.has(id) ? returned.get(id) : noEnding(`no entry for task #${id}`),
    );
  }
  if (Array.isArray(returned) && returned.length === members.length) return returned;
  const got = Array.isArray(returned) ? `a list of ${returned.length}` : `a value of the type ${typeof returned}`;
  throw noEnding(
    `${got} for ${members.length} tasks. It must return nothing, a list with an entry for each task, or a Map by task id`,
  );
}

function noEnding(got: string): Failed {
  return new Failed(`runBatch returned ${got}.`, { kind: 'permanent', reason: 'code.bug' });
}
