// plainjob on the same machine, as its README sets it up: WAL with synchronous=NORMAL, which does not survive a power cut.
//   node plainjob.mjs NAME '{"dir": …, "n": …}'
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { better, defineQueue, defineWorker } from 'plainjob';
import { payload, payloads } from './payload.mjs';

const CHUNK = 100;
const quiet = { error() {}, warn() {}, info() {}, debug() {} };

const programs = {
  'enqueue one by one': (queue, n) => {
    for (let i = 0; i < n; i++) queue.add('noop', payload(i));
  },
  'enqueue bulk': (queue, n) => {
    for (let i = 0; i < n; i += CHUNK) queue.addMany('noop', payloads(i, Math.min(CHUNK, n - i)));
  },
};

/** A worker runs one job at a time, so its concurrency is a number of workers, which share the connection. */
async function drain(queue, n, concurrency) {
  let done = 0;
  await new Promise((resolve) => {
    const work = async () => {
      if (++done === n) resolve();
    };
    for (let i = 0; i < concurrency; i++) void defineWorker('noop', work, { queue, logger: quiet }).start();
  });
}

const [name, options] = process.argv.slice(2);
const { dir, n } = JSON.parse(options);
const folder = mkdtempSync(join(dir, 'plainjob-'));
const queue = defineQueue({ connection: better(new Database(join(folder, 'jobs.db'))), logger: quiet });
const [scenario, concurrency] = name.startsWith('drain') ? ['drain', Number(name.split(' ')[1])] : [name, 1];
if (scenario === 'drain') queue.addMany('noop', payloads(0, n));
const from = performance.now();
await (scenario === 'drain' ? drain(queue, n, concurrency) : programs[scenario](queue, n));
const seconds = (performance.now() - from) / 1_000;
const jobs = queue.countJobs({ type: 'noop' });
if (jobs !== n) throw new Error(`plainjob has ${jobs} jobs instead of ${n}.`);
console.log(
  JSON.stringify({
    system: 'plainjob',
    scenario,
    concurrency,
    durability: 'process',
    rate_per_s: Math.round(n / seconds),
    n,
  }),
);
rmSync(folder, { recursive: true });
// Its workers poll for more.
process.exit();
