import type { Milliseconds } from '../duration.ts';
import type { Ramp } from './memory.ts';

/*
 * How fast the work of a source is released after a pause. The rate starts low and grows with each answer of the source, by at
 * most a half per second. If the source refuses work because it is too much, the rate goes down, and then grows as in CUBIC (the
 * congestion control of TCP): back to almost the old rate, slowly past it, and faster after that.
 */

const FIRST_RATE = 1;
const LEAST_RATE = 1 / 60;

/** How much the rate grows with each answer, as long as the source has refused nothing. */
const GROWTH = 0.5;
/**
 * The factor of the rate when the source refuses work: sharp if it does so for the first time or soon after the last time,
 * otherwise gentle.
 */
const SHARP = 0.7;
const GENTLE = 0.95;
/**
 * How long it takes to grow back to the rate at which the source refused work. It is longer for slow rates, up to the longest.
 */
const GROW_BACK: Milliseconds = 15_000;
const LONGEST_GROW_BACK: Milliseconds = 60_000;
/**
 * Above `UNCHECKED`, the rate is at most this many times the measured answers per second. Otherwise it could grow until
 * everything is released at once.
 */
const UNCHECKED = 10;
const MOST_ABOVE_MEASURED = 2.5;
/** A rate that has not limited anything for this long is no longer enforced. */
const FREE_AFTER: Milliseconds = 60_000;

/** The start of a ramp. */
export function firstRamp(): Ramp {
  return { rate: FIRST_RATE, measured: 0, measuredAgo: 0, begunAgo: 0, free: false };
}

/** The ramp after an answer to an execution that started this long ago. */
export function afterAnswer(ramp: Ramp, startedAgo: Milliseconds): Ramp {
  if (ramp.free) return ramp;
  const span = measuredOver(ramp.rate);
  const measured = measuredNow(ramp) + 1 / span;
  const most = Math.max(UNCHECKED, MOST_ABOVE_MEASURED * measured);
  const rate = Math.max(ramp.rate, Math.min(grown(ramp, startedAgo), most));
  const calm = Math.min(ramp.begunAgo, ramp.throttle?.ago ?? ramp.begunAgo);
  return {
    ...ramp,
    rate,
    measured,
    measuredAgo: 0,
    free: calm >= FREE_AFTER && rate >= most,
    ...(ramp.throttle && { throttle: { ...ramp.throttle, answers: ramp.throttle.answers + 1 } }),
  };
}

function grown({ rate, throttle }: Ramp, startedAgo: Milliseconds): number {
  // Answers of long executions come late, so the rate must grow more slowly.
  if (throttle === undefined) return rate + GROWTH / Math.max(1, startedAgo / 1_000);
  const { ago, ceiling, floor } = throttle;
  const part = ago / Math.min(LONGEST_GROW_BACK, Math.max(GROW_BACK, 20_000 / ceiling)) - 1;
  return ceiling + (ceiling - floor) * part ** 3;
}

/** The ramp after the source refused work. Executions that started before the last refusal belong to that refusal. */
export function afterThrottle(ramp: Ramp, startedAgo: Milliseconds): Ramp {
  const { rate, throttle } = ramp;
  if (throttle !== undefined && startedAgo >= throttle.ago) return ramp;
  const measured = measuredNow(ramp);
  const ceiling = Math.max(LEAST_RATE / SHARP, rate / 2, Math.min(rate, measured));
  const soon = throttle === undefined || throttle.answers < 2 * rate;
  const floor = ceiling * (soon ? SHARP : GENTLE);
  return {
    ...ramp,
    rate: floor,
    measured,
    measuredAgo: 0,
    free: false,
    throttle: { ago: 0, ceiling, floor, answers: 0 },
  };
}

/**
 * The ramp after the source asked for a pause. The pause itself already slows the starts, so the rate does not go below the first
 * rate. Otherwise a few short pauses in a row would slow the source down for a long time.
 */
export function afterPause(ramp: Ramp, startedAgo: Milliseconds): Ramp {
  const after = afterThrottle(ramp, startedAgo);
  return { ...after, rate: Math.max(after.rate, Math.min(ramp.rate, FIRST_RATE)) };
}

/** The time over which answers are averaged, in seconds: at least two seconds, and long enough for five answers. */
function measuredOver(rate: number): number {
  return Math.max(2, 5 / rate);
}

/** Older answers count less and less. */
function measuredNow({ rate, measured, measuredAgo }: Ramp): number {
  return measured * Math.exp(-measuredAgo / 1_000 / measuredOver(rate));
}
