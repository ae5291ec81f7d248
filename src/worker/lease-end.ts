import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

export interface LeaseEndOptions {
  readonly clock: Clock;
  readonly leaseFor: Milliseconds;
  /** How long one last renewal may take, after the process was frozen. */
  readonly patience: Milliseconds;
  /** Whether a renewal has failed or is without an answer since the last one that succeeded. */
  readonly isFailing: () => boolean;
  readonly renew: () => Promise<void>;
  /** Called when the lease has ended, and others may take over what stood on it. */
  readonly onEnd: () => void;
}

/**
 * Watches the end of a worker's own lease, by the monotonic clock. Where renewals failed until then, it is over. Where none was
 * tried, because the process was frozen, one is tried first.
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
    this.#stop = clock.after(moment + leaseFor - clock.monotonic(), () => this.#over());
  }

  /** Watches no more, and leaves no timer. */
  rest(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  #over(): void {
    const { clock, patience, isFailing, renew, onEnd } = this.#options;
    this.#stop = undefined;
    if (isFailing()) {
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
