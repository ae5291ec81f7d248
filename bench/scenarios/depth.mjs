import { runHoldfast } from '../child.mjs';
import { expectEqual } from '../measuring.mjs';
import { atCopyOf, atNewStore } from '../places.mjs';
import { countingNoop, drainRate, fill, resultOf, withHoldfast } from '../store.mjs';

const CONCURRENCY = 100;
const DAY_MS = 86_400_000;

export const programs = {
  /** The drain of one source: alone, and beside a million of everything that must cost it nothing. */
  async depth({ n, size, round, ...options }) {
    const alone = () => atNewStore(options, (address) => drainOneSource('depth alone', address, n, 0));
    const beside = () => atCopyOf('deep', { size, ...options }, (address) => drainOneSource('depth', address, n, size));
    const results = [];
    for (const measure of round % 2 === 0 ? [alone, beside] : [beside, alone]) results.push(...(await measure()));
    return results;
  },

  async 'one source'({ address, n, scenario, size, concurrency = CONCURRENCY }) {
    const noop = countingNoop();
    return withHoldfast({ address, tasks: [noop.task] }, async (holdfast) => {
      await fill(holdfast, noop.task, n, { source: 'open' });
      const figures = await drainRate(holdfast, noop, n, concurrency);
      return [resultOf(scenario, holdfast, { ...figures, size })];
    });
  },

  /**
   * A million scheduled, a million ended, a million ready behind a held source, and 100,000 held sources with a ready task
   * each: all of the same type and queue as what is drained, all older, and all made by the calls that a program would use.
   */
  async 'build deep'({ address, size }) {
    const { task } = countingNoop();
    // The disk is waited for when the file is closed.
    await withHoldfast({ address, tasks: [task], durability: 'process' }, async (holdfast) => {
      await fill(holdfast, task, size);
      await holdfast.worker({ concurrency: CONCURRENCY }).drain();
      await holdfast.sources.hold('held');
      await fill(holdfast, task, size, { source: 'held' });
      const sources = Array.from({ length: Math.ceil(size / 10) }, (_, i) => `held:${i}`);
      await Promise.all(sources.map((source) => holdfast.sources.hold(source)));
      await fill(holdfast, task, sources.length, ({ n }) => ({ source: sources[n] }));
      await fill(holdfast, task, size, ({ n }) => ({ delay: `${DAY_MS + n}ms` }));
      const { scheduled, ready, succeeded } = (await holdfast.counts()).byState;
      expectEqual(scheduled, size, 'scheduled tasks');
      expectEqual(succeeded, size, 'ended tasks');
      expectEqual(ready, size + sources.length, 'ready tasks');
    });
  },
};

/** In a process of its own, so that each finds code that never ran. */
function drainOneSource(scenario, address, n, size) {
  return runHoldfast('one source', { address, n, scenario, size });
}
