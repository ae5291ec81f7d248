import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { defineTask } from '../../dist/index.js';
import { talkTo } from '../child.mjs';
import { inFolder } from '../files.mjs';
import { expectEqual, rateOf } from '../measuring.mjs';
import { atNewStore } from '../places.mjs';
import { fill, resultOf, withHoldfast } from '../store.mjs';

const PROCESSES = 4;
const TASKS = 20_000;
const CONCURRENCY = 10;

export const programs = {
  /** Four processes drain one store. Every execution leaves a line in a file that all append to: their witness. */
  processes(options) {
    return inFolder(options.dir, (folder) =>
      atNewStore(options, (address) => drainBySeveral(address, join(folder, 'witness'))),
    );
  },

  async 'one of several'({ address, witness }) {
    const file = openSync(witness, 'a');
    const witnessed = defineTask('witnessed', {
      run(_, { id }) {
        writeSync(file, `${id}\n`);
      },
    });
    const complaints = [];
    const complain = (...parts) => complaints.push(parts.map(wordsOf).join(' '));
    const log = { debug() {}, info() {}, warn: complain, error: complain };
    await withHoldfast({ address, tasks: [witnessed], log }, async (holdfast) => {
      const [told, left] = ['message', 'disconnect'].map(
        (event) => new Promise((resolve) => process.once(event, resolve)),
      );
      process.send('ready');
      await told;
      await holdfast.worker({ concurrency: CONCURRENCY }).drain().catch(complain);
      process.send(complaints);
      await left;
    });
    closeSync(file);
  },
};

function drainBySeveral(address, witness) {
  return withHoldfast({ address }, async (holdfast) => {
    await fill(holdfast, 'witnessed', TASKS);
    const workers = Array.from({ length: PROCESSES }, () => talkTo('holdfast', 'one of several', { address, witness }));
    await Promise.all(workers.map((worker) => worker.next()));
    const complaints = [];
    const rate = await rateOf(TASKS, async () => {
      const answers = workers.map((worker) => worker.next());
      for (const worker of workers) worker.tell('go');
      complaints.push(...(await Promise.all(answers)).flat());
    });
    await Promise.all(workers.map((worker) => worker.end()));
    for (const complaint of complaints) console.error(complaint);
    expectEqual((await holdfast.counts()).byState.succeeded, TASKS, 'tasks that succeeded');
    const executed = readFileSync(witness, 'utf8').trim().split('\n');
    const figures = {
      concurrency: CONCURRENCY,
      processes: PROCESSES,
      ...rate,
      executed_once: executed.length === TASKS && new Set(executed).size === TASKS,
      complaints: complaints.length,
    };
    return [resultOf('processes', holdfast, figures)];
  });
}

function wordsOf(part) {
  if (part instanceof Error) return part.stack;
  return typeof part === 'string'
    ? part
    : JSON.stringify(part, (_, value) => (value instanceof Error ? value.stack : value));
}
