import { runHoldfast } from '../child.mjs';
import { atCopyOf } from '../places.mjs';
import { countingNoop, drainRate, fill, resultOf, withHoldfast } from '../store.mjs';

const CONCURRENCY = 100;

export const programs = {
  /** The peak of a process that does nothing but drain a million tasks that others enqueued. */
  memory({ size, ...options }) {
    return atCopyOf('million', { size, ...options }, (address) => runHoldfast('drain and weigh', { address, size }));
  },

  async 'drain and weigh'({ address, size }) {
    const noop = countingNoop();
    return withHoldfast({ address, tasks: [noop.task] }, async (holdfast) => {
      const at_start_mb = peakMb();
      const figures = await drainRate(holdfast, noop, size, CONCURRENCY);
      return [resultOf('memory', holdfast, { ...figures, size, at_start_mb, peak_mb: peakMb() })];
    });
  },

  async 'build million'({ address, size }) {
    await withHoldfast({ address, durability: 'process' }, (holdfast) => fill(holdfast, 'noop', size));
  },
};

/** Linux counts in what the parent had when it started this process, which is why that one is kept small. */
function peakMb() {
  return Math.round(process.resourceUsage().maxRSS / 1024);
}
