import { countingNoop, drainRate, fill, inStore, resultOf } from '../store.mjs';

export const programs = Object.fromEntries(
  [1, 10, 100].map((concurrency) => [`drain ${concurrency}`, (options) => drain(options, concurrency)]),
);

async function drain({ n, ...options }, concurrency) {
  const noop = countingNoop();
  return inStore({ ...options, tasks: [noop.task] }, async (holdfast) => {
    await fill(holdfast, noop.task, n);
    return [resultOf('drain', holdfast, await drainRate(holdfast, noop, n, concurrency))];
  });
}
