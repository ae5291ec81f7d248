import { systemClock } from '../../clock.ts';
import { unwritable } from '../problem.ts';
import { onInterrupt } from '../terminal/interrupts.ts';
import type { Terminal } from '../terminal/terminal.ts';
import type { HandlerStopper } from './handler-stopper.ts';

/** Whether stdout has no reader any more, as after `| head` or on a closed terminal. A failing disk also reports EIO. */
export function readerIsGone({ code = '' }: NodeJS.ErrnoException): boolean {
  return code === 'EPIPE' || code === 'ECONNRESET' || (code === 'EIO' && process.stdout.isTTY);
}

/** After this time, a note says that commands are being stopped. Most have ended by then. */
const NOTE_AFTER_MS = 300;

/**
 * Ends work in the foreground after an interrupt, after `--timeout`, or when the reader of stdout is gone. It stops the handlers at
 * once, and kills their processes at a second interrupt.
 */
export class Detacher {
  /** Whether the work in the foreground is to end. */
  detached = false;
  readonly #stopper: HandlerStopper;
  readonly #terminal: Terminal;
  readonly #cleanUps: (() => void)[] = [];
  #notify = () => {};

  constructor(stopper: HandlerStopper, terminal: Terminal) {
    this.#stopper = stopper;
    this.#terminal = terminal;
  }

  /** After this call an interrupt detaches, and no longer ends the process. */
  listen(): void {
    if (this.#cleanUps.length > 0) return;
    let warned = false;
    const broken = (error: NodeJS.ErrnoException) => {
      if (!readerIsGone(error) && !warned) this.#terminal.warn(unwritable(error));
      warned = true;
      this.#detach();
    };
    process.stdout.on('error', broken);
    this.#cleanUps.push(
      () => process.stdout.off('error', broken),
      onInterrupt((times) => {
        // Ends the line on which the terminal has shown `^C`.
        if (this.#terminal.err.isTerminal) this.#terminal.err.atLineStart = false;
        this.#detach();
        if (times > 1) this.#stopper.killNow();
      }),
    );
  }

  detachAfter(ms: number): void {
    this.#cleanUps.push(systemClock.after(ms, () => this.#detach()));
  }

  /** Calls back when the work is to end; at once if it already is. */
  onDetach(notify: () => void): void {
    this.#notify = notify;
    if (this.detached) notify();
  }

  /** Removes all listeners. */
  end(): void {
    for (const cleanUp of this.#cleanUps.splice(0)) cleanUp();
  }

  #detach(): void {
    if (this.detached) return;
    this.detached = true;
    this.#stopper.stop();
    this.#notify();
    const note = () => {
      if (this.#stopper.running > 0) this.#terminal.note('stopping the running tasks. Ctrl-C again kills them at once');
    };
    this.#cleanUps.push(systemClock.after(NOTE_AFTER_MS, note));
  }
}
