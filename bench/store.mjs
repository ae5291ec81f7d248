// What the scenarios of Holdfast have in common: stores to measure in, tasks to fill them with, and rates.
import { closeSync, copyFileSync, existsSync, fsyncSync, mkdtempSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { defineTask, openHoldfast } from '../dist/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';
import { runHoldfast } from './child.mjs';
import { payload } from './payload.mjs';

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

/** Opens a store at a path, with all promises on unless said otherwise. */
export async function withHoldfast({ path, tasks = [], durability = 'full', log }, use) {
  const holdfast = await openHoldfast({ store: sqlite(path, { durability }), tasks, ...(log && { log }) });
  try {
    return await use(holdfast);
  } finally {
    await holdfast.close();
  }
}

/** A folder for as long as it is used. */
export async function inFolder(dir, use) {
  const folder = mkdtempSync(join(dir, 'scenario-'));
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** A new store for as long as it is used. */
export function inStore({ dir, tasks }, use) {
  return inFolder(dir, (folder) => withHoldfast({ path: join(folder, 'tasks.db'), tasks }, use));
}

/**
 * A copy, at `path`, of what the program `build NAME` fills. It is built once a run, in its own process, and each copy is
 * brought to the disk before anything is measured beside it.
 */
export async function copyOfBuilt(name, { dir, size }, path) {
  const built = join(dir, `${name}.db`);
  if (!existsSync(built)) {
    await runHoldfast(`build ${name}`, { path: `${built}.new`, size });
    renameSync(`${built}.new`, built);
  }
  copyFileSync(built, path);
  const file = openSync(path, 'r+');
  fsyncSync(file);
  closeSync(file);
}

/** Enqueues so many tasks. `optionsOf` says, from its number, what a chunk of them has in common, or is a function for each. */
export async function fill(holdfast, task, count, options = {}) {
  const chunk = 2_000;
  for (let from = 0; from < count; from += chunk) {
    const inputs = Array.from({ length: Math.min(chunk, count - from) }, (_, i) => payload(from + i));
    await holdfast.enqueueAll(task, inputs, options);
  }
}

/** How fast so many of something were done. */
export async function rateOf(n, work) {
  const from = performance.now();
  await work();
  return { rate_per_s: Math.round(n / ((performance.now() - from) / 1_000)), n };
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

/** A figure of something that did not happen is worth nothing. */
export function expectEqual(got, expected, what) {
  if (got !== expected) throw new Error(`There should be ${expected} ${what}, and there are ${got}.`);
}
