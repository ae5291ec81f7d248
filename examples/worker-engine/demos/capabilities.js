// @ts-check
import { defineTask, openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';

/**
 * A task names what it needs, a worker what it offers: numbers mean at least, texts and booleans equal.
 * @param {(line: string) => void} say
 */
export async function capabilities(say) {
  const render = defineTask('render', { run: (/** @type {string} */ scene) => say(`renders ${scene}`) });
  const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [render] });
  await holdfast.enqueue(render, 'a thumbnail');
  await holdfast.enqueue(render, 'a still, on 4 processors', { needs: { cpu: 4 } });
  await holdfast.enqueue(render, 'a film, on 16 processors', { needs: { cpu: 16 } });
  await holdfast.enqueue(render, 'a game, on its card', { needs: { cpu: 8, gpu: 'RTX5090' } });
  await holdfast.enqueue(render, 'a game, on another card', { needs: { gpu: 'A100' } });

  say('a worker with 8 processors and an RTX5090:');
  const worker = holdfast.worker({ name: 'worker-001', capabilities: { cpu: 8, gpu: 'RTX5090' }, concurrency: 1 });
  await worker.drain();
  await worker.stop();

  for (const { input, needs } of (await holdfast.list({ states: ['ready'] })).toReversed()) {
    say(`left for another worker: ${input}, which needs ${JSON.stringify(needs)}`);
  }
  await holdfast.close();
}
