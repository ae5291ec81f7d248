// Looks for deadlocks: on one PostgreSQL database, everything that a store can do, at once and at random, over many connections of
// one process; every second round gives a queue other orders meanwhile. Tells what went wrong, and how many deadlocks the server
// counted. `npm run storm` has real processes instead.
//   npm run deadlocks -- [--storms 20] [--rounds 300] [--stores 21] [--seed N]
import { parseArgs } from 'node:util';
import { systemClock } from '../dist/clock.js';
import { postgres } from '../dist/store/postgres/index.js';
import { dice } from '../dist/testing/dice.js';
import { startCluster } from '../test/postgres/cluster.mjs';
import { storm } from '../test/postgres/storm.mjs';

const { values } = parseArgs({
  options: {
    storms: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '300' },
    stores: { type: 'string', default: '21' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
  },
});
const [storms, rounds, count, seed] = [values.storms, values.rounds, values.stores, values.seed].map(Number);

const cluster = await startCluster({ fsync: false, settings: { max_connections: 200, log_lock_waits: 'off' } });
let failed = false;
try {
  for (let n = 0; n < storms; n++) {
    const random = dice(seed + n);
    const open = () => postgres(cluster.url(), { connections: 3, listen: false }).open({ clock: systemClock, random });
    const stores = await Promise.all(Array.from({ length: count }, open));
    const started = performance.now();
    const { wrong, enqueued, claimed } = await storm({ stores, rounds, random, reorders: n % 2 === 1 });
    const seconds = ((performance.now() - started) / 1_000).toFixed(1);
    await Promise.all(stores.map((store) => store.upkeep.close()));
    console.log(`storm ${n + 1}, seed ${seed + n}: ${enqueued} enqueued, ${claimed} claimed in ${seconds} s`);
    for (const sentence of wrong) console.log(`  ${sentence}`);
    failed ||= wrong.length > 0;
  }
  const deadlocks = await countDeadlocks(cluster.url());
  console.log(`${deadlocks} deadlocks`);
  failed ||= deadlocks > 0;
} finally {
  await cluster.stop();
}
process.exitCode = failed ? 1 : 0;

async function countDeadlocks(url) {
  const { default: pg } = await import('pg');
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query('SELECT sum(deadlocks)::integer AS deadlocks FROM pg_stat_database');
  await client.end();
  return rows[0].deadlocks;
}
