// What the scenarios of Holdfast have in common: stores to measure in, tasks to fill them with, and rates.
import { defineTask, openHoldfast } from '../dist/index.js';
import { expectEqual, rateOf } from './measuring.mjs';
import { payload } from './payload.mjs';
import { atNewStore, storeAt } from './places.mjs';

/** A type whose handler does nothing but count, so that a figure can be checked against what ran. */
export function countingNoop() {
  let runs = 0;
  const task = defineTask('noop', {
    run() {
      runs += 1;
    },
  });
  return { task, runs: () => runs };
}

/** Opens the store at an address, with all promises on unless said otherwise. */
export async function withHoldfast({ address, tasks = [], durability, log }, use) {
  const holdfast = await openHoldfast({ store: storeAt(address, durability), tasks, ...(log && { log }) });
  try {
    return await use(holdfast);
  } finally {
    await holdfast.close();
  }
}

/** A new store for as long as it is used. */
export function inStore({ tasks, ...options }, use) {
  return atNewStore(options, (address) => withHoldfast({ address, tasks }, use));
}

/** Enqueues so many tasks. `optionsOf` says, from its number, what a chunk of them has in common, or is a function for each. */
export async function fill(holdfast, task, count, options = {}) {
  const chunk = 2_000;
  for (let from = 0; from < count; from += chunk) {
    const inputs = Array.from({ length: Math.min(chunk, count - from) }, (_, i) => payload(from + i));
    await holdfast.enqueueAll(task, inputs, options);
  }
}

/** Drains a store of so many tasks that are ready, and checks that this is what was done. */
export async function drainRate(holdfast, { runs }, n, concurrency) {
  const before = runs();
  const rate = await rateOf(n, () => holdfast.worker({ concurrency }).drain());
  expectEqual(runs() - before, n, 'executions');
  return { concurrency, ...rate };
}

export function resultOf(scenario, holdfast, figures) {
  return { system: 'holdfast', scenario, durability: holdfast.describe().durability, ...figures };
}
