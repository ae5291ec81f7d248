import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { atOnce } from '../worker/scene.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** A leak of 100 bytes a task would show. */
const TASKS_A_ROUND = 5_000;
const MOST_GROWTH = 500_000;

test('memory stays flat over ten thousand tasks', async () => {
  const work = defineTask('work', {
    retry: { ...atOnce, timeout: '1h' },
    async run(n: number, task) {
      task.signal.addEventListener('abort', () => {});
      await null;
      if (n % 10 === 0 && task.attempt === 1) throw new Error('at first');
      return { n };
    },
  });
  const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [work] });
  const worker = holdfast.worker({ concurrency: 100, onEvent() {} });
  const round = async (tasks: number) => {
    await Promise.all(Array.from({ length: tasks }, (_, n) => holdfast.enqueue(work, n)));
    await worker.drain();
    collectGarbage();
    return process.memoryUsage().heapUsed;
  };
  // By then what is learned once is learned, and compiled.
  await round(TASKS_A_ROUND);
  await round(TASKS_A_ROUND);
  const before = await round(1_000);

  await round(TASKS_A_ROUND);
  await round(TASKS_A_ROUND);
  const after = await round(1_000);

  expect((await holdfast.counts()).byState).toMatchObject({ succeeded: 22_000 });
  expect(after - before).toBeLessThan(MOST_GROWTH);
  await holdfast.close();
}, 60_000);
