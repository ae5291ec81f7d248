// What is recorded: enqueues, executions, retries and cancels in one store. Each acknowledgement is written to a file by the very
// thread that writes to the database, so that the recording has both in their order.
//   node workload.mjs DIST FOLDER ROUNDS DURABILITY [LONGEST_MS]
import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';

const [dist, folder, rounds, durability, longest] = process.argv.slice(2);
const { defineTask, fixed, HoldfastError, openHoldfast } = await import(`${dist}index.js`);
const { sqlite } = await import(`${dist}store/sqlite/index.js`);

// Where every call fails from some moment on, nothing may ever come to rest. What was acknowledged by then is judged.
if (longest !== undefined) setTimeout(() => process.exit(0), Number(longest)).unref();

const acknowledgements = openSync(join(folder, 'acknowledged'), 'a');
const acknowledge = (what, id) => writeSync(acknowledgements, `${what} ${id}\n`);

const refused = openSync(join(folder, 'refused'), 'a');

/** What fails in the library's words is noted, and the next is tried; what fails otherwise ends the program. */
async function attempt(call) {
  try {
    return await call();
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    writeSync(refused, `${error.code}\n`);
  }
}

const work = defineTask('work', {
  retry: { maxAttempts: 3, backoff: fixed('0ms'), jitter: { kind: 'none' } },
  run({ failures }, task) {
    if (task.attempt <= failures) throw new Error('asked to fail');
    return { done: true };
  },
});

const holdfast = await attempt(() =>
  openHoldfast({ store: sqlite(join(folder, 'tasks.db'), { durability }), tasks: [work] }),
);
if (!holdfast) process.exit(0);
const worker = holdfast.worker({
  concurrency: 5,
  onEvent(event) {
    if (event.kind === 'settled') acknowledge(event.state, event.task.lease.task);
  },
});
async function enqueue(type, input, options) {
  const task = await attempt(() => holdfast.enqueue(type, input, options));
  if (task) acknowledge('enqueued', task.id);
  return task?.id;
}

for (let round = 0; round < Number(rounds); round += 1) {
  const padding = 'x'.repeat((round * 97) % 3_000);
  const enqueued = [0, 1, 4].map((failures) => enqueue(work, { failures, padding }));
  const id = await enqueue('later', { round }, { delay: '1d' });
  await Promise.all(enqueued);
  await attempt(() => worker.drain());
  if (round % 3 === 0 && id !== undefined) {
    const cancelled = await attempt(() => holdfast.cancel(id));
    if (cancelled) acknowledge('cancelled', id);
  }
}
await attempt(() => worker.stop({ grace: '1s' }));
await attempt(() => holdfast.close());
