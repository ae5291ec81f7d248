// How fast something is done, and how long it takes.
import { latency } from './figures.mjs';

/** The first ones find code that was never run. */
const WARM_UP = 20;

/**
 * How often a start is measured: after a pause that is long enough for the work that follows a start, and after one in which
 * nobody keeps back what processes tell each other; then so many times a second, which the pauses between samples make.
 */
export const PACES = {
  'idle in process': { samples: 200, pauseMs: 20 },
  'idle across processes': { samples: 60, pauseMs: 200 },
  'trickle 10': { samples: 60, pauseMs: 100 },
  'trickle 30': { samples: 100, pauseMs: 33 },
  'trickle 100': { samples: 200, pauseMs: 10 },
};

/** How fast so many of something were done. */
export async function rateOf(n, work) {
  const from = performance.now();
  await work();
  return { rate_per_s: Math.round(n / ((performance.now() - from) / 1_000)), n };
}

/** The figures of several waits that alternate sample by sample, so that all find the same disk. */
export async function alternate(waits, { samples, pauseMs }) {
  const taken = waits.map(() => []);
  for (let i = 0; i < WARM_UP + samples; i++) {
    for (const [which, wait] of waits.entries()) {
      await pause(pauseMs / waits.length);
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
