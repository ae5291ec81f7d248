interface Guarded {
  readonly signal: AbortSignal;
}

/**
 * Stops handlers ahead of their worker. A worker that is told to stop lets its handlers finish first; somebody who pressed
 * Ctrl-C does not want to wait for that, but for no longer than it takes to end their processes.
 *
 * ```
 * running ──(stop)──► stopping ──(its processes are gone)──► stopped: waits until the worker aborts it, so that
 *    │                   │                                            the execution is an interruption and no failure
 *    └──(ends by itself)─┴──────────────────────────────────► ended, as always
 * ```
 */
export class Brakes {
  readonly #stop = new AbortController();
  readonly #kill = new AbortController();
  readonly #running = new Set<object>();
  #changed = () => {};

  /** For the handlers of commands: their processes are killed without the time that they have to end. */
  get kill(): AbortSignal {
    return this.#kill.signal;
  }

  /** How many handlers have neither ended nor stopped. */
  get running(): number {
    return this.#running.size;
  }

  /** Tells all handlers to stop, now and from now on. */
  stop(): void {
    this.#stop.abort(new DOMException('It was stopped from outside.', 'AbortError'));
  }

  /** Cuts short the time that stopping processes have. */
  killNow(): void {
    this.#kill.abort();
  }

  /** When no handler is running any more: each has ended, or waits for its worker to abort it. */
  async allStopped(): Promise<void> {
    while (this.#running.size > 0) {
      await new Promise<void>((resolve) => {
        this.#changed = resolve;
      });
    }
    // What ended by itself is judged by its worker before anybody hurries that.
    await new Promise((resolve) => setImmediate(resolve));
  }

  /** Runs a handler under the brakes. */
  async guard<T extends Guarded, R>(task: T, handler: (task: T) => Promise<R>): Promise<R> {
    const running = {};
    this.#running.add(running);
    try {
      return await handler({ ...task, signal: AbortSignal.any([task.signal, this.#stop.signal]) });
    } catch (error) {
      if (error !== this.#stop.signal.reason || task.signal.aborted) throw error;
      this.#release(running);
      await aborted(task.signal);
      throw error;
    } finally {
      this.#release(running);
    }
  }

  #release(running: object): void {
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
