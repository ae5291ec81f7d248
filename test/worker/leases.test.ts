import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  type Claimed,
  definePolicy,
  defineTask,
  type Lease,
  none,
  openHoldfast,
  type PolicyOptions,
  type Store,
  type StoreOpener,
} from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { atOnce, gate, isSettled, isStarted, type Kit, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

/** How long it takes until the lease of a silent worker has run out and was watched: 30 s, a beat that sees it, and another. */
const UNTIL_TAKEN_OVER = '45s';

/** A worker that takes tasks and is never heard of again. */
async function ghost(kit: Kit, publishes: Record<string, string> = {}) {
  const { tasks } = kit.holdfast.store;
  const worker = await tasks.join({ name: 'ghost', leaseFor: 30_000, publishes });
  return {
    worker,
    async take(limit = 100): Promise<readonly Claimed[]> {
      const claim = await tasks.claim({ worker, limit, capabilities: {}, suspects: 1, alone: true, except: [] });
      return claim.tasks;
    },
  };
}

/** Takes what is ready with a ghost, and waits until that is taken over. */
async function loseOnce(kit: Kit): Promise<readonly Lease[]> {
  const taken = await (await ghost(kit)).take();
  await kit.advance(UNTIL_TAKEN_OVER);
  return taken.map(({ lease }) => lease);
}

/** Time passes as if the machine slept: what fell due meanwhile runs once, at the end. */
async function sleepThrough(kit: Kit, hours: number): Promise<void> {
  kit.clock.moveTo(kit.clock.now() + hours * 3_600_000);
  await kit.drain();
}

/** A store that keeps the answers of claims that found a task until they are let through, and notes when a renewal says that one is on its way. */
function withLateClaims() {
  const answers = gate();
  const renewed = gate();
  const late = (store: Store): Store => {
    const changed: Partial<Store['tasks']> = {
      async claim(request) {
        const answer = await store.tasks.claim(request);
        if (answer.tasks.length > 0) await answers.passed;
        return answer;
      },
      renew(worker, leases, claimingFor = 0) {
        if (claimingFor > 0) renewed.open();
        return store.tasks.renew(worker, leases, claimingFor);
      },
    };
    const tasks = new Proxy(store.tasks, {
      get(real, name) {
        const value: unknown = Reflect.get(changed, name) ?? Reflect.get(real, name);
        return typeof value === 'function' ? value.bind(real) : value;
      },
    });
    return { ...store, tasks };
  };
  const inner = aStore();
  const opener: StoreOpener = { kind: inner.kind, open: async (world) => late(await inner.open(world)) };
  return { opener, renewed: renewed.passed, letThrough: () => answers.open() };
}

describe('a lease', () => {
  test('is kept while the answer to its claim is on its way, because the renewal says so', async () => {
    const { opener, renewed, letThrough } = withLateClaims();
    const work = defineTask('work', { run: () => 'done' });
    const holdfast = await openHoldfast({ store: opener, tasks: [work] });
    const { id } = await holdfast.enqueue(work, null);
    const worker = holdfast.worker({ leaseFor: '1s' });
    const drained = worker.drain();

    await renewed;
    letThrough();
    await drained;
    expect(await holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
    expect((await holdfast.close()).unwritten).toEqual([]);
  });

  test('is renewed for as long as its handler runs, in the sight of others', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('20m') });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', name: 'alice' } });
    kit.holdfast.work({ leaseFor: '30s', name: 'bob', pollInterval: '5m' });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.advance('20m');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
  });

  test('is renewed while a drain or runOne of a worker that was not started runs a handler, and no longer', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('20m') });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    const worker = kit.holdfast.worker({ leaseFor: '30s', name: 'by hand' });

    for (const way of ['runOne', 'drain'] as const) {
      const { id } = await kit.holdfast.enqueue(work, null);
      const done = worker[way]();
      await kit.advance('20m');
      await done;
      expect(await kit.holdfast.get(id), way).toMatchObject({ state: 'succeeded', executions: 1 });
    }
    await kit.worker.stop();
    expect(kit.clock.nextTimer).toBeUndefined();
  });

  test('of a worker that was not started and is not used runs out without harm, and is there at the next use', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    const worker = kit.holdfast.worker({ leaseFor: '30s' });
    expect(await worker.runOne()).toBeUndefined();
    await sleepThrough(kit, 240);
    await kit.advance('1m');

    await kit.holdfast.enqueue(work, null);

    expect(await worker.runOne()).toMatchObject({ kind: 'settled', state: 'succeeded' });
    expect(await kit.holdfast.workers()).toHaveLength(2);
  });

  test('is asked for anew by a worker that the store has forgotten', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const path = join(folder(), 'tasks.db');
    const sleeper = await open({ tasks: [work], store: aStore(path) });
    await sleeper.worker.stop();
    const worker = sleeper.holdfast.worker({ leaseFor: '30s', name: 'sleeper' });
    expect(await worker.runOne()).toBeUndefined();
    const [before] = await sleeper.holdfast.workers();
    const other = await open({
      tasks: [work],
      store: aStore(path),
      worker: { leaseFor: '30s', types: [], name: 'other' },
    });
    await sleepThrough(other, 25);
    await other.advance('30s');
    expect(await other.holdfast.workers()).toMatchObject([{ name: 'other' }]);

    const { id } = await sleeper.holdfast.enqueue(work, null);
    expect(await worker.runOne()).toMatchObject({ state: 'succeeded' });

    expect(await other.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
    const [after] = (await other.holdfast.workers()).filter(({ name }) => name === 'sleeper');
    expect(after?.id).toBeGreaterThan(before?.id as number);
  });

  test('is asked for anew at a heartbeat too, where there is no slot to claim for', async () => {
    const work = defineTask('work', { run: () => sleeper.clock.sleep('1h') });
    const path = join(folder(), 'tasks.db');
    const sleeper = await open({
      tasks: [work],
      store: aStore(path),
      worker: { leaseFor: '30s', name: 'sleeper', concurrency: 1 },
    });
    const { id } = await sleeper.holdfast.enqueue(work, null);
    await sleeper.drain();
    const other = await open({
      tasks: [work],
      store: aStore(path),
      worker: { leaseFor: '30s', types: [], name: 'other' },
    });
    // Its process is alive, so it has as long as its handlers may run: an hour, and the grace.
    await other.advance('1h');
    expect(await other.holdfast.get(id)).toMatchObject({ state: 'running' });
    await other.advance('2m');
    expect(await other.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true });
    await sleepThrough(other, 25);
    await other.advance('30s');
    expect((await other.holdfast.workers()).map(({ name }) => name)).toEqual(['other']);

    await sleeper.advance('10s');

    expect((await other.holdfast.workers()).map(({ name }) => name).sort()).toEqual(['other', 'sleeper']);
  });
});

