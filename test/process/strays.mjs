// A program whose code goes astray: node strays.mjs WHAT. Each line that it prints is a JSON value.
import { defineTask, openHoldfast } from '../../dist/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

const [what] = process.argv.slice(2);
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const rejectLater = () => void Promise.resolve().then(() => Promise.reject(new Error('foreign')));

const work = defineTask('work', {
  run: () => (what === 'owned' ? void setTimeout(() => Promise.reject(new Error('owned')), 50) : undefined),
});
const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [work] });
await holdfast.enqueue(work, null);
const worker = holdfast.worker();
await worker.drain();

if (what === 'heard') process.on('unhandledRejection', (reason) => say({ heard: reason.message }));
if (what === 'caught') process.on('uncaughtException', (error, origin) => say({ caught: error.message, origin }));
if (what === 'after stop') await worker.stop();
if (what === 'exception')
  setTimeout(() => {
    throw new Error('foreign');
  });
else if (what !== 'owned') rejectLater();

// Long enough for a process that is to end to have ended.
setTimeout(async () => {
  say({ history: (await holdfast.history(1)).map(({ kind }) => kind) });
  await holdfast.close();
}, 300);
