import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Lease, Recalls } from '../store/store.ts';
import type { AbortCause } from './execution.ts';
import { among, type Held } from './membership.ts';

/** Between two looks there is at least this long, however many hints come. */
const LEAST_PAUSE: Milliseconds = 200;

export interface RecallOptions {
  readonly clock: Clock;
  /** Asks the store; undefined where the worker has no row there. */
  readonly ask: (waiting: readonly Lease[]) => Promise<Recalls> | undefined;
  /** What runs. */
  readonly running: () => readonly Held[];
  /** What was claimed ahead and has not begun. */
  readonly waiting: () => readonly Held[];
  /** Gives back what may not begin any more. */
  readonly handBack: (held: readonly Held[]) => void;
}

/**
 * Looks for what was taken back of a worker when it hears that there may be something: cancels of what runs, and holds of sources
 * and pauses of queues of which it has claimed tasks ahead. What it misses, the next renewal tells.
 */
export class Recall {
  readonly #options: RecallOptions;
  #lookedAt: Milliseconds = Number.NEGATIVE_INFINITY;
  /** Calls off the look that is to come. */
  #stop: (() => void) | undefined;

  constructor(options: RecallOptions) {
    this.#options = options;
  }

  /** Something may have been taken back. */
  hint(): void {
    if (this.#stop || !this.#holdsAny) return;
    const { clock } = this.#options;
    const wait = this.#lookedAt + LEAST_PAUSE - clock.monotonic();
    if (wait <= 0) this.#look();
    else this.#stop = clock.after(wait, () => this.#look());
  }

  /** Leaves no timer. */
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
      // The next renewal tells it, and says why the store cannot be asked.
      () => {},
    );
  }
}
