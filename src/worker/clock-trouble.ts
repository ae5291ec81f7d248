import { formatDuration } from '../duration.ts';
import type { ClockRecord } from '../store/store.ts';

/** If the store's clock is this far ahead of the wall clock, it is reported. */
const AHEAD_MS = 5 * 60_000;

/** A sentence that says what is wrong with the clocks; undefined if nothing is wrong. */
export function clockTrouble({ now, wall, believedIn, leapt, removesIn }: ClockRecord): string | undefined {
  const about = (ms: number) => formatDuration(Math.round(ms / 1_000) * 1_000);
  if (believedIn !== undefined) {
    return (
      `The wall clock jumped ${about(wall - now)} ahead, which the time since the boot does not explain. The store's time goes on ` +
      `as before; the wall clock is believed in ${about(believedIn)} if it stays there`
    );
  }
  if (now - wall > AHEAD_MS) {
    return `The store's time is ${about(now - wall)} ahead of the wall clock, for that was ahead before: deadlines and times of day come early`;
  }
  if (leapt !== undefined && removesIn !== undefined) {
    return `After a boot the clock was ${about(leapt)} later than before. It is believed, and no task is removed by age for ${about(removesIn)}`;
  }
  if (removesIn !== undefined) {
    return `The clock of the database jumped ahead. No task is removed by age for ${about(removesIn)}`;
  }
  return undefined;
}
