import type { Milliseconds } from '../duration.ts';

/** The answer of the simulated server to a call. It is given at once. */
export type Answer = 'served' | 'down' | 'throttled';

export interface ServerOptions {
  /** The outage: from here, and until there. Milliseconds of whatever clock `answer` is called with. */
  readonly downFrom: number;
  readonly downUntil: number;
  /** The most calls that are served in any second. More calls are throttled. */
  readonly capacity: number;
}

const SECOND: Milliseconds = 1_000;

/** A server with one outage and a limit of calls a second. Calls that it throttles do not count towards the limit. */
export class SimulatedServer {
  readonly #options: ServerOptions;
  /** When the last calls were served: as many as it serves in a second, the oldest at `#oldest`. */
  readonly #served: number[];
  #oldest = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#served = Array.from({ length: options.capacity }, () => Number.NEGATIVE_INFINITY);
  }

  answer(now: number): Answer {
    const { downFrom, downUntil } = this.#options;
    if (now >= downFrom && now < downUntil) return 'down';
    if (now - (this.#served[this.#oldest] as number) < SECOND) return 'throttled';
    this.#served[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#served.length;
    return 'served';
  }
}
