// @ts-check
import { setTimeout } from 'node:timers/promises';
import { defineTask, openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';

/**
 * A worker that is stopped claims no more, lets what runs end, and hands back, uncounted, what takes longer than its grace.
 * @param {(line: string) => void} say
 */
export async function gracefulStop(say) {
  /** @type {() => void} */
  let started = () => {};
  const running = new Promise((resolve) => {
    started = () => resolve(undefined);
  });
  const work = defineTask('work', {
    /** @param {number} ms */
    async run(ms, { signal }) {
      if (ms > 1_000) started();
      await setTimeout(ms, undefined, { signal });
    },
  });
  const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [work] });
  const names = new Map();
  const inputs = { short: 50, long: 3_600_000, waiting: 0 };
  for (const [name, ms] of Object.entries(inputs)) names.set((await holdfast.enqueue(work, ms)).id, name);
  const worker = holdfast.work({ concurrency: 2, name: 'worker-001' });
  await running;
  await worker.stop({ grace: '1s' });

  for (const task of (await holdfast.list()).toReversed()) {
    say(`${names.get(task.id)}: ${task.state}, ${task.executions} executions, ${task.attempts} attempts counted`);
  }
  say(`workers left: ${(await holdfast.workers()).length}`);
  await holdfast.close();
}
