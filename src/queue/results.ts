import type { Clock } from '../clock.ts';
import { type DurationInput, duration, formatDuration, type Milliseconds } from '../duration.ts';
import { ResultTimeoutError, TaskFailedError } from '../errors.ts';
import { refuseUnknown } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import { hasEnded } from '../task.ts';
import type { AnyTask, DefinitionOf } from '../worker/define-task.ts';
import type { TaskReader } from './task-reader.ts';

export interface ResultOptions<Result = unknown> {
  /** How long to wait for the end of the task. Default 1 min. */
  readonly timeout?: DurationInput;
  /** The definition of the task, which gives the result its type. A task of another type is refused. */
  readonly task?: DefinitionOf<unknown, Result>;
}

/** The first look at a task that another process works comes so soon, and each later one after twice the time, up to a second. */
const FIRST_LOOK: Milliseconds = 20;
const LONGEST_LOOK: Milliseconds = 1_000;

/** Waits for the results of tasks. The end of a task that this process works is known at once; others are looked for. */
export class Results {
  readonly #reader: TaskReader;
  readonly #clock: Clock;
  /** What to call when an execution of a task has ended here. */
  readonly #waiting = new Map<number, Set<() => void>>();

  constructor(reader: TaskReader, clock: Clock) {
    this.#reader = reader;
    this.#clock = clock;
  }

  /** An execution of this process was settled. */
  settled(task: number): void {
    for (const wake of this.#waiting.get(task) ?? []) wake();
  }

  async of(idOrKey: number | string, options: ResultOptions): Promise<unknown> {
    refuseUnknown(options, ['timeout', 'task'], 'result', OTHERWISE_CALLED.result);
    const { timeout = '1m', task: definition } = options;
    const limit = duration(timeout, 'timeout');
    const deadline = this.#clock.monotonic() + limit;
    const { id } = await this.#reader.get(idOrKey, definition as AnyTask | undefined);
    let isSettled = false;
    let wake = () => {};
    const onSettled = () => {
      isSettled = true;
      wake();
    };
    const listeners = this.#waiting.get(id) ?? new Set();
    this.#waiting.set(id, listeners.add(onSettled));
    try {
      for (let pause = FIRST_LOOK; ; pause = Math.min(pause * 2, LONGEST_LOOK)) {
        isSettled = false;
        const { state, result, reason } = await this.#reader.get(id);
        if (state === 'succeeded') return result;
        if (hasEnded(state) || state === 'needs_manual') {
          throw new TaskFailedError(id, state, reason, await this.#lastMessage(id));
        }
        const left = deadline - this.#clock.monotonic();
        if (left <= 0) throw new ResultTimeoutError(id, state, formatDuration(limit));
        if (isSettled) continue;
        const { over, end } = this.#pause(pause, left);
        wake = end;
        await over;
      }
    } finally {
      listeners.delete(onSettled);
      if (listeners.size === 0) this.#waiting.delete(id);
    }
  }

  /** A look takes real time, so that a test that moves its clock does not step through looks; the limit is the clock's. */
  #pause(look: Milliseconds, left: Milliseconds): { readonly over: Promise<void>; readonly end: () => void } {
    let end = () => {};
    const over = new Promise<void>((resolve) => {
      end = resolve;
    });
    const timer = setTimeout(end, look);
    const cancel = this.#clock.after(left, end);
    return {
      end,
      over: over.finally(() => {
        clearTimeout(timer);
        cancel();
      }),
    };
  }

  async #lastMessage(id: number): Promise<string | undefined> {
    const history = await this.#reader.history(id);
    const last = history.findLast((entry) => entry.kind === 'execution');
    return last?.failure?.message ?? last?.message;
  }
}
