import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type HistoryEntry, type Holdfast, openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { type Cluster, startCluster } from '../postgres/cluster.mjs';
import { type Child, usePrograms } from './children.ts';

/** The shortest lease that there is, and a server that is away for several of them. */
const LEASE_MS = 1_000;
const AWAY_MS = 5 * LEASE_MS;

const RESUMED_WITHIN_MS = 30_000;

const { runIn } = usePrograms();

let cluster: Cluster;
let holdfast: Holdfast;

// A server of each test's own: what is killed here is no other test's. A killed server loses nothing without fsync.
beforeEach(async () => {
  cluster = await startCluster({ fsync: false });
  holdfast = await openHoldfast({ store: postgres(cluster.url()) });
});

afterEach(async () => {
  await holdfast.close();
  await cluster.stop();
});

async function startWorker(name: string): Promise<Child> {
  const child = runWorker(name, cluster.url());
  await child.says('working');
  return child;
}

function runWorker(name: string, url: string): Child {
  const options = { name, worker: { leaseFor: `${LEASE_MS}ms`, grace: '600ms' } };
  return runIn(process.execPath, ['test/process/postgres-program.mjs', url, JSON.stringify(options)]);
}

const enqueue = async (how: string) => (await holdfast.enqueue('work', { how })).id;

async function executionsOf(id: number) {
  const history = await holdfast.history(id);
  return history.filter((entry): entry is Extract<HistoryEntry, { kind: 'execution' }> => entry.kind === 'execution');
}

describe('a server that is killed and away for several leases', () => {
  test('ends no worker; each keeps what it ran and writes it on return, and work resumes', async () => {
    const holder = await startWorker('holder');
    const ids = [await enqueue('until told'), await enqueue('until told'), await enqueue('until told')];
    for (const id of ids) await holder.says({ running: id });
    const others = [await startWorker('second'), await startWorker('third')];

    await cluster.kill();
    const [first, ...rest] = ids as [number, number, number];
    // One handler of several ends while nobody can be told, and what it ended with is known to its worker alone.
    holder.signal('SIGUSR2');
    for (const id of ids) await holder.says({ ended: id });
    const meanwhile = enqueue('quick');
    await delay(AWAY_MS);
    await cluster.start();
    const backAt = performance.now();

    for (const id of [first, ...rest]) {
      expect(await holder.says({ settled: id })).toEqual({ settled: id, execution: 1, state: 'succeeded' });
      expect(await executionsOf(id)).toEqual([]);
      expect(await holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'holder', executions: 1 });
    }
    const id = await meanwhile;
    await Promise.any([holder, ...others].map((child) => child.says({ settled: id, execution: 1 })));
    expect(performance.now() - backAt).toBeLessThan(RESUMED_WITHIN_MS);
    for (const child of [holder, ...others]) child.signal('SIGTERM');
    for (const child of [holder, ...others]) await child.endsWell();
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });

  test('tells a handler to stop when its lease has ended, charges nobody, and lets another worker run the task', async () => {
    const holder = await startWorker('holder');
    const id = await enqueue('until told');
    await holder.says({ running: id });
    const other = await startWorker('other');

    await cluster.kill();
    await holder.says({ aborted: id, reason: 'LeaseLostError' });
    await delay(AWAY_MS);
    await cluster.start();

    // A claim that the holder made before its lease ended may be answered with the task. Then the holder hands it back.
    const { execution } = await other.says<{ execution: number }>({ running: id });
    other.signal('SIGUSR2');
    await other.says({ settled: id, execution, state: 'succeeded' });
    expect(await holdfast.get(id)).toMatchObject({ attempts: 0, executions: execution });
    const executions = await executionsOf(id);
    expect(executions[0]).toMatchObject({ execution: 1, outcome: 'interruption' });
    expect(executions.map(({ charge }) => charge)).toEqual(executions.map(() => 'nobody'));
    expect(executions.at(-1)).toMatchObject({ execution, outcome: 'success' });
    holder.signal('SIGUSR2');
    await holder.says({ ended: id });
  });
});

describe('a server that ends a connection as it makes it', () => {
  test('ends no process: it is told that the database cannot be reached', async () => {
    const server = createServer((socket) => socket.once('data', () => letInAndKill(socket)));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;

    const child = runWorker('worker', `postgres://postgres@127.0.0.1:${port}/postgres`);

    await child.says({ error: 'store_unavailable' });
    expect(await child.ended).toEqual({ code: 3, signal: null });
    server.close();
  });
});

/** What a client reads in one go when its server is killed just after it let it in. */
function letInAndKill(socket: Socket): void {
  const killed = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0';
  socket.end(Buffer.concat([message('R', '\0\0\0\0'), message('Z', 'I'), message('E', killed)]));
}

function message(type: string, body: string): Buffer {
  const head = Buffer.alloc(5);
  head.write(type);
  head.writeInt32BE(4 + body.length, 1);
  return Buffer.concat([head, Buffer.from(body)]);
}

describe('a worker that is stopped beyond its lease', () => {
  test('loses what it held once, when an operator ends it; woken up, its late word changes nothing', async () => {
    const sleeper = await startWorker('sleeper');
    const id = await enqueue('until told');
    await sleeper.says({ running: id, execution: 1 });
    const others = [await startWorker('second'), await startWorker('third')];

    sleeper.signal('SIGSTOP');
    const stopped = (await holdfast.workers()).find(({ name }) => name === 'sleeper');
    await holdfast.endWorker(stopped?.id as number);
    const other = await Promise.any(
      others.map(async (child) => {
        await child.says({ running: id, execution: 2 });
        return child;
      }),
    );
    sleeper.signal('SIGCONT');
    await sleeper.says({ aborted: id, reason: 'LeaseLostError' });
    sleeper.signal('SIGUSR2');
    await sleeper.says({ stale: id, execution: 1 });

    expect(await holdfast.get(id)).toMatchObject({ state: 'running', executions: 2, attempts: 0, recoveries: 0 });
    other.signal('SIGUSR2');
    await other.says({ settled: id, execution: 2, state: 'succeeded' });
    expect(await executionsOf(id)).toMatchObject([
      { execution: 1, outcome: 'loss', worker: 'sleeper', late: false, charge: 'nobody' },
      { execution: 1, outcome: 'success', late: true },
      { execution: 2, outcome: 'success', late: false },
    ]);
    expect(await holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2 });
    for (const child of [sleeper, ...others]) child.signal('SIGTERM');
    for (const child of [sleeper, ...others]) await child.endsWell();
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });
});
