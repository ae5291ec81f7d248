import { Cron } from 'croner';
import { InvalidInputError } from '../errors.ts';
import { show } from '../show.ts';

/** When a schedule fires: a cron expression in a time zone. */
export interface Timing {
  readonly cron: string;
  /** A name of the IANA database, such as `Europe/Berlin`. */
  readonly timeZone: string;
}

/** The times of a cron expression, in milliseconds since 1970. */
export interface Times {
  /** The first time after this one; undefined if there is none. */
  after(time: number): number | undefined;
  /** The last `count` times up to and including this one, oldest first. */
  upTo(time: number, count: number): readonly number[];
}

const NICKNAMES = ['@yearly', '@annually', '@monthly', '@weekly', '@daily', '@midnight', '@hourly'];

/** Clocks are set back by an hour almost everywhere, and by half an hour on Lord Howe Island. */
const SET_BACK_BY = [3_600_000, 1_800_000];

/**
 * Reads a cron expression: five fields (minute, hour, day of the month, month, day of the week), six with seconds first, or a
 * nickname such as `@daily`. If a change of the clocks skips the one time of a day, it fires as soon as the clocks were set
 * forward; of several times in the skipped hour none fires. A time that comes twice, because the clocks are set back, fires once,
 * unless the hour has a `*`.
 * @throws InvalidInputError for an invalid expression or time zone.
 */
export function parseCron({ cron, timeZone }: Timing): Times {
  const fields = typeof cron === 'string' ? cron.trim().split(/\s+/) : [];
  const isNickname = fields.length === 1 && NICKNAMES.includes((fields[0] as string).toLowerCase());
  if (!isNickname && fields.length !== 5 && fields.length !== 6) {
    throw new InvalidInputError(
      `cron must have five fields such as '0 3 * * *' (minute, hour, day of the month, month, day of the week), or six with seconds first, got ${show(cron)}.`,
    );
  }
  const wallClock = wallClockOf(timeZone);
  let pattern: Cron;
  try {
    pattern = new Cron(cron.trim(), { timezone: timeZone, paused: true });
  } catch (error) {
    const why = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    throw new InvalidInputError(`cron ${show(cron)} is refused: ${why.replace(/[.,].*$/, '')}.`, 'invalid_input', {
      cause: error,
    });
  }
  const hour = isNickname ? (/hourly/i.test(cron) ? '*' : '0') : (fields.at(-4) as string);
  const firesEachHour = /[*?]/.test(hour);
  const isRepeated = (time: number) =>
    !firesEachHour && SET_BACK_BY.some((by) => wallClock.format(time - by) === wallClock.format(time));
  return {
    after(time) {
      let next = pattern.nextRun(new Date(time))?.getTime();
      while (next !== undefined && isRepeated(next)) next = pattern.nextRun(new Date(next))?.getTime();
      return next;
    },
    upTo(time, count) {
      // The library leaves out the time it is asked about, and what it finds may have to be dropped here.
      const runs = pattern.previousRuns(count + 2, new Date(time + 1_000)).map((run) => run.getTime());
      const kept = runs.filter((run) => run <= time && !isRepeated(run)).sort((a, b) => a - b);
      return kept.slice(-count);
    },
  };
}

function wallClockOf(timeZone: string): Intl.DateTimeFormat {
  try {
    return new Intl.DateTimeFormat('en', { timeZone, dateStyle: 'short', timeStyle: 'medium' });
  } catch (error) {
    throw new InvalidInputError(
      `timeZone must be a name such as 'Europe/Berlin' or 'UTC', got ${show(timeZone)}.`,
      'invalid_input',
      { cause: error },
    );
  }
}
