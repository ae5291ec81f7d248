// A database with a store to measure, and what a scenario needs: enqueue, claim, and the CPU that the server used.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const ENQUEUE_AT_ONCE = 1_000;

const SUCCESS = {
  next: 'succeeded',
  because: { step: 'retry', rule: 'policy', policyVersion: 'bench', text: 'Done.' },
};

export async function openBench({ cluster, dist, database }) {
  const { default: pg } = await import('pg');
  const admin = new pg.Client({ connectionString: cluster.url() });
  admin.on('error', () => {});
  await admin.connect();
  await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
  await admin.query(`CREATE DATABASE ${database}`);
  const from = (path) => import(pathToFileURL(join(dist, path)).href);
  const { systemClock } = await from('clock.js');
  const { postgres } = await from('store/postgres/index.js');
  const stores = [];
  const open = async () => {
    const store = await postgres(cluster.url(database), { listen: false, connections: 1 }).open({
      clock: systemClock,
      random: Math.random,
    });
    stores.push(store);
    return store;
  };
  const store = await open();
  const query = async (text) => {
    const client = new pg.Client({ connectionString: cluster.url(database) });
    await client.connect();
    try {
      return (await client.query(text)).rows;
    } finally {
      await client.end();
    }
  };
  return {
    store,
    open,
    query,
    enqueue: (count, task, into = store) => enqueue(into, count, task),
    claimer: (request, own = store) => claimer(own, request),
    /** Claims this many times and says in words what a claim cost. */
    measure: async (what, times, claim) => {
      const pid = await lastUsedBackend(admin, database);
      const [took, cpu] = [[], []];
      let given = 0;
      let before = cpuOf(pid);
      for (let n = 0; n < times; n++) {
        const started = performance.now();
        given += await claim();
        took.push(performance.now() - started);
        const now = cpuOf(pid);
        cpu.push(now - before);
        before = now;
      }
      const each = (given / times).toFixed(1);
      return (
        `${what}: ${each} tasks a claim, CPU p10 ${at(cpu, 0.1)} ms, p50 ${at(cpu, 0.5)} ms; ` +
        `time p50 ${at(took, 0.5)} ms, p99 ${at(took, 0.99)} ms`
      );
    },
    settle: (own, tasks) =>
      own.tasks.settle(
        tasks.map(({ lease, revision }) => ({
          lease,
          revision,
          decision: SUCCESS,
          report: { ranFor: 1, outcome: 'success' },
        })),
      ),
    close: async () => {
      for (const each of stores) await each.upkeep.close();
      await admin.query(`DROP DATABASE ${database} WITH (FORCE)`);
      await admin.end();
    },
  };
}

async function enqueue(store, count, task) {
  const ids = [];
  for (let n = 0; n < count; n += ENQUEUE_AT_ONCE) {
    const some = Array.from({ length: Math.min(ENQUEUE_AT_ONCE, count - n) }, (_, i) => ({
      type: 'mail',
      queue: 'default',
      source: 's',
      priority: 0,
      payload: '{}',
      idempotent: true,
      delay: 0,
      ...task(n + i),
    }));
    for (const { id } of await store.tasks.enqueue(some)) ids.push(id);
  }
  return ids;
}

/** Joins a worker; the function that it resolves to claims once and answers the tasks. */
async function claimer(store, request = {}) {
  const worker = await store.tasks.join({ name: 'bench', leaseFor: 3_600_000, publishes: {} });
  return async (over = {}) => {
    const { tasks } = await store.tasks.claim({
      worker,
      limit: 1,
      capabilities: {},
      // The name of this option before there could be several suspects.
      suspect: true,
      suspects: 1,
      alone: true,
      except: [],
      ...request,
      ...over,
    });
    return tasks;
  };
}

async function lastUsedBackend(admin, database) {
  const { rows } = await admin.query(
    `SELECT pid FROM pg_stat_activity WHERE datname = '${database}' ORDER BY state_change DESC LIMIT 1`,
  );
  return rows[0].pid;
}

/** The time that a process had a CPU so far. */
function cpuOf(pid) {
  return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
}

function at(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)].toFixed(2);
}
