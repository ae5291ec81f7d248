// The ways to enqueue that every system is measured in. A system is two functions: `one` takes a payload, `many` takes several.
import { latency } from './figures.mjs';
import { moment, rateOf } from './measuring.mjs';
import { payload, payloads } from './payload.mjs';

const CALLERS = 100;
/** As the floor does it. */
const CHUNK = 100;
/** Each waits for the disk. */
const MOST_ONE_BY_ONE = 5_000;

export const WAYS = ['enqueue one by one', 'enqueue concurrent', 'enqueue bulk'];

/** The figures of one way, for so many tasks at most. */
export function enqueuing(way, n, system) {
  return DONE[way](n, system);
}

const DONE = {
  async 'enqueue one by one'(most, { one }) {
    const n = Math.min(most, MOST_ONE_BY_ONE);
    const waits = [];
    const rate = await rateOf(n, async () => {
      for (let i = 0; i < n; i++) {
        const from = moment();
        await one(payload(i));
        waits.push(moment() - from);
      }
    });
    return { concurrency: 1, ...latency(waits), ...rate };
  },

  /** Callers that know nothing of each other, each of which waits for its own. */
  async 'enqueue concurrent'(n, { one }) {
    let next = 0;
    const call = async () => {
      while (next < n) await one(payload(next++));
    };
    const rate = await rateOf(n, () => Promise.all(Array.from({ length: CALLERS }, call)));
    return { concurrency: CALLERS, ...rate };
  },

  async 'enqueue bulk'(n, system) {
    return { concurrency: 1, ...(await rateOf(n, () => inBulk(n, system))) };
  },
};

/** In chunks, one after the other. */
export async function inBulk(n, { many }) {
  for (let i = 0; i < n; i += CHUNK) await many(payloads(i, Math.min(CHUNK, n - i)));
}
