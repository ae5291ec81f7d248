import type { Channel } from './terminal.ts';

/** The other screen of a terminal, without a cursor, where long lines are cut and pasted text has marks; and back. */
const ENTER = '\u001b[?1049h\u001b[?25l\u001b[?7l\u001b[?2004h\u001b[2J';
const LEAVE = '\u001b[?2004l\u001b[?7h\u001b[?25h\u001b[?1049l';
const LINE = '\u001b[2K';
const REST_OF_SCREEN = '\u001b[J';

/**
 * The whole terminal, while a command draws on it. It is as before after `leave`, and whatever ends the process: a signal, an error,
 * `process.exit`. While Ctrl-Z or SIGTSTP stops the process, the shell has it.
 */
export class FullScreen {
  readonly #out: Channel;
  /** Draws all again after the process was stopped. */
  readonly #redraw: () => void;
  #drawn: readonly string[] = [];
  #entered = false;

  constructor(out: Channel, redraw: () => void) {
    this.#out = out;
    this.#redraw = redraw;
  }

  open(): void {
    process.on('exit', this.#leave);
    // Before the error is printed, which would be lost with this screen.
    process.on('uncaughtExceptionMonitor', this.#leave);
    // Before the process is stopped.
    process.prependListener('SIGTSTP', this.#leave);
    process.on('SIGCONT', this.#enterAgain);
    this.#enter();
  }

  close(): void {
    process.off('exit', this.#leave);
    process.off('uncaughtExceptionMonitor', this.#leave);
    process.off('SIGTSTP', this.#leave);
    process.off('SIGCONT', this.#enterAgain);
    this.#leave();
  }

  /** Writes the lines that differ from those that are there. */
  draw(lines: readonly string[]): void {
    if (!this.#entered) return;
    const changed = lines.flatMap((line, i) =>
      // Erased first: after a line as wide as the terminal, the cursor stands on its last character.
      line === this.#drawn[i] ? [] : [`\u001b[${i + 1};1H${LINE}${this.#out.inLocale(line)}`],
    );
    const fewer = lines.length < this.#drawn.length ? [`\u001b[${lines.length + 1};1H${REST_OF_SCREEN}`] : [];
    this.#drawn = lines;
    this.#out.raw([...changed, ...fewer].join(''));
  }

  /** Forgets what is there, so that all is drawn again: the terminal has another size. */
  clear(): void {
    this.#drawn = [];
    if (this.#entered) this.#out.raw('\u001b[2J');
  }

  #enter(): void {
    process.stdin.setRawMode(true);
    this.#drawn = [];
    this.#entered = true;
    this.#out.raw(ENTER);
  }

  readonly #leave = (): void => {
    if (!this.#entered) return;
    this.#entered = false;
    process.stdin.setRawMode(false);
    this.#out.raw(LEAVE);
  };

  readonly #enterAgain = (): void => {
    // Whoever had the terminal meanwhile may have changed its mode, also if the process was stopped by SIGSTOP.
    this.#leave();
    this.#enter();
    this.#redraw();
  };
}
