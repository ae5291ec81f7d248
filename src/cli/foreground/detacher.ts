import { systemClock } from '../../clock.ts';
import { unwritable } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { Brakes } from './handler-stopper.ts';

/** Whether the reader of stdout went away: `| head`, and a terminal that was closed. A disk says EIO too, when it fails. */
export function readerIsGone({ code = '' }: NodeJS.ErrnoException): boolean {
  return code === 'EPIPE' || code === 'ECONNRESET' || (code === 'EIO' && process.stdout.isTTY);
}

/** Most commands have ended by then; of the others a person is told. */
const STOPS_SOON_MS = 300;

/**
 * What ends a stay in the foreground: an interrupt, the end of somebody's patience, or a reader who went away. The brakes are
 * put on at once, and at a second interrupt what they stop is killed.
 */
export class Departure {
  /** Whether it is time to go. */
  left = false;
  readonly #brakes: Brakes;
  readonly #terminal: Terminal;
  readonly #endings: (() => void)[] = [];
  #notify = () => {};

  constructor(brakes: Brakes, terminal: Terminal) {
    this.#brakes = brakes;
    this.#terminal = terminal;
  }

  /** From here on an interrupt no longer ends the process by itself. */
  listen(): void {
    if (this.#endings.length > 0) return;
    let told = false;
    const broken = (error: NodeJS.ErrnoException) => {
      if (!readerIsGone(error) && !told) this.#terminal.warn(unwritable(error));
      told = true;
      this.#leave();
    };
    process.stdout.on('error', broken);
    this.#endings.push(
      () => process.stdout.off('error', broken),
      onInterrupt((times) => {
        // A terminal has shown `^C`.
        if (this.#terminal.err.isTerminal) this.#terminal.err.atLineStart = false;
        this.#leave();
        if (times > 1) this.#brakes.killNow();
      }),
    );
  }

  leaveAfter(ms: number): void {
    this.#endings.push(systemClock.after(ms, () => this.#leave()));
  }

  /** Calls back when it is time to go, at once if it is already. */
  onLeave(notify: () => void): void {
    this.#notify = notify;
    if (this.left) notify();
  }

  /** Listens no more. */
  end(): void {
    for (const ending of this.#endings.splice(0)) ending();
  }

  #leave(): void {
    if (this.left) return;
    this.left = true;
    this.#brakes.stop();
    this.#notify();
    const tell = () => {
      if (this.#brakes.running > 0) this.#terminal.note('stopping what runs. Ctrl-C again kills it at once');
    };
    this.#endings.push(systemClock.after(STOPS_SOON_MS, tell));
  }
}
