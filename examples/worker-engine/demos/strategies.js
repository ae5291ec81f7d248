// @ts-check
import { defineTask, QUEUE_ORDERS } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';

/**
 * The four strategies. The order belongs to the queue, so that all of its workers agree on what is next.
 * @param {(line: string) => void} say
 */
export async function strategies(say) {
  for (const order of QUEUE_ORDERS) {
    /** @type {number[]} */
    const started = [];
    const work = defineTask('work', { run: (/** @type {number} */ priority) => void started.push(priority) });
    const kit = await openTestHoldfast({ tasks: [work], queues: { default: { order } }, worker: { concurrency: 1 } });
    await kit.holdfast.pauseQueue('default');
    for (const priority of [2, 1, 9, 5]) await kit.holdfast.enqueue(work, priority, { priority });
    await kit.holdfast.resumeQueue('default');
    await kit.drain();
    say(`${order}: enqueued with the priorities 2, 1, 9, 5, started as ${started.join(', ')}`);
    await kit.close();
  }
  say(`weighted_random, two hundred times: ${await firsts(200)}`);
}

/**
 * How often a task of priority 9 goes before one of priority 1, of so many pairs.
 * @param {number} pairs
 */
async function firsts(pairs) {
  /** @type {Map<number, number>} */
  const first = new Map();
  const work = defineTask('work', {
    run({ pair, priority }) {
      if (!first.has(pair)) first.set(pair, priority);
    },
  });
  const queues = { default: { order: /** @type {const} */ ('weighted_random') } };
  const kit = await openTestHoldfast({ tasks: [work], queues, worker: { concurrency: 1 } });
  for (let pair = 0; pair < pairs; pair++) {
    await kit.holdfast.pauseQueue('default');
    for (const priority of [1, 9]) await kit.holdfast.enqueue(work, { pair, priority }, { priority });
    await kit.holdfast.resumeQueue('default');
    await kit.drain();
  }
  await kit.close();
  const nines = [...first.values()].filter((priority) => priority === 9).length;
  return `priority 9 went before priority 1 in ${Math.round((100 * nines) / pairs)} of 100`;
}
