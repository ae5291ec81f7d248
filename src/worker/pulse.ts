import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

const INTERVAL: Milliseconds = 1_000;

/** If a pulse comes this much too late, the process was frozen. A shorter delay may be a busy machine. */
const LATE_PULSE: Milliseconds = 1_000;
/** The same for a timer that would end a lease or an execution. */
const LATE_TIMER: Milliseconds = 100;

/** If a process used at least this part of a freeze as processor time, it computed, even on a busy machine. */
const COMPUTING = 0.1;

/** A span of the monotonic clock in which the event loop did not run, except perhaps in its first second. */
export interface Freeze {
  readonly since: Milliseconds;
  readonly until: Milliseconds;
  /**
   * Whether the process computed meanwhile: then something blocked its event loop. Otherwise it was stopped, or waited
   * synchronously.
   */
  readonly blocked: boolean;
}

export interface PulseListener {
  /** Whether this listener needs another pulse. If none does, the pulse ends until `begin` is called again. */
  isNeeded(): boolean;
  /** Called about once a second, and as soon as a freeze is over. */
  onPulse(freeze?: Freeze): void;
}

/**
 * A timer of a second for everything that a worker checks while tasks run. It does not keep the process alive. If it fires late,
 * the process was frozen: stopped by a signal, or its event loop was blocked.
 */
export class Pulse {
  readonly #clock: Clock;
  readonly #listeners = new Set<PulseListener>();
  #stop: (() => void) | undefined;
  /** When the event loop was last seen running, and the processor time that the process had used by then. */
  #aliveAt: Milliseconds = 0;
  #usedBy: Milliseconds = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Returns a function that ends it. */
  listen(listener: PulseListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Starts the pulse, which goes on while any listener needs it. Costs nothing if it already runs. */
  begin(): void {
    if (this.#stop) return;
    this.#noteAlive(this.#clock.monotonic());
    this.#stop = this.#clock.every(INTERVAL, (late) => this.#beat(late));
  }

  /** Stops the pulse, and clears the timer. */
  rest(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /**
   * For a timer that was due at `dueAt` and fires now. If a freeze made it late, the listeners are called before this returns,
   * because the next pulse may come after that timer.
   */
  noticeLate(dueAt: Milliseconds): void {
    const now = this.#clock.monotonic();
    const wasFrozen = now - dueAt >= LATE_TIMER && this.#aliveAt < now;
    if (this.#stop && wasFrozen) this.#tell(this.#freezeUntil(now));
  }

  #beat(late: Milliseconds): void {
    const now = this.#clock.monotonic();
    const isLate = late >= LATE_PULSE && now - this.#aliveAt >= INTERVAL + LATE_PULSE;
    this.#tell(isLate ? this.#freezeUntil(now) : undefined);
    this.#noteAlive(now);
    if (![...this.#listeners].some((listener) => listener.isNeeded())) this.rest();
  }

  #tell(freeze: Freeze | undefined): void {
    for (const listener of [...this.#listeners]) listener.onPulse(freeze);
  }

  /** The freeze may have begun at any moment since the loop was last seen running. In doubt, the longer time counts. */
  #freezeUntil(now: Milliseconds): Freeze {
    const since = this.#aliveAt;
    const used = processorTime() - this.#usedBy;
    this.#noteAlive(now);
    return { since, until: now, blocked: used >= (now - since) * COMPUTING };
  }

  #noteAlive(now: Milliseconds): void {
    this.#aliveAt = now;
    this.#usedBy = processorTime();
  }
}

function processorTime(): Milliseconds {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}
