// Runs many tasks through a store on a PostgreSQL server of its own, with retention on, and prints at intervals the throughput, the
// sizes of the tables with their indexes, and their dead rows. Fails if the sizes go on growing.
//   npm run long-run:postgres -- [--tasks 2000000] [--keep 30] [--interval 15] [--minutes 30] [--dist dist]
// The small form: npm run long-run:postgres -- --tasks 30000 --keep 2 --interval 2
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startCluster } from '../test/postgres/cluster.mjs';

const { values } = parseArgs({
  options: {
    tasks: { type: 'string', default: '2000000' },
    // For how many seconds ended tasks are kept.
    keep: { type: 'string', default: '30' },
    interval: { type: 'string', default: '15' },
    // The run is given up after so long, and fails.
    minutes: { type: 'string', default: '30' },
    dist: { type: 'string', default: 'dist' },
  },
});
const [total, keep, interval, minutes] = [values.tasks, values.keep, values.interval, values.minutes].map(Number);
const from = (path) => import(pathToFileURL(resolve(values.dist, path)).href);
const [{ systemClock }, { postgres }] = [await from('clock.js'), await from('store/postgres/index.js')];

const BATCH = 500;
/** The producer waits while so many tasks wait. */
const MOST_WAITING = 5_000;
const SOURCES = 100;
/** The sizes may grow by this factor from the second third of the run to the last one. */
const FLAT = 1.3;
/** Autovacuum looks once a minute, so a shorter run says nothing about sizes. */
const SHORTEST_SECONDS = 300;

const kept = { default: keep * 1_000 };
const RETENTION = { succeeded: kept, dead: kept, cancelled: kept, needs_manual: {} };
const because = { step: 'retry', rule: 'policy', policyVersion: 'long-run', text: 'As the run has it.' };
const failure = { kind: 'transient', reason: 'net.timeout', fault: 'task', ambiguous: false, message: 'timed out' };

const cluster = await startCluster({ fsync: false });
const { default: pg } = await import('pg');
const looker = new pg.Client({ connectionString: cluster.url() });
await looker.connect();
const open = () => postgres(cluster.url(), { listen: false }).open({ clock: systemClock, random: Math.random });
const [producer, consumer, keeper] = [await open(), await open(), await open()];
const worker = await consumer.tasks.join({ name: 'long-run', leaseFor: 3_600_000, publishes: {} });
await keeper.upkeep.tidy();

const started = performance.now();
let enqueued = 0;
let ended = 0;
let removed = 0;
let over = false;
const samples = [];
const deadline = setTimeout(() => {
  over = true;
}, minutes * 60_000);
try {
  await Promise.all([produce(), consume(), retain(), look()]);
} finally {
  clearTimeout(deadline);
  for (const store of [producer, consumer, keeper]) await store.upkeep.close();
  await looker.end();
  await cluster.stop();
}
process.exitCode = verdict() ? 0 : 1;

async function produce() {
  while (enqueued < total && !over) {
    if (enqueued - ended > MOST_WAITING) {
      await pause(5);
      continue;
    }
    const count = Math.min(BATCH, total - enqueued);
    const first = enqueued;
    await producer.tasks.enqueue(Array.from({ length: count }, (_, n) => task(first + n)));
    enqueued += count;
  }
}

/** One in ten has a key. */
function task(n) {
  const common = { type: 'mail', queue: 'default', source: `s${n % SOURCES}`, priority: 0, idempotent: true, delay: 0 };
  return { ...common, payload: JSON.stringify({ n }), ...(n % 10 === 0 && { key: `key-${n}` }) };
}

async function consume() {
  while (ended < total && !over) {
    const { tasks } = await consumer.tasks.claim({
      worker,
      limit: 200,
      capabilities: {},
      suspects: 1,
      alone: true,
      except: [],
    });
    if (tasks.length === 0) await pause(5);
    const settled = tasks.length === 0 ? [] : await consumer.tasks.settle(tasks.map(settlement));
    ended += settled.filter(({ answer, state }) => answer === 'settled' && state !== 'ready').length;
  }
  over = true;
}

/** One in twenty fails once, and one in a hundred is dead after that. */
function settlement({ lease, revision }) {
  const fails = lease.execution === 1 ? lease.task % 20 === 0 : lease.task % 100 === 0;
  if (!fails) {
    const decision = { next: 'succeeded', because };
    return { lease, revision, decision, report: { ranFor: 1, outcome: 'success' } };
  }
  const charge = { to: 'task', reason: failure.reason, kind: failure.kind };
  const decision =
    lease.execution === 1
      ? { next: 'scheduled', after: 0, charge, because, reason: failure.reason, lostInARow: 0 }
      : { next: 'dead', charge, because, reason: failure.reason };
  return { lease, revision, decision, report: { ranFor: 1, outcome: 'failure', failure } };
}

async function retain() {
  while (!over) {
    for (let next = 0; next !== undefined && !over; ) {
      const pruned = await keeper.upkeep.prune(RETENTION, next);
      removed += pruned.removed.length;
      next = pruned.next;
    }
    while (!over && (await keeper.upkeep.tidy()) > 0);
    await pause(500);
  }
}

async function look() {
  console.log('seconds  tasks/s  ended      removed    MB     of these: table (with indexes) MB, dead rows');
  for (let before = 0; !over; ) {
    for (let waited = 0; waited < interval * 1_000 && !over; waited += 100) await pause(100);
    const { rows } = await looker.query(`
      SELECT regexp_replace(relname, '_(other|[0-9]{8})$', '') AS name, sum(pg_total_relation_size(relid))::float8 / 1e6 AS mb,
        sum(n_dead_tup)::int AS dead
      FROM pg_stat_user_tables WHERE schemaname = 'holdfast' GROUP BY 1 ORDER BY 2 DESC`);
    const mb = rows.reduce((sum, row) => sum + row.mb, 0);
    const seconds = (performance.now() - started) / 1_000;
    samples.push({ ended, mb });
    const tables = rows.slice(0, 7).map(({ name, mb, dead }) => `${name} ${mb.toFixed(0)}, ${dead}`);
    const columns = [
      seconds.toFixed(0).padEnd(8),
      ((ended - before) / interval).toFixed(0).padEnd(8),
      String(ended).padEnd(10),
      String(removed).padEnd(10),
      mb.toFixed(0).padEnd(6),
    ];
    console.log(`${columns.join(' ')} ${tables.join(' · ')}`);
    before = ended;
  }
}

/** Whether all tasks ended, and the largest size of the last third is no more than a little above that of the second. */
function verdict() {
  const seconds = (performance.now() - started) / 1_000;
  console.log(`${ended} of ${total} tasks ended in ${seconds.toFixed(0)} s, ${(ended / seconds).toFixed(0)} a second.`);
  if (ended < total) return false;
  const largest = (part) => Math.max(0, ...part.map(({ mb }) => mb));
  const among = (low, high) =>
    samples.filter((one) => one.ended > (total * low) / 3 && one.ended <= (total * high) / 3);
  const [second, last] = [largest(among(1, 2)), largest(among(2, 3))];
  if (seconds < SHORTEST_SECONDS || second === 0) {
    console.log('Too short to say whether the sizes are flat.');
    return true;
  }
  const isFlat = last <= second * FLAT;
  console.log(
    `The largest size of the last third is ${last.toFixed(0)} MB, of the second ${second.toFixed(0)} MB: ${isFlat ? 'flat' : 'it grows'}.`,
  );
  return isFlat;
}
