// @ts-check
// A worker that runs until it is told to stop (Ctrl+C): node examples/worker-engine/worker.js FILE
import { defineTask, openHoldfast, presets } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { WORKER } from './worker-options.js';

/** @param {string} line */
const say = (line) => process.stdout.write(`${line}\n`);

const greet = defineTask('greet', {
  retry: presets.worker,
  /** @param {{ name: string }} input */
  run(input) {
    say(`Hello, ${input.name}!`);
  },
});

const holdfast = await openHoldfast({
  store: sqlite(process.argv[2] ?? 'tasks.db'),
  tasks: [greet],
  queues: { default: { order: 'priority' } },
});
const worker = holdfast.work(WORKER);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void worker.stop());
say('The worker is started.');
await worker.finished;
await holdfast.close();
say('The worker has stopped.');
