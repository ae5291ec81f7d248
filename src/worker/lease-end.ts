import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** A timer that fires so much too late tells of a freeze. */
const LATE: Milliseconds = 100;

export interface LeaseEndOptions {
  readonly clock: Clock;
  readonly leaseFor: Milliseconds;
  /** How long one last renewal may take, after the process was frozen. */
  readonly patience: Milliseconds;
  /** When the first renewal was asked for that has failed or is without an answer, since the last one that succeeded. */
  readonly failingSince: () => Milliseconds | undefined;
  readonly renew: () => Promise<void>;
  /** Called when the lease has ended, and others may take over what stood on it. */
  readonly onEnd: () => void;
}

/**
 * Watches the end of a worker's own lease, by the monotonic clock. Where renewals failed until then, it is over. Where none was
 * tried in time, because the process was frozen, one is tried first.
 */
export class LeaseEnd {
  readonly #options: LeaseEndOptions;
  #stop: (() => void) | undefined;

  constructor(options: LeaseEndOptions) {
    this.#options = options;
  }

  /** The lease was renewed at this moment of the monotonic clock. */
  renewedAt(moment: Milliseconds): void {
    const { clock, leaseFor } = this.#options;
    this.rest();
    const dueAt = moment + leaseFor;
    this.#stop = clock.after(dueAt - clock.monotonic(), () => this.#over(dueAt));
  }

  /** Watches no more, and leaves no timer. */
  rest(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #over(dueAt: Milliseconds): void {
    const { clock, patience, failingSince, renew, onEnd } = this.#options;
    this.#stop = undefined;
    const now = clock.monotonic();
    // After a freeze the answer to a renewal may wait to be read, or a renewal may have been asked for just before this.
    const wasFrozen = now - dueAt >= LATE;
    const failedInTime = now - (failingSince() ?? now) >= patience;
    if (failedInTime && !wasFrozen) {
      onEnd();
      return;
    }
    const end = clock.after(patience, () => {
      this.#stop = undefined;
      onEnd();
    });
    this.#stop = end;
    // A renewal that succeeds sets the next end.
    void renew();
  }
}
