import { InvalidInputError } from './errors.ts';
/** The logger of Holdfast: pino and similar loggers fit without changes. Without a logger, nothing is logged. */
export interface Logger {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
  /** Whether lines of a level are written. If not, they are not made. Default: all are written. */
  isLevelEnabled?(level: LogLevel): boolean;
}

/** From the least to the most urgent. */
export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Writes nowhere. */
export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {}, isLevelEnabled: () => false };

/** Whether a line of this level would be written. */
export function isEnabled(log: Logger, level: LogLevel): boolean {
  return log.isLevelEnabled?.(level) ?? true;
}

/** A logger that adds the same fields to every line. */
export function withFields(log: Logger, fields: object): Logger {
  return {
    debug: (more, message) => log.debug({ ...fields, ...more }, message),
    info: (more, message) => log.info({ ...fields, ...more }, message),
    warn: (more, message) => log.warn({ ...fields, ...more }, message),
    error: (more, message) => log.error({ ...fields, ...more }, message),
    isLevelEnabled: (level) => isEnabled(log, level),
  };
}

/** A logger whose own errors are ignored, because a broken logger must not affect a task. */
export function harmless(log: Logger): Logger {
  if (log === silent) return silent;
  const quietly = (write: () => unknown) => {
    try {
      // A logger may be asynchronous, even if its type does not say so.
      Promise.resolve(write()).catch(() => {});
    } catch {
      // The error cannot be logged anywhere.
    }
  };
  return {
    debug: (fields, message) => quietly(() => log.debug(fields, message)),
    info: (fields, message) => quietly(() => log.info(fields, message)),
    warn: (fields, message) => quietly(() => log.warn(fields, message)),
    error: (fields, message) => quietly(() => log.error(fields, message)),
    isLevelEnabled(level) {
      try {
        return isEnabled(log, level);
      } catch {
        return true;
      }
    },
  };
}

/** @throws InvalidInputError if a method is missing. */
export function checkLog(log: unknown): void {
  const missing = LOG_LEVELS.find((method) => typeof Object(log)[method] !== 'function');
  if (missing === undefined) return;
  throw new InvalidInputError(
    `log needs the methods of pino; it has no function \`${missing}\`. Write log: pino(), or leave it out.`,
  );
}
