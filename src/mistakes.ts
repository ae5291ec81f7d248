import { harmless, type Logger, silent } from './log.ts';

/** After so many, nothing more is said: names can be made up without end. */
const MOST_WARNINGS = 1_000;

/**
 * Warns a programmer, once each, of what is no error but probably a mistake: in the log, or as a warning of the process if no
 * log was given.
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
