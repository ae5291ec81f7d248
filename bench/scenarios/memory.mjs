import { join } from 'node:path';
import { runHoldfast } from '../child.mjs';
import { copyOfBuilt, countingNoop, drainRate, fill, inFolder, resultOf, withHoldfast } from '../store.mjs';

const CONCURRENCY = 100;

export const programs = {
  /** The peak of a process that does nothing but drain a million tasks that others enqueued. */
  memory({ dir, size }) {
    return inFolder(dir, async (folder) => {
      const path = join(folder, 'tasks.db');
      await copyOfBuilt('million', { dir, size }, path);
      return runHoldfast('drain and weigh', { path, size });
    });
  },

  async 'drain and weigh'({ path, size }) {
    const noop = countingNoop();
    return withHoldfast({ path, tasks: [noop.task] }, async (holdfast) => {
      const at_start_mb = peakMb();
      const figures = await drainRate(holdfast, noop, size, CONCURRENCY);
      return [resultOf('memory', holdfast, { ...figures, size, at_start_mb, peak_mb: peakMb() })];
    });
  },

  async 'build million'({ path, size }) {
    await withHoldfast({ path, durability: 'process' }, (holdfast) => fill(holdfast, 'noop', size));
  },
};

/** Linux counts in what the parent had when it started this process, which is why that one is kept small. */
function peakMb() {
  return Math.round(process.resourceUsage().maxRSS / 1024);
}
