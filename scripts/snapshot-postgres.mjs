// Enqueues, claims and settles at a steady rate, first without and then beside a transaction that keeps an old snapshot open, and
// prints the throughput and how long a claim took in both. Fails where it misses the bar: beside the snapshot at least 80 % of the
// throughput, and a p99 of at most five times.
//   npm run snapshot:postgres -- [--seconds 60] [--rate 500] [--sources 100] [--fair] [--dist dist]
import { resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { startCluster } from '../test/postgres/cluster.mjs';

const { values } = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    rate: { type: 'string', default: '500' },
    sources: { type: 'string', default: '100' },
    fair: { type: 'boolean', default: false },
    dist: { type: 'string', default: 'dist' },
  },
});
const [seconds, rate, sources] = [values.seconds, values.rate, values.sources].map(Number);
const from = (path) => import(pathToFileURL(resolve(values.dist, path)).href);
const [{ systemClock }, { postgres }] = [await from('clock.js'), await from('store/postgres/index.js')];

const BATCH = 20;
const LEAST_SHARE = 0.8;
const MOST_FACTOR = 5;
const SUCCESS = {
  next: 'succeeded',
  because: { step: 'retry', rule: 'policy', policyVersion: 'bench', text: 'Done.' },
};

const cluster = await startCluster({ fsync: false });
const { default: pg } = await import('pg');
const holder = new pg.Client({ connectionString: cluster.url() });
await holder.connect();
const open = () => postgres(cluster.url(), { listen: false }).open({ clock: systemClock, random: Math.random });
const [producer, consumer] = [await open(), await open()];
if (values.fair) await producer.sources.setUp('default', { fair: true });
const worker = await consumer.tasks.join({ name: 'bench', leaseFor: 3_600_000, publishes: {} });

try {
  await measure('warm', 3);
  const before = await measure('without', seconds / 3);
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM holdfast.live');
  const beside = await measure('beside an old snapshot', seconds);
  const share = beside.perSecond / before.perSecond;
  const factor = beside.p99 / before.p99;
  const isMet = share >= LEAST_SHARE && factor <= MOST_FACTOR;
  console.log(
    `${(100 * share).toFixed(0)} % of the throughput, p99 × ${factor.toFixed(1)}: ${isMet ? 'met' : 'not met'}`,
  );
  if (!isMet) process.exitCode = 1;
} finally {
  await producer.upkeep.close();
  await consumer.upkeep.close();
  await holder.end();
  await cluster.stop();
}

async function measure(name, forSeconds) {
  const took = [];
  const until = performance.now() + forSeconds * 1_000;
  let done = 0;
  const producing = produce(until);
  while (performance.now() < until) {
    const started = performance.now();
    const { tasks } = await consumer.tasks.claim({
      worker,
      limit: 50,
      capabilities: {},
      suspect: true,
      suspects: 1,
      alone: true,
      except: [],
    });
    took.push(performance.now() - started);
    if (tasks.length === 0) await pause(5);
    else await consumer.tasks.settle(tasks.map(settlement));
    done += tasks.length;
  }
  await producing;
  took.sort((a, b) => a - b);
  const at = (share) => took[Math.floor(took.length * share)];
  const figures = { perSecond: done / forSeconds, p50: at(0.5), p99: at(0.99) };
  const [p50, p99] = [figures.p50.toFixed(1), figures.p99.toFixed(1)];
  console.log(`${name}: ${figures.perSecond.toFixed(0)} tasks/s, a claim took p50 ${p50} ms, p99 ${p99} ms`);
  return figures;
}

function settlement({ lease, revision }) {
  return { lease, revision, decision: SUCCESS, report: { ranFor: 1, outcome: 'success' } };
}

async function produce(until) {
  let n = 0;
  while (performance.now() < until) {
    const started = performance.now();
    await producer.tasks.enqueue(Array.from({ length: BATCH }, () => task(n++)));
    await pause(Math.max(0, (BATCH / rate) * 1_000 - (performance.now() - started)));
  }
}

function task(n) {
  return {
    type: 'mail',
    queue: 'default',
    source: `s${n % sources}`,
    priority: 0,
    payload: '{}',
    idempotent: true,
    delay: 0,
  };
}
