import { hostname } from 'node:os';
import { InvalidInputError } from '../errors.ts';
import { LOG_LEVELS, type Logger, type LogLevel } from '../log.ts';
import { name as nameFrom, oneOf, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';

export interface JsonLogOptions {
  /** Where a line goes, with its line end: `(line) => process.stdout.write(line)`. */
  readonly write: (line: string) => unknown;
  /** The least urgent level that is written. Default `info`. */
  readonly level?: LogLevel;
  /** The `name` of the lines. Default `holdfast`. */
  readonly name?: string;
  /** The time in milliseconds since 1970. Default: the host's clock. */
  readonly now?: () => number;
}

/** The numbers of pino's levels. */
const NUMBERS: Readonly<Record<LogLevel, number>> = { debug: 20, info: 30, warn: 40, error: 50 };

/**
 * A log of JSON lines in pino's format, without pino: `level` (20 debug, 30 info, 40 warn, 50 error), `time`, `pid`, `hostname`,
 * `name`, the fields of the line, `msg`. An error in the field `err` becomes its type, message, code and stack.
 * @throws InvalidInputError for invalid options.
 */
export function jsonLog(options: JsonLogOptions): Logger {
  refuseUnknown(options, ['write', 'level', 'name', 'now'], 'jsonLog');
  const { write, level = 'info', name = 'holdfast', now = Date.now } = options;
  for (const [called, value] of Object.entries({ write, now })) {
    if (typeof value !== 'function') throw new InvalidInputError(`${called} must be a function, got ${show(value)}.`);
  }
  const least = LOG_LEVELS.indexOf(oneOf(level, LOG_LEVELS, 'level'));
  const base = { pid: process.pid, hostname: hostname(), name: nameFrom(name, 'name') };
  const writing = (of: LogLevel) => (fields: object, msg: string) => {
    if (LOG_LEVELS.indexOf(of) < least) return;
    const line = { level: NUMBERS[of], time: now(), ...base, ...fields, msg };
    write(`${JSON.stringify(line, plain)}\n`);
  };
  return {
    debug: writing('debug'),
    info: writing('info'),
    warn: writing('warn'),
    error: writing('error'),
    isLevelEnabled: (asked) => LOG_LEVELS.indexOf(asked) >= least,
  };
}

function plain(_: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value);
  if (!(value instanceof Error)) return value;
  const { name, message, stack } = value;
  const code = 'code' in value ? value.code : undefined;
  return { type: name, message, ...(code !== undefined && { code }), stack };
}
