import { formatDuration } from '../duration.ts';
import type { ClockRecord } from '../store/store.ts';

/** A store's clock that is so much ahead of the wall clock is worth a word. */
const AHEAD_MS = 5 * 60_000;

/** What is wrong with the clocks, in words; undefined where nothing is. */
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
