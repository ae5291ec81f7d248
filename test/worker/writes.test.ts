import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defineTask, type HoldfastOptions, type Logger } from '../../src/index.ts';
import { aStore, refusalsOf, STORE } from '../a-store.ts';
import Database from '../database.ts';
import { gate, isSettled, isStarted, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

/** A kit on a store that can be made to refuse. */
async function withTrouble(tasks: HoldfastOptions['tasks'], worker = {}) {
  const path = join(folder(), 'tasks.db');
  const logged: string[] = [];
  const note = (_: object, message: string) => void logged.push(message);
  const log: Logger = { debug() {}, info() {}, warn: note, error: note };
  const kit = await open({ tasks: tasks ?? [], store: aStore(path), log, worker: { leaseFor: '30s', ...worker } });
  return { kit, path, logged, ...refusalsOf(path) };
}

/** Lets the event loop turn often enough for a write to be tried several times. */
async function turns(n = 200): Promise<void> {
  for (let turn = 0; turn < n; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe.runIf(STORE === 'sqlite')('while another connection holds the file', () => {
  test('an outcome waits, and is written once; the handler runs once', async () => {
    const ran: number[] = [];
    const hanging = gate();
    const work = defineTask('work', {
      async run(_: unknown, { execution }) {
        ran.push(execution);
        await hanging.passed;
        return 'done';
      },
    });
    const { kit, path, logged } = await withTrouble([work]);
    const second = new Database(path);
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.seen(isStarted);

    second.exec('BEGIN IMMEDIATE');
    hanging.open();
    await turns();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    second.exec('COMMIT');
    await kit.seen(isSettled);

    expect(ran).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done', executions: 1 });
    expect(kit.events.map(({ kind }) => kind)).toEqual(['started', 'settled']);
    expect(logged).toEqual([]);
    second.close();
  });

  test('enqueuing waits, and is durable when it is answered', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, path } = await withTrouble([work]);
    const second = new Database(path);
    await kit.drain();

    second.exec('BEGIN IMMEDIATE');
    const receipts = Promise.all([1, 2, 3].map((n) => kit.holdfast.enqueue(work, n)));
    await turns();
    expect(second.prepare('SELECT count(*) AS n FROM hf_tasks').get()).toEqual({ n: 0 });
    second.exec('COMMIT');

    expect((await receipts).map(({ id }) => id)).toEqual([1, 2, 3]);
    second.close();
  });

  test('a renewal waits, and the lease survives', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('15s') });
    const { kit, path } = await withTrouble([work]);
    const second = new Database(path);
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();

    second.exec('BEGIN IMMEDIATE');
    kit.clock.moveTo(kit.clock.now() + 10_000);
    await turns();
    second.exec('COMMIT');
    await kit.drain();
    const [worker] = await kit.holdfast.workers();
    expect(worker?.leaseUntil).toBe(Date.UTC(2026, 0, 1, 0, 0, 40));
    await kit.advance('5s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
    second.close();
  });
});

describe('while the store refuses', () => {
  test('an outcome is kept and written again until it is taken: finished work is not judged by a failed write', async () => {
    const ran: number[] = [];
    const work = defineTask('work', {
      run(_: unknown, { execution }) {
        ran.push(execution);
        return { answer: 42 };
      },
    });
    const { kit, refuse, relent, logged } = await withTrouble([work]);
    await kit.drain();
    await refuse('settling');
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.advance('10s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running', executions: 1, attempts: 0 });
    expect(logged).toContain('The outcome could not be written; trying again');
    // 100 ms, 200 ms and so on, at most 5 s: not a storm.
    expect(logged.length).toBeLessThan(10);

    await relent();
    await kit.advance('5s');

    expect(ran).toEqual([1]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: { answer: 42 }, attempts: 0 });
    expect(await kit.holdfast.history(id)).toEqual([]);
  });

  test('one outcome, its neighbours are written all the same', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, refuse, relent } = await withTrouble([work], { concurrency: 5 });
    await kit.drain();
    const receipts = await kit.holdfast.enqueueAll(work, Array(5).fill(null));
    const ids = receipts.map(({ id }) => id);
    await refuse('settling', ids[2]);
    await kit.advance('1s');
    const found = await Promise.all(ids.map((id) => kit.holdfast.get(id)));
    expect(found.map(({ state }) => state)).toEqual(['succeeded', 'succeeded', 'running', 'succeeded', 'succeeded']);

    await relent();
    await kit.advance('5s');
    expect(await kit.holdfast.get(ids[2] as number)).toMatchObject({ state: 'succeeded', executions: 1 });
  });

  test('a worker begins only as many tasks as it could write', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, refuse, relent } = await withTrouble([work], { concurrency: 3 });
    await kit.drain();
    await refuse('settling');
    await Promise.all(Array.from({ length: 20 }, () => kit.holdfast.enqueue(work, null)));
    await kit.advance('30s');
    // Three that ended, and three that took their slots before the first refusal was known.
    expect(kit.events.filter(isStarted).length).toBeLessThanOrEqual(6);

    await relent();
    await kit.advance('10s');

    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 20 });
    expect(kit.events.filter(isStarted)).toHaveLength(20);
  });

  test('the worker tries to claim again, at growing intervals, and continues when it gets tasks', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, refuse, relent, logged } = await withTrouble([work]);
    await kit.drain();
    await refuse('claiming');
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.advance('1m');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready' });
    expect(logged).toContain('The worker could not claim tasks; trying again');
    expect(logged.length).toBeLessThan(30);

    await relent();
    await kit.advance('5s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
  });

  test('a renewal is tried again at the next beat', async () => {
    const work = defineTask('work', { run: () => kit.clock.sleep('1m') });
    const { kit, refuse, relent, logged } = await withTrouble([work]);
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    await refuse('renewing');
    await kit.advance('20s');
    expect(logged).toEqual(Array(2).fill('The lease could not be renewed; trying again'));

    await relent();
    await kit.advance('40s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
  });

  test('a drain of a worker that was not started rejects', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, refuse, relent } = await withTrouble([work], { types: [] });
    await kit.holdfast.enqueue(work, null);
    await kit.drain();
    await refuse('claiming');
    const worker = kit.holdfast.worker();

    await expect(worker.drain()).rejects.toMatchObject({ code: 'store_unavailable', cause: { message: 'not now' } });
    await expect(worker.runOne()).rejects.toMatchObject({ code: 'store_unavailable' });

    await relent();
    await worker.drain();
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 1 });
  });

  test('a shutdown gives up after its grace, and tasks that are not written can be taken over at once', async () => {
    const work = defineTask('work', { run: () => 'done' });
    const { kit, refuse, relent, logged } = await withTrouble([work]);
    await kit.drain();
    await refuse('settling');
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.seen(isStarted);
    await expect.poll(() => logged).toContain('The outcome could not be written; trying again');

    await kit.worker.stop({ grace: 0 });
    await relent();
    const other = kit.holdfast.worker();
    await other.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2, attempts: 0 });
  });
});
