import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { custom, defineTask, openHoldfast, type Policy, type PolicyOptions, presets, QUEUE_ORDERS } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { openTestHoldfast, type TestHoldfast, type TestOptions } from 'holdfast/testing';
import { afterEach, describe, expect, test } from 'vitest';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function open(options: TestOptions): Promise<TestHoldfast> {
  const kit = await openTestHoldfast(options);
  closing.push(() => kit.close());
  return kit;
}

/** A task of the engine that throws whatever it is given, each time. */
function failing(retry: Policy | PolicyOptions = presets.worker, error: unknown = new Error('No.')) {
  return defineTask('work', {
    retry,
    run() {
      throw error;
    },
  });
}

function drawn({ events }: TestHoldfast) {
  return events.flatMap((event) => {
    if (event.kind !== 'settled' || event.decision.next !== 'scheduled') return [];
    const { jitter } = event.decision.because;
    return [{ after: event.decision.after, low: jitter?.low ?? 0, high: jitter?.high ?? 0 }];
  });
}

describe('a retry', () => {
  test('waits initial · multiplier^(attempt − 1), at most the maximum, ±10 %', async () => {
    const work = failing({ ...presets.worker, maxAttempts: 12 });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, null);
    await kit.advance('1h');
    const bases = Array.from({ length: 11 }, (_, n) => Math.min(2 ** n * 1_000, 300_000));
    const delays = drawn(kit);
    expect(delays.map(({ low, high }) => [low, high])).toEqual(
      bases.map((base) => [Math.round(base * 0.9), Math.round(base * 1.1)]),
    );
    for (const { after, low, high } of delays) expect(after >= low && after <= high).toBe(true);
  });

  test('is spread, so that tasks that fail together do not come back together', async () => {
    const work = failing();
    const kit = await open({ tasks: [work], worker: { concurrency: 50 } });
    await kit.holdfast.enqueueAll(work, Array(50).fill(null));
    await kit.drain();
    const delays = drawn(kit).map(({ after }) => after);
    expect(delays).toHaveLength(50);
    expect(new Set(delays).size).toBeGreaterThan(30);
  });

  test('has a second, a factor of two, five minutes and a tenth unless told otherwise', () => {
    expect(presets.worker).toMatchObject({
      maxAttempts: 5,
      backoff: { kind: 'exponential', base: 1_000, factor: 2, cap: 300_000 },
      jitter: { kind: 'proportional', factor: 0.1 },
    });
  });

  test('has the maximum of its task, where that has one of its own', async () => {
    const work = failing();
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null, { retry: { maxAttempts: 3 } });
    const { id: other } = await kit.holdfast.enqueue(work, null);
    await kit.advance('1h');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 3, executions: 3 });
    expect(await kit.holdfast.get(other)).toMatchObject({ state: 'dead', attempts: 5, executions: 5 });
  });

  test('is answered by a rule, where a kind of error should not be retried', async () => {
    const error = Object.assign(new Error('No such record.'), { status: 404 });
    const work = failing({ ...presets.worker, rules: { 'http.404': { maxAttempts: 1 } } }, error);
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.advance('1h');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', executions: 1, reason: 'http.404' });
  });

  test('waits by a function of one’s own, where that is said', async () => {
    const work = failing({
      maxAttempts: 4,
      backoff: custom('squares', (k) => k * k * 1_000),
      jitter: { kind: 'none' },
    });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, null);
    await kit.advance('1h');
    expect(drawn(kit).map(({ after }) => after)).toEqual([1_000, 4_000, 9_000]);
  });

  test('works in each of the four orders', async () => {
    for (const order of QUEUE_ORDERS) {
      const work = defineTask('work', {
        retry: presets.worker,
        run(_, { attempt }) {
          if (attempt < 3) throw new Error('Not yet.');
        },
      });
      const kit = await open({ tasks: [work], queues: { default: { order } } });
      for (const priority of [1, 5, 9]) await kit.holdfast.enqueue(work, null, { priority });
      await kit.advance('10s');
      for (const task of await kit.holdfast.list()) {
        expect({ order, ...task }).toMatchObject({ order, state: 'succeeded', executions: 3 });
      }
    }
  });

  test('is not made of a task that must not run twice and may have had its effect', async () => {
    const error = Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    const work = defineTask('work', {
      retry: presets.worker,
      idempotent: false,
      run() {
        throw error;
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', executions: 1 });
  });
});

describe('a task', () => {
  test('is ready, running, then succeeded or dead, where others say queued, leased, completed or failed', async () => {
    const kit = await open({ tasks: [failing()], worker: { types: [] } });
    const { holdfast } = kit;
    const stateOf = async (id: number) => (await holdfast.get(id)).state;
    const { id: good } = await holdfast.enqueue('work', null);
    const { id: bad } = await holdfast.enqueue('work', null, { retry: { maxAttempts: 1 } });
    expect(await stateOf(good)).toBe('ready');
    const claim = await holdfast.claim({ id: good });
    expect(await stateOf(good)).toBe('running');
    await claim?.complete();
    expect(await stateOf(good)).toBe('succeeded');
    await (await holdfast.claim({ id: bad }))?.fail(new Error('No.'));
    expect(await stateOf(bad)).toBe('dead');
  });

  test('shows what it was tried, how often it may be, its last error, its next time and its end', async () => {
    const work = failing({ ...presets.worker, maxAttempts: 2, jitter: { kind: 'none' } });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    const waiting = await kit.holdfast.get(id);
    expect(waiting).toMatchObject({ state: 'scheduled', attempts: 1, dueAt: new Date(kit.clock.now() + 1_000) });
    expect((await kit.holdfast.policyFor(waiting)).policy.maxAttempts).toBe(2);
    await kit.advance('1s');
    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'dead',
      attempts: 2,
      endedAt: new Date(kit.clock.now()),
    });
    const history = await kit.holdfast.history(id);
    expect(history).toMatchObject([{ failure: { message: 'No.' } }, { failure: { message: 'No.' } }]);
  });

  test('shows who has it, and until when without a renewal', async () => {
    const kit = await open({ tasks: [failing()], worker: { types: [] } });
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await kit.holdfast.claim({ name: 'worker-001', leaseFor: '60s' });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running', running: { worker: 'worker-001' } });
    const holder = (await kit.holdfast.workers()).find(({ name }) => name === 'worker-001');
    expect(holder).toMatchObject({ leaseUntil: kit.clock.now() + 60_000, running: 1 });
    await claim?.release();
  });

  test('that is dead is never retried by itself', async () => {
    const work = failing({ ...presets.worker, maxAttempts: 1 });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.advance('29d');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', executions: 1 });
  });

  test('that has ended is removed after thirty days, unless the worker is told to keep it', async () => {
    const work = failing({ ...presets.worker, maxAttempts: 1 });
    const forgetting = await open({ tasks: [work] });
    const keeping = await open({ tasks: [work], worker: { retention: { dead: 'never' } } });
    for (const { holdfast, advance } of [forgetting, keeping]) {
      await holdfast.enqueue(work, null);
      await advance('32d');
    }
    expect(await forgetting.holdfast.list()).toEqual([]);
    expect(await keeping.holdfast.list()).toMatchObject([{ state: 'dead' }]);
  });

  test('that is dead is found with SQL as well', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-engine-'));
    closing.push(() => rmSync(folder, { recursive: true }));
    const path = join(folder, 'tasks.db');
    const work = failing({ ...presets.worker, maxAttempts: 1 });
    const kit = await open({ tasks: [work], store: sqlite(path) });
    for (let n = 0; n < 3; n++) {
      await kit.holdfast.enqueue(work, n);
      await kit.advance('1s');
    }
    const db = new Database(path, { readonly: true });
    closing.push(() => db.close());
    const query = "SELECT id, type, reason FROM holdfast_tasks WHERE state = 'dead' ORDER BY ended_at DESC";
    expect(db.prepare(query).all()).toEqual([3, 2, 1].map((id) => ({ id, type: 'work', reason: 'unknown' })));
  });

  test('runs once, however many workers ask for it', async () => {
    const ran: number[] = [];
    const work = defineTask('work', { run: (n: number) => void ran.push(n) });
    const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [work] });
    closing.push(() => holdfast.close());
    const inputs = Array.from({ length: 200 }, (_, n) => n);
    await holdfast.enqueueAll(work, inputs);
    const workers = ['a', 'b', 'c'].map((name) => holdfast.worker({ name, concurrency: 5 }));
    await Promise.all(workers.map((worker) => worker.drain()));
    expect(ran.toSorted((a, b) => a - b)).toEqual(inputs);
  });
});
