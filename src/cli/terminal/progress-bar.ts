import type { Terminal } from './terminal.ts';
import { cut } from './width.ts';

/** It is drawn at most ten times a second. */
const EVERY_MS = 100;

const CELLS = 24;

/** Shows progress in one line of a terminal's stderr. Shows nothing where stderr is no terminal, or with --quiet. */
export class ProgressBar {
  readonly #terminal: Terminal;
  readonly #shown: boolean;
  #drawnAt = Number.NEGATIVE_INFINITY;
  #drawn = false;

  constructor(terminal: Terminal, environment: Readonly<Record<string, string | undefined>>) {
    this.#terminal = terminal;
    this.#shown = terminal.err.isTerminal && !terminal.quiet && environment.TERM !== 'dumb';
  }

  /** `share` from 0 to 1, where it is known. */
  update(share: number | undefined, words: () => string): void {
    const now = performance.now();
    if (!this.#shown || now - this.#drawnAt < EVERY_MS) return;
    this.#drawnAt = now;
    this.#drawn = true;
    const { err } = this.#terminal;
    const text = share === undefined ? words() : `${bar(share)}  ${words()}`;
    err.raw(`\r${cut(text, err.columns - 1)}\u001b[K`);
  }

  /** Removes the line, before something else is written. */
  clear(): void {
    if (!this.#drawn) return;
    this.#drawn = false;
    this.#drawnAt = Number.NEGATIVE_INFINITY;
    this.#terminal.err.raw('\r\u001b[K');
    this.#terminal.err.atLineStart = true;
  }
}

/** In ASCII, so that it is the same in every locale. */
function bar(share: number): string {
  const full = Math.round(Math.min(1, Math.max(0, share)) * CELLS);
  return `[${'#'.repeat(full)}${'-'.repeat(CELLS - full)}] ${String(Math.floor(share * 100)).padStart(3)}%`;
}
