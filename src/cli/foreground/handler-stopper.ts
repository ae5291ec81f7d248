interface Guarded {
  readonly signal: AbortSignal;
}

/**
 * Stops handlers before their worker does. A worker that is told to stop lets its handlers finish. A person who pressed Ctrl-C
 * should wait only until the processes of the handlers have ended.
 *
 * ```
 * running ──(stop)──► stopping ──(its processes have ended)──► stopped: waits until the worker aborts it, so that
 *    │                   │                                              the execution is an interruption, not a failure
 *    └─(ends by itself)──┴───────────────────────────────────► ended
 * ```
 */
export class HandlerStopper {
  #stop = new AbortController();
  readonly #kill = new AbortController();
  readonly #running = new Set<object>();
  #changed = () => {};

  /** For the handlers of commands. When it aborts, their processes are killed at once, without the time to end by themselves. */
  get kill(): AbortSignal {
    return this.#kill.signal;
  }

  /** How many handlers have neither ended nor stopped. */
  get running(): number {
    return this.#running.size;
  }

  /** Stops all handlers, and those that start later. */
  stop(): void {
    this.#stop.abort(new DOMException('It was stopped from outside.', 'AbortError'));
  }

  /** Lets handlers start again, after all have stopped. */
  reset(): void {
    this.#stop = new AbortController();
  }

  /** Kills processes that are still stopping. */
  killNow(): void {
    this.#kill.abort();
  }

  /** Resolves when each handler has ended, or waits for its worker to abort it. */
  async allStopped(): Promise<void> {
    while (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    // The worker must see a handler that ended by itself before anybody aborts it.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Runs a handler, and stops it when `stop` is called. */
  async run<T extends Guarded, R>(task: T, handler: (task: T) => Promise<R>): Promise<R> {
    const running = {};
    const stop = this.#stop.signal;
    this.#running.add(running);
    try {
      return await handler({ ...task, signal: AbortSignal.any([task.signal, stop]) });
    } catch (error) {
      if (error !== stop.reason || task.signal.aborted) throw error;
      this.#remove(running);
      await aborted(task.signal);
      throw error;
    } finally {
      this.#remove(running);
    }
  }

  #remove(running: object): void {
    this.#running.delete(running);
    this.#changed();
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
