import { atCopyOf } from '../places.mjs';
import { countingNoop, drainRate, fill, resultOf, withHoldfast } from '../store.mjs';

const CONCURRENCY = 100;
const TASKS_EACH = 2;

export const programs = {
  /** A drain over 100,000 sources that are all open: two tasks of each, in turn. */
  sources({ size, ...options }) {
    return atCopyOf('sources', { size, ...options }, (address) => {
      const noop = countingNoop();
      return withHoldfast({ address, tasks: [noop.task] }, async (holdfast) => {
        const figures = await drainRate(holdfast, noop, sourcesOf(size) * TASKS_EACH, CONCURRENCY);
        return [resultOf('sources', holdfast, { ...figures, size })];
      });
    });
  },

  async 'build sources'({ address, size }) {
    const sources = sourcesOf(size);
    await withHoldfast({ address, durability: 'process' }, (holdfast) =>
      fill(holdfast, 'noop', sources * TASKS_EACH, ({ n }) => ({ source: `source:${n % sources}` })),
    );
  },
};

function sourcesOf(size) {
  return Math.ceil(size / 10);
}
