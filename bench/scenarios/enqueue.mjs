import { latency } from '../figures.mjs';
import { payload, payloads } from '../payload.mjs';
import { countingNoop, expectEqual, inStore, rateOf, resultOf } from '../store.mjs';

const CALLERS = 100;
/** As the floor does it. */
const CHUNK = 100;
/** Each waits for the disk. */
const MOST_ONE_BY_ONE = 5_000;

export const programs = {
  'enqueue one by one'({ dir, n }) {
    const count = Math.min(n, MOST_ONE_BY_ONE);
    return enqueuing({ dir, n: count, concurrency: 1 }, 'enqueue one by one', async (holdfast, task) => {
      const waits = [];
      for (let i = 0; i < count; i++) {
        const from = performance.now();
        await holdfast.enqueue(task, payload(i));
        waits.push(performance.now() - from);
      }
      return latency(waits);
    });
  },

  /** Callers that know nothing of each other, each of which waits for its own. */
  'enqueue concurrent'({ dir, n }) {
    return enqueuing({ dir, n, concurrency: CALLERS }, 'enqueue concurrent', async (holdfast, task) => {
      let next = 0;
      const call = async () => {
        while (next < n) await holdfast.enqueue(task, payload(next++));
      };
      await Promise.all(Array.from({ length: CALLERS }, call));
    });
  },

  'enqueue bulk'({ dir, n }) {
    return enqueuing({ dir, n, concurrency: 1 }, 'enqueue bulk', async (holdfast, task) => {
      for (let i = 0; i < n; i += CHUNK) await holdfast.enqueueAll(task, payloads(i, Math.min(CHUNK, n - i)));
    });
  },
};

async function enqueuing({ dir, n, concurrency }, scenario, enqueue) {
  const { task } = countingNoop();
  return inStore({ dir, tasks: [task] }, async (holdfast) => {
    let more;
    const rate = await rateOf(n, async () => {
      more = await enqueue(holdfast, task);
    });
    expectEqual((await holdfast.counts()).byState.ready, n, 'ready tasks');
    return [resultOf(scenario, holdfast, { concurrency, ...more, ...rate })];
  });
}
