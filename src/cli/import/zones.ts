import { visible } from '../../views/visible.ts';
import { usage } from '../problem.ts';

const LOCAL = /^(\d{4}-\d{2}-\d{2})[T ](\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)$/;

/** @throws Problem if there is no such zone. */
export function checkZone(zone: string, where: string): void {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone });
  } catch (error) {
    throw usage(`${where}: there is no zone ${visible(zone)}. Zones are named UTC or Europe/Prague`, { cause: error });
  }
}

/**
 * A date and a time without a zone, with the zone in which they were written. Of an hour that comes twice it is the first; a time
 * that a clock skips is as long after the skip. Undefined for anything else.
 */
export function instantIn(zone: string, text: string): string | undefined {
  const [, date, time] = LOCAL.exec(text.trim()) ?? [];
  if (date === undefined) return undefined;
  const wall = Date.parse(`${date}T${time}Z`);
  if (Number.isNaN(wall)) return undefined;
  // The offset may change within a day of that time, and no offset is longer than a day.
  const offsets = [wall - 86_400_000, wall + 86_400_000].map((at) => offsetAt(zone, at));
  const fitting = offsets.map((offset) => wall - offset).filter((at) => at + offsetAt(zone, at) === wall);
  const at = fitting.length > 0 ? Math.min(...fitting) : wall - (offsets[0] as number);
  return new Date(at).toISOString();
}

/** How far the clocks of a zone are ahead of UTC at a moment, in milliseconds. */
function offsetAt(zone: string, at: number): number {
  const whole = Math.floor(at / 1_000) * 1_000;
  const format = new Intl.DateTimeFormat('en', {
    timeZone: zone,
    hourCycle: 'h23',
    ...{ year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' },
  });
  const part = Object.fromEntries(format.formatToParts(whole).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 1, day, hour, minute, second } = part;
  return Date.UTC(year, month - 1, day, hour, minute, second) - whole;
}
