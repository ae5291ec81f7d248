// A process of a storm that enqueues until it is told to end, and notes what was acknowledged.
import { argv } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { dice } from '../../dist/testing/dice.js';
import { drawTask } from './plans.mjs';
import { openPackage } from './store.mjs';
import { openWitness } from './witness.mjs';

/** So many tasks wait at most. */
const BACKLOG = 200;

const options = JSON.parse(argv[2]);
const { name, first } = options;
const random = dice(options.seed);
const note = openWitness(options.witness);
const { opened } = await openPackage(options);

let told = false;
process.once('SIGTERM', () => {
  told = true;
});

const holdfast = await opened();
process.stdout.write('working\n');
for (let number = first; !told; ) {
  const batch = Array.from({ length: 1 + Math.floor(random() * 8) }, () => drawTask(number++, random));
  // What is asked for in one turn shares a transaction.
  await Promise.all(
    batch.map(async ({ input, options }) => {
      // Of every second task only its worker's definition says whether it may run twice.
      const said = input.number % 2 === 0 ? { idempotent: input.plan !== 'once' } : {};
      const { id } = await holdfast.enqueue('work', input, { ...options, ...said });
      note('acknowledged', { task: id, execution: input.number, process: name, how: input.plan });
    }),
  );
  await delay(random() * 60);
  while (!told && (await holdfast.counts()).byState.ready > BACKLOG) await delay(50);
}
await holdfast.close();
