import { InvalidInputError, StateConflictError, TaskNotFoundError, WorkerNotFoundError } from '../errors.ts';
import { encodeJson } from '../json.ts';
import { name, oneOf, refuseUnknown, text, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { Move, Moved, QueueSettings, Store } from '../store/store.ts';
import { TASK_STATES, type TaskState } from '../task.ts';
import { plural } from '../views/plural.ts';

export const LONGEST_NOTE = 4_096;

/** Who takes an action, and why; both are kept in the history of the task. */
export interface ActionOptions {
  /** Who acts. Default `api`. */
  readonly actor?: string;
  /** Why, in at most 4,096 characters. Default: none. */
  readonly note?: string;
}

/** A task as somebody saw it. */
export interface SeenTask {
  readonly state: TaskState;
  /** How many executions it had. */
  readonly executions: number;
}

export interface TaskActionOptions extends ActionOptions {
  /**
   * Acts only if the task still has this state and so many executions; otherwise it throws StateConflictError. For a person who looked
   * at the task before. Default: acts whatever happened meanwhile.
   */
  readonly ifStill?: SeenTask;
}

export interface RetryOptions extends TaskActionOptions {
  /**
   * Whether the next execution has a new `idempotencyKey`, also if the task only waits. Default false: then only an ended task, which
   * begins a new round, gets one.
   */
  readonly newKey?: boolean;
}

export interface ResolveOptions extends TaskActionOptions {
  /** What a person found: it happened (`succeeded`), it did not and should be tried again (`retry`), or it is given up (`dead`). */
  readonly as: 'succeeded' | 'retry' | 'dead';
  /** The result, if it succeeded. */
  readonly result?: unknown;
}

/** The actions of a person on tasks, sources, queues and workers. */
export class Operator {
  readonly #store: Store;
  readonly #sizeLimit: number;

  constructor(store: Store, sizeLimit: number) {
    this.#store = store;
    this.#sizeLimit = sizeLimit;
  }

  async act(id: number, verb: 'cancel' | 'hold' | 'release', options: TaskActionOptions): Promise<void> {
    refuseUnknown(options, ['ifStill', ...ACTION_OPTIONS], verb);
    const { ifStill, ...whose } = options;
    return this.#move(id, { verb, ...by(whose, verb) }, ifStill);
  }

  async retry(id: number, options: RetryOptions): Promise<void> {
    refuseUnknown(options, ['newKey', 'ifStill', ...ACTION_OPTIONS], 'retry');
    const { newKey = false, ifStill, ...whose } = options;
    if (typeof newKey !== 'boolean') throw new InvalidInputError(`newKey must be true or false, got ${show(newKey)}.`);
    return this.#move(id, { verb: 'retry', newKey, ...by(whose, 'retry') }, ifStill);
  }

  async resolve(id: number, options: ResolveOptions): Promise<void> {
    refuseUnknown(options, ['as', 'result', 'ifStill', ...ACTION_OPTIONS], 'resolve');
    const as = oneOf(options.as, ['succeeded', 'retry', 'dead'] as const, 'as');
    const { as: _, result, ifStill, ...whose } = options;
    if (result !== undefined && as !== 'succeeded') {
      throw new InvalidInputError(`Only what succeeded has a result: resolve takes no \`result\` with as: '${as}'.`);
    }
    const kept = result === undefined ? {} : { result: encodeJson(result, 'result', this.#sizeLimit) };
    return this.#move(id, { verb: 'resolve', as, ...kept, ...by(whose, 'resolve') }, ifStill);
  }

  async #move(id: number, move: Move, given: SeenTask | undefined): Promise<void> {
    const seen = given === undefined ? undefined : seenTask(given);
    const only = seen && { from: [seen.state], executions: seen.executions };
    const [moved] = (await this.#store.tasks.move([idOf(id)], { ...move, ...only })) as [Moved];
    if (moved.moved || moved.why === 'requested') return;
    if (moved.why === 'missing') throw new TaskNotFoundError(id);
    if (move.verb === 'cancel' && moved.from === 'cancelled') return;
    if (seen) await this.#refuseChanged(id, seen);
    throw conflict(move.verb, moved);
  }

  /** @throws StateConflictError if the task is not as it was seen. */
  async #refuseChanged(id: number, seen: SeenTask): Promise<void> {
    const now = await this.#store.records.find(id);
    if (now && now.state === seen.state && now.executions === seen.executions) return;
    const words = now ? `${now.state} after ${plural(now.executions, 'execution', 'executions')}` : 'removed';
    throw new StateConflictError(
      id,
      now?.state ?? seen.state,
      `Task #${id} has changed: it was ${seen.state} after ${plural(seen.executions, 'execution', 'executions')}, and is ${words} now. ` +
        'Nothing was done. Look at it again, then decide.',
    );
  }

  async pauseQueue(queue: string, options: ActionOptions): Promise<void> {
    await this.#store.sources.pause(name(queue, 'queue'), by(options, 'pauseQueue'));
  }

  async resumeQueue(queue: string, options: ActionOptions): Promise<void> {
    await this.#store.sources.resume(name(queue, 'queue'), by(options, 'resumeQueue'));
  }

  async setUpQueue(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    await this.#store.sources.setUp(name(queue, 'queue'), settings);
  }

  async endWorker(id: number): Promise<void> {
    const worker = wholeNumber(id, 'The id of a worker', 1);
    const workers = await this.#store.records.workers();
    if (!workers.some((one) => one.id === worker)) throw new WorkerNotFoundError(worker);
    await this.#store.tasks.leave(worker);
  }
}

function seenTask(given: unknown): SeenTask {
  refuseUnknown(given, ['state', 'executions'], 'ifStill');
  const { state, executions } = given as SeenTask;
  return {
    state: oneOf(state, TASK_STATES, 'ifStill.state'),
    executions: wholeNumber(executions, 'ifStill.executions', 0),
  };
}

export function idOf(id: unknown): number {
  return wholeNumber(id, 'The id of a task', 1);
}

/** The names of the options that every action has. */
export const ACTION_OPTIONS = ['actor', 'note'] as const;

/** Who acts, checked. @throws InvalidInputError. */
export function by(options: ActionOptions, verb: string): { actor: string; note?: string } {
  refuseUnknown(options, ACTION_OPTIONS, verb);
  const { actor = 'api', note } = options;
  return { actor: name(actor, 'actor'), ...(note !== undefined && { note: text(note, 'note', LONGEST_NOTE) }) };
}

type Conflict = Extract<Moved, { why: 'conflict' }>;

const DONE: Readonly<Record<Move['verb'], string>> = {
  retry: 'retried',
  redrive: 'put back',
  cancel: 'cancelled',
  hold: 'held',
  release: 'released',
  resolve: 'resolved',
};

function conflict(action: Move['verb'], { id, from: state, occupiedBy }: Conflict): StateConflictError {
  if (occupiedBy !== undefined) {
    const text =
      `Task #${id} cannot be ${DONE[action]}: task #${occupiedBy} has its unique key, and only one task of a type may have it. ` +
      `Cancel #${occupiedBy} or wait until it has ended, and try again.`;
    return new StateConflictError(id, state, text, { occupiedBy });
  }
  const next: Readonly<Record<string, string>> = {
    running: 'Wait until it ends, or cancel it.',
    held: 'Release it first.',
    ready: 'It is due already and waits for a worker.',
    scheduled: 'A retry makes it due now.',
    needs_manual: 'It needs an answer: resolve it.',
    succeeded: 'A retry starts a new round.',
    dead: 'A retry starts a new round.',
    cancelled: 'A retry starts a new round.',
  };
  return new StateConflictError(
    id,
    state,
    `Task #${id} is ${state}, so it cannot be ${DONE[action]}. ${next[state] ?? ''}`,
  );
}
