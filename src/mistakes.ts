import { harmless, type Logger, silent } from './log.ts';

/** After so many, nothing more is said: names can be made up without end. */
const MOST_TOLD = 1_000;

/**
 * Tells a programmer of what was probably not meant and is no error. Each is told once: in the log, or as a warning of the process where no
 * log was given.
 */
export class Mistakes {
  readonly #warn: (message: string) => void;
  readonly #told = new Set<string>();

  constructor(log: Logger = silent) {
    const safe = harmless(log);
    this.#warn =
      log === silent
        ? (message) => process.emitWarning(message, 'HoldfastWarning')
        : (message) => safe.warn({}, message);
  }

  /** `about` names the mistake. */
  tell(about: string, message: string): void {
    if (this.isTold(about) || this.#told.size >= MOST_TOLD) return;
    this.#told.add(about);
    this.#warn(message);
  }

  isTold(about: string): boolean {
    return this.#told.has(about);
  }
}
