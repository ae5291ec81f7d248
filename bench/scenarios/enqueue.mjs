import { enqueuing, WAYS } from '../enqueueing.mjs';
import { expectEqual } from '../measuring.mjs';
import { countingNoop, inStore, resultOf } from '../store.mjs';

export const programs = Object.fromEntries(WAYS.map((way) => [way, (options) => enqueue(way, options)]));

function enqueue(way, { n, ...options }) {
  const { task } = countingNoop();
  return inStore({ ...options, tasks: [task] }, async (holdfast) => {
    const figures = await enqueuing(way, n, {
      one: (input) => holdfast.enqueue(task, input),
      many: (inputs) => holdfast.enqueueAll(task, inputs),
    });
    expectEqual((await holdfast.counts()).byState.ready, figures.n, 'ready tasks');
    return [resultOf(way, holdfast, figures)];
  });
}
