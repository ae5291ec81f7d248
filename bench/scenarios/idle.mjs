import { join } from 'node:path';
import Database from 'better-sqlite3';
import { defineTask } from '../../dist/index.js';
import { talkTo } from '../child.mjs';
import { latency } from '../figures.mjs';
import { payload } from '../payload.mjs';
import { inFolder, resultOf, withHoldfast } from '../store.mjs';

const SAMPLES = 200;
/** The first ones find code that was never run. */
const WARM_UP = 20;
/** Long enough for the work that follows a start to be done. */
const PAUSE_MS = 10;

export const programs = {
  /** From the call of enqueue to the start of the handler, in a process that does nothing else. */
  'idle in process'({ dir }) {
    return inFolder(dir, async (folder) => {
      let started;
      const probe = defineTask('probe', { run: () => started(moment()) });
      return withHoldfast({ path: join(folder, 'tasks.db'), tasks: [probe] }, (holdfast) => {
        holdfast.work();
        return beside(folder, 'idle in process', holdfast, async () => {
          const start = new Promise((resolve) => {
            started = resolve;
          });
          const from = moment();
          await holdfast.enqueue(probe, payload(0));
          return (await start) - from;
        });
      });
    });
  },

  /** The same, where another process has the worker. */
  'idle across processes'({ dir }) {
    return inFolder(dir, async (folder) => {
      const path = join(folder, 'tasks.db');
      return withHoldfast({ path }, async (holdfast) => {
        const worker = talkTo('idle worker', { path });
        await worker.next();
        try {
          return await beside(folder, 'idle across processes', holdfast, async () => {
            const start = worker.next();
            const from = moment();
            await holdfast.enqueue('probe', payload(0));
            return (await start) - from;
          });
        } finally {
          await worker.end();
        }
      });
    });
  },

  async 'idle worker'({ path }) {
    const probe = defineTask('probe', {
      run() {
        process.send(moment());
      },
    });
    await withHoldfast({ path, tasks: [probe] }, async (holdfast) => {
      const told = new Promise((resolve) => process.once('disconnect', resolve));
      holdfast.work();
      process.send('working');
      await told;
    });
  },
};

/** The waits, and between them, after the same pauses and on the same disk, the least that a durable queue can wait for. */
async function beside(folder, scenario, holdfast, wait) {
  const commit = oneRowCommit(folder);
  const waits = [];
  const commits = [];
  for (let i = 0; i < WARM_UP + SAMPLES; i++) {
    await pause();
    commits.push(commit());
    await pause();
    waits.push(await wait());
  }
  const figures = (all) => ({ concurrency: 1, ...latency(all.slice(WARM_UP)) });
  return [
    { system: 'one-row commit', scenario, durability: 'full', ...figures(commits) },
    resultOf(scenario, holdfast, figures(waits)),
  ];
}

/** One row in one transaction of a bare database that waits for the disk. */
function oneRowCommit(folder) {
  const database = new Database(join(folder, 'rows.db'));
  database.pragma('journal_mode = WAL');
  database.pragma('synchronous = FULL');
  database.exec('CREATE TABLE tasks (id INTEGER PRIMARY KEY, payload TEXT NOT NULL)');
  const insert = database.prepare('INSERT INTO tasks (payload) VALUES (?)');
  const text = JSON.stringify(payload(0));
  return () => {
    const from = moment();
    insert.run(text);
    return moment() - from;
  };
}

/** Milliseconds of the clock that all processes of a machine share. */
function moment() {
  return Number(process.hrtime.bigint()) / 1e6;
}

function pause() {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