describe('a task that was lost with its worker', () => {
  test('is judged by the same rules: the first loss is free, and makes it a suspect', async () => {
    const seen: boolean[] = [];
    const work = defineTask('work', {
      run(_: unknown, { recovered }) {
        seen.push(recovered);
        if (seen.length === 1) throw new Error('a word, at last');
      },
    });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue(work, null);
    await loseOnce(kit);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true, attempts: 0, recoveries: 0 });
    expect(kit.events.filter(isSettled)).toMatchObject([
      { outcome: { kind: 'loss', worker: 'ghost' }, decision: { because: { step: 'recovery' } } },
    ]);

    const worker = kit.holdfast.worker();
    await worker.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ suspect: false, attempts: 1, recoveries: 0 });
    await kit.advance('1m');
    await worker.drain();

    expect(seen).toEqual([true, false]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 3 });
  });

  test('runs beside others, with one more suspect for each that has reported: 1, 2, 4, 8', async () => {
    const starts: Record<string, Record<number, number>> = { suspect: {}, fresh: {} };
    const work = defineTask('work', {
      async run(kind: string) {
        const second = Math.floor((kit.clock.now() - begun) / 1_000);
        const counts = starts[kind] as Record<number, number>;
        counts[second] = (counts[second] ?? 0) + 1;
        await kit.clock.sleep('1s');
      },
    });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    await kit.holdfast.enqueueAll(
      work,
      Array.from({ length: 15 }, () => 'suspect'),
    );
    await loseOnce(kit);
    await kit.holdfast.enqueueAll(
      work,
      Array.from({ length: 5 }, () => 'fresh'),
    );

    const begun = kit.clock.now();
    kit.holdfast.work({ concurrency: 20, leaseFor: '30s', pollInterval: '1h' });
    await kit.advance('10s');

    expect(starts).toEqual({ suspect: { 0: 1, 1: 2, 2: 4, 3: 8 }, fresh: { 0: 5 } });
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 20 });
  });

  test('needs a person at the fourth charged recovery within 72 h, with no attempt spent; the others go on', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue(work, null);
    for (const recoveries of [0, 1, 2, 3]) {
      await loseOnce(kit);
      expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true, attempts: 0, recoveries });
    }

    await loseOnce(kit);

    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'needs_manual',
      reason: 'worker.crash_loop',
      attempts: 0,
      recoveries: 4,
      executions: 5,
    });
    const outcomes = (await kit.holdfast.history(id)).map((entry) => entry.kind === 'execution' && entry.outcome);
    expect(outcomes).toEqual(['loss', 'loss', 'loss', 'loss', 'loss']);
    const other = await kit.holdfast.enqueue(work, null);
    await kit.holdfast.worker().drain();
    expect(await kit.holdfast.get(other.id)).toMatchObject({ state: 'succeeded' });
  });

  test('may be lost again and again if it is long between', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })], worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue('work', null);
    for (let loss = 0; loss < 6; loss++) {
      await loseOnce(kit);
      await sleepThrough(kit, 37);
    }

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0, executions: 6 });
  });

  test('is left to a person at once if it must not run twice', async () => {
    const work = defineTask('work', { idempotent: false, run() {} });
    const kit = await open({ tasks: [work], worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue(work, null);

    await loseOnce(kit);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', reason: 'worker.lost', attempts: 0 });
  });

  test('is cancelled, if that was asked for', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })], worker: { leaseFor: '30s', types: [] } });
    const { id } = await kit.holdfast.enqueue('work', null);
    await (await ghost(kit)).take();
    await kit.holdfast.cancel(id);

    await kit.advance(UNTIL_TAKEN_OVER);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'cancelled' });
  });

  test('is judged by the policy that a worker of its type published, where this process has no definition of it', async () => {
    const published = definePolicy({ backoff: none, maxAttempts: 1 });
    const kit = await open({ tasks: [defineTask('work', { run() {} })], worker: { leaseFor: '30s' } });
    const { id } = await kit.holdfast.enqueue('alien', null);
    await (await ghost(kit, { alien: JSON.stringify(published) })).take();

    await kit.advance(UNTIL_TAKEN_OVER);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', reason: 'worker.lost' });
    expect(await kit.holdfast.history(id)).toMatchObject([
      { outcome: 'loss', because: { step: 'no_retry', policyVersion: published.version } },
    ]);
  });

  test('is decided by the policy that a worker published, not by a definition for all types in this process', async () => {
    const published = definePolicy({ backoff: none, maxAttempts: 1 });
    const catchAll = defineTask('*', { retry: { maxAttempts: 2 }, run() {} });
    const kit = await open({ tasks: [catchAll], worker: { leaseFor: '30s', types: [] } });
    const known = await kit.holdfast.enqueue('alien', null);
    const unknown = await kit.holdfast.enqueue('stranger', null);
    await (await ghost(kit, { alien: JSON.stringify(published) })).take();

    await kit.advance(UNTIL_TAKEN_OVER);

    const versionOf = async (id: number) => {
      const [entry] = await kit.holdfast.history(id);
      return entry?.kind === 'execution' ? entry.because?.policyVersion : undefined;
    };
    expect(await versionOf(known.id)).toBe(published.version);
    expect(await versionOf(unknown.id)).toBe(catchAll.policy.version);
  });

  test("is judged by its own policy over its type's", async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })], worker: { leaseFor: '30s', types: [] } });
    const retry: PolicyOptions = { ...atOnce, maxExecutions: 1 };
    const { id } = await kit.holdfast.enqueue('work', null, { retry });

    await loseOnce(kit);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual' });
    expect(await kit.holdfast.history(id)).toMatchObject([{ because: { step: 'max_executions', limit: 1 } }]);
  });

  test('is found by the thousand, while the finder keeps its own lease', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('10m') });
    const kit = await open({ tasks: [work], worker: { leaseFor: '1s', concurrency: 1, name: 'finder' } });
    const mine = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    await Promise.all(Array.from({ length: 500 }, () => kit.holdfast.enqueue('elsewhere', null)));
    await (await ghost(kit)).take(500);

    await kit.advance('10m');

    expect(await kit.holdfast.get(mine.id)).toMatchObject({ state: 'succeeded', executions: 1 });
    expect((await kit.holdfast.counts()).byState).toMatchObject({ ready: 500 });
  }, 60_000);
});

test('what a leaving worker still holds is taken over at once', async () => {
  const kit = await open({ tasks: [defineTask('work', { run() {} })], worker: { leaseFor: '30s', types: [] } });
  const { id } = await kit.holdfast.enqueue('work', null);
  const gone = await ghost(kit);
  await gone.take();
  await kit.holdfast.store.tasks.leave(gone.worker);

  await kit.advance('10s');

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true });
  expect(kit.events.filter(isStarted)).toEqual([]);
});
