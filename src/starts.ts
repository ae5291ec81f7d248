import type { Milliseconds } from './duration.ts';
import type { Pace } from './pace.ts';

/* A pace is kept as the time at which the next start is allowed. After a pause, at most the burst may start at once. */

/**
 * A source is probed by one task at a time. A probe that has not ended after this time no longer delays the next one: it may
 * hang, or its process may be stopped.
 */
export const PROBE_HOLDS_FOR: Milliseconds = 60_000;

/** How many tasks may start now. `nextStart`: the stored time; null if nothing has started yet. */
export function startsAllowed({ perSecond, burst }: Pace, nextStart: number | null, now: number): number {
  const next = nextStart ?? now;
  if (next > now) return 0;
  return Math.min(burst, Math.floor(((now - next) * perSecond) / 1_000) + 1);
}

/** When the next start is allowed after this many starts now. */
export function nextStartAfter(pace: Pace, nextStart: number | null, starts: number, now: number): number {
  const interval = intervalOf(pace);
  const earliest = now - (pace.burst - 1) * interval;
  return Math.max(nextStart ?? now, earliest) + starts * interval;
}

/** The same time after the pace was changed: an earlier slow pace does not delay starts longer than the new one would. */
export function underPace(pace: Pace, nextStart: number, now: number): number {
  return Math.min(nextStart, now + intervalOf(pace));
}

/** Both paces together: the slower rate, with the smaller burst. */
export function stricter(a: Pace | undefined, b: Pace | undefined): Pace | undefined {
  if (!a || !b) return a ?? b;
  return { perSecond: Math.min(a.perSecond, b.perSecond), burst: Math.min(a.burst, b.burst) };
}

function intervalOf({ perSecond }: Pace): Milliseconds {
  return 1_000 / perSecond;
}
