// plainjob on the same machine, as its README sets it up: WAL with synchronous=NORMAL, which does not survive a power cut.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import Database from 'better-sqlite3';
import { better, defineQueue, defineWorker } from 'plainjob';

const { values } = parseArgs({ options: { n: { type: 'string', default: '20000' }, only: { type: 'string' } } });
const n = Number(values.n);
const wanted = (scenario) => !values.only || values.only.split(',').some((part) => scenario.includes(part));
const quiet = { error() {}, warn() {}, info() {}, debug() {} };

const folder = mkdtempSync(join(tmpdir(), 'plainjob-bench-'));
const queue = defineQueue({ connection: better(new Database(join(folder, 'jobs.db'))), logger: quiet });
const payload = (i) => ({
  n: i,
  to: `user${i}@example.com`,
  subject: 'welcome',
  ref: 'abcdefghijklmnopqrstuvwxyz0123456789',
});
const print = (scenario, count, from) =>
  console.log(
    JSON.stringify({
      system: 'plainjob',
      scenario,
      concurrency: 1,
      durability: 'process',
      rate_per_s: Math.round(count / ((performance.now() - from) / 1_000)),
    }),
  );

let from = performance.now();
for (let i = 0; i < n; i++) queue.add('noop', payload(i));
if (wanted('enqueue')) print('enqueue one by one', n, from);

if (wanted('drain')) {
  from = performance.now();
  let done = 0;
  await new Promise((resolve) => {
    const worker = defineWorker(
      'noop',
      async () => {
        if (++done === n) resolve(worker.stop());
      },
      { queue, logger: quiet },
    );
    void worker.start();
  });
  print('drain 1', n, from);
}
queue.close();
rmSync(folder, { recursive: true });
process.exit(0);
