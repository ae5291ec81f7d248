import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Lease, Recalls } from '../store/store.ts';
import type { AbortCause } from './execution.ts';
import { among, type Held } from './membership.ts';

/** The least time between two checks, even if many hints come. */
const LEAST_PAUSE: Milliseconds = 200;

export interface RecallOptions {
  readonly clock: Clock;
  /** Asks the store; undefined if the worker has no row there. */
  readonly ask: (waiting: readonly Lease[]) => Promise<Recalls> | undefined;
  /** The running claims. */
  readonly running: () => readonly Held[];
  /** The claims made ahead that have not begun. */
  readonly waiting: () => readonly Held[];
  /** Hands back claims that may not begin any more. */
  readonly handBack: (held: readonly Held[]) => void;
}

/**
 * After a hint, checks whether running tasks of the worker were cancelled, and whether sources or queues of tasks that it claimed
 * ahead were held or paused. What it misses is found by the next renewal.
 */
export class Recall {
  readonly #options: RecallOptions;
  #lookedAt: Milliseconds = Number.NEGATIVE_INFINITY;
  /** Cancels the next check. */
  #stop: (() => void) | undefined;

  constructor(options: RecallOptions) {
    this.#options = options;
  }

  /** A hint: something may have been cancelled, held or paused. */
  hint(): void {
    if (this.#stop || !this.#holdsAny) return;
    const { clock } = this.#options;
    const wait = this.#lookedAt + LEAST_PAUSE - clock.monotonic();
    if (wait <= 0) this.#look();
    else this.#stop = clock.after(wait, () => this.#look());
  }

  /** Clears the timer. */
  rest(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  get #holdsAny(): boolean {
    return this.#options.running().length > 0 || this.#options.waiting().length > 0;
  }

  #look(): void {
    const { clock, ask, running, waiting, handBack } = this.#options;
    this.#stop = undefined;
    this.#lookedAt = clock.monotonic();
    const ahead = waiting();
    ask(ahead.map(({ claimed }) => claimed.lease))?.then(
      ({ cancelled, held }) => {
        const cause: AbortCause = 'cancel';
        for (const claim of among([...running(), ...waiting()], cancelled)) claim.abort(cause);
        const back = among(ahead, held);
        if (back.length > 0) handBack(back);
      },
      // The next renewal finds it, and logs why the store cannot be reached.
      () => {},
    );
  }
}
