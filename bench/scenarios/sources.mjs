import { join } from 'node:path';
import { copyOfBuilt, countingNoop, drainRate, fill, inFolder, resultOf, withHoldfast } from '../store.mjs';

const CONCURRENCY = 100;
const TASKS_EACH = 2;

export const programs = {
  /** A drain over 100,000 sources that are all open: two tasks of each, in turn. */
  sources({ dir, size }) {
    return inFolder(dir, async (folder) => {
      const path = join(folder, 'tasks.db');
      await copyOfBuilt('sources', { dir, size }, path);
      const noop = countingNoop();
      return withHoldfast({ path, tasks: [noop.task] }, async (holdfast) => {
        const figures = await drainRate(holdfast, noop, sourcesOf(size) * TASKS_EACH, CONCURRENCY);
        return [resultOf('sources', holdfast, { ...figures, size })];
      });
    });
  },

  async 'build sources'({ path, size }) {
    const sources = sourcesOf(size);
    await withHoldfast({ path, durability: 'process' }, (holdfast) =>
      fill(holdfast, 'noop', sources * TASKS_EACH, ({ n }) => ({ source: `source:${n % sources}` })),
    );
  },
};

function sourcesOf(size) {
  return Math.ceil(size / 10);
}
