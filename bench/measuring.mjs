// How fast something is done, and how long it takes.
import { latency } from './figures.mjs';

/** The first ones find code that was never run. */
const WARM_UP = 20;

/** Each sample comes after a pause that is long enough for the work that follows a start to be done. */
export const SHORTLY = { samples: 200, pauseMs: 10 };

/** After such a pause nobody keeps back any more what processes tell each other. */
export const RARELY = { samples: 100, pauseMs: 150 };

/** How fast so many of something were done. */
export async function rateOf(n, work) {
  const from = performance.now();
  await work();
  return { rate_per_s: Math.round(n / ((performance.now() - from) / 1_000)), n };
}

/** The figures of several waits that alternate sample by sample, so that all find the same disk. */
export async function alternate(waits, { samples, pauseMs } = SHORTLY) {
  const taken = waits.map(() => []);
  for (let i = 0; i < WARM_UP + samples; i++) {
    for (const [which, wait] of waits.entries()) {
      await pause(pauseMs);
      taken[which].push(await wait());
    }
  }
  return taken.map((all) => ({ concurrency: 1, ...latency(all.slice(WARM_UP)) }));
}

/** Milliseconds of the clock that all processes of a machine share. */
export function moment() {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** A figure of something that did not happen is worth nothing. */
export function expectEqual(got, expected, what) {
  if (got !== expected) throw new Error(`There should be ${expected} ${what}, and there are ${got}.`);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
