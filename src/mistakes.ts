import { harmless, type Logger, silent } from './log.ts';

/** The most warnings of one kind. Names may come from data, so there is no other limit to their number. */
const MOST_WARNINGS = 1_000;

/**
 * Warns a programmer once about each thing that is probably a mistake but no error: in the log, or as a warning of the process if
 * there is no log.
 */
export class Mistakes {
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();

  constructor(log: Logger = silent) {
    const safe = harmless(log);
    this.#warn =
      log === silent
        ? (message) => process.emitWarning(message, 'HoldfastWarning')
        : (message) => safe.warn({}, message);
  }

  /** `about` names the mistake. */
  tell(about: string, message: string): void {
    if (this.hasWarned(about) || this.#warned.size >= MOST_WARNINGS) return;
    this.#warned.add(about);
    this.#warn(message);
  }

  hasWarned(about: string): boolean {
    return this.#warned.has(about);
  }
}
