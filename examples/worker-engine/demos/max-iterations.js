// @ts-check
import { defineTask, openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';

/**
 * A worker that starts exactly ten tasks and ends, and one task at a time for who has a loop of one's own.
 * @param {(line: string) => void} say
 */
export async function maxIterations(say) {
  const work = defineTask('work', { run() {} });
  const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [work] });
  await holdfast.enqueueAll(
    work,
    Array.from({ length: 12 }, (_, n) => n),
  );
  /** @param {string} what */
  const tell = async (what) => {
    const { succeeded, ready } = (await holdfast.counts()).byState;
    say(`${what}: ${succeeded} done, ${ready} left`);
  };

  await holdfast.work({ maxTasks: 10 }).finished;
  await tell('a worker of ten iterations has ended');

  const worker = holdfast.worker();
  for (let done = await worker.runOne(); done; done = await worker.runOne()) await tell('one more');
  say('runOne answers undefined: nothing is ready');
  await holdfast.close();
}
