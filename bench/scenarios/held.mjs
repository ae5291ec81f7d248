import { runHoldfast } from '../child.mjs';
import { expectEqual } from '../measuring.mjs';
import { atCopyOf, atNewStore } from '../places.mjs';
import { countingNoop, fill, withHoldfast } from '../store.mjs';

const TASKS_EACH = 100;

export const programs = Object.fromEntries(
  [1, 100].map((concurrency) => [`held ${concurrency}`, (options) => held(options, concurrency)]),
);

/** The drain of one source: alone, and beside a million ready tasks of 10,000 sources that are held. */
async function held({ n, size, round, ...options }, concurrency) {
  const count = concurrency === 1 ? Math.ceil(n / 5) : n;
  const drain = (scenario, address) => runHoldfast('one source', { address, n: count, scenario, size, concurrency });
  const alone = () => atNewStore(options, (address) => drain('held alone', address));
  const beside = () => atCopyOf('held', { size, ...options }, (address) => drain('held', address));
  const results = [];
  for (const measure of round % 2 === 0 ? [alone, beside] : [beside, alone]) results.push(...(await measure()));
  return results;
}

programs['build held'] = async ({ address, size }) => {
  const { task } = countingNoop();
  await withHoldfast({ address, tasks: [task], durability: 'process' }, async (holdfast) => {
    const sources = Array.from({ length: Math.ceil(size / TASKS_EACH) }, (_, i) => `held:${i}`);
    await Promise.all(sources.map((source) => holdfast.sources.hold(source)));
    await fill(holdfast, task, size, ({ n }) => ({ source: sources[n % sources.length] }));
    expectEqual((await holdfast.counts()).byState.ready, size, 'ready tasks');
  });
};
