import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/** If a timer fires this much too late, the process was frozen. */
const LATE: Milliseconds = 100;

export interface LeaseEndOptions {
  readonly clock: Clock;
  /** How long one last renewal may take, after the process was frozen. */
  readonly lastRenewalTimeout: Milliseconds;
  /**
   * When the first renewal after the last successful one was requested; undefined if there is none without an answer or failed.
   */
  readonly failingSince: () => Milliseconds | undefined;
  readonly renew: () => Promise<void>;
  /** Called when the lease has ended. Others may take over its tasks from then on. */
  readonly onEnd: () => void;
}

/**
 * Watches the end of a worker's own lease on the monotonic clock. If renewals failed until then, the lease has ended. If none was
 * tried in time, because the process was frozen, one is tried first.
 */
export class LeaseEnd {
  readonly #options: LeaseEndOptions;
  #clearTimer: (() => void) | undefined;

  constructor(options: LeaseEndOptions) {
    this.#options = options;
  }

  /** The lease was renewed for so long at this moment of the monotonic clock. */
  noteRenewal(moment: Milliseconds, leaseFor: Milliseconds): void {
    const { clock } = this.#options;
    this.stop();
    const dueAt = moment + leaseFor;
    this.#clearTimer = clock.after(dueAt - clock.monotonic(), () => this.#onDue(dueAt));
  }

  /** Stops watching. */
  stop(): void {
    this.#clearTimer?.();
    this.#clearTimer = undefined;
  }

  #onDue(dueAt: Milliseconds): void {
    const { clock, lastRenewalTimeout, failingSince, renew, onEnd } = this.#options;
    this.#clearTimer = undefined;
    const now = clock.monotonic();
    // After a freeze, the answer to a renewal may have arrived but not been read, or a renewal may have been requested just
    // before.
    const wasFrozen = now - dueAt >= LATE;
    const hasFailedForLong = now - (failingSince() ?? now) >= lastRenewalTimeout;
    if (hasFailedForLong && !wasFrozen) {
      onEnd();
      return;
    }
    const end = clock.after(lastRenewalTimeout, () => {
      this.#clearTimer = undefined;
      onEnd();
    });
    this.#clearTimer = end;
    // A successful renewal sets the next end.
    void renew();
  }
}
