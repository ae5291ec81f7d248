import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

const INTERVAL: Milliseconds = 1_000;

/** A pulse that comes so much too late tells of a freeze; less may be a busy machine. */
const LATE_PULSE: Milliseconds = 1_000;
/** The same of a timer whose end would cost somebody something. */
const LATE_TIMER: Milliseconds = 100;

/** A process that used at least this part of a freeze computed, however many others shared the processor. */
const COMPUTING = 0.1;

/** A span of the monotonic clock in which the event loop stood still: for all of it, or all but its first second. */
export interface Freeze {
  readonly since: Milliseconds;
  readonly until: Milliseconds;
  /** The process computed meanwhile: something blocked its event loop. Else it was stopped, or waited without letting others run. */
  readonly blocked: boolean;
}

export interface PulseListener {
  /** Asked at each pulse: when nobody needs another one, the pulse ends until `begin` is called again. */
  isNeeded(): boolean;
  /** Called about once a second, and as soon as a freeze is over. */
  onPulse(freeze?: Freeze): void;
}

/**
 * One timer of a second for all that a worker looks after while something runs. It keeps no process alive. By how late it fires
 * it finds out that the process was frozen: stopped by a signal, or its event loop blocked.
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

  /** Returns what ends it. */
  listen(listener: PulseListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Beats from now on for as long as any listener needs it. Costs nothing where it does so already. */
  begin(): void {
    if (this.#stop) return;
    this.#noteAlive(this.#clock.monotonic());
    this.#stop = this.#clock.every(INTERVAL, (late) => this.#beat(late));
  }

  /** Beats no more, and leaves no timer. */
  rest(): void {
    this.#stop?.();
    this.#stop = undefined;
  }

  /**
   * For a timer that was due then and fires now: where a freeze made it late, the listeners are told of the freeze before this
   * returns, for the pulse that would tell them may come after that timer.
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

  /** It may have begun at any moment since the loop was last seen running; whoever may have been frozen is believed. */
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
