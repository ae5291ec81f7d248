import { describe, expect, test } from 'vitest';
import { defineTask, Failed, type Holdfast, type Task } from '../../src/index.ts';
import type { TestOptions } from '../../src/testing/index.ts';
import { type Kit, useKits } from './scene.ts';

const openKit = useKits();

/** The other side of the tasks of a test, which counts what reaches it. */
class Api {
  /** What it answers instead of doing its work. */
  failure: (() => unknown) | undefined;
  readonly calls: { readonly task: number; readonly at: number }[] = [];

  /** The type of the tasks that call it, by this source. */
  task(now: () => number, options: Partial<Parameters<typeof defineTask>[1]> = {}) {
    return defineTask('call', {
      source: 'api',
      run: (_, { id }) => {
        this.calls.push({ task: id, at: now() });
        if (this.failure) throw this.failure();
      },
      ...options,
    });
  }
}

const refused = () => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
const revoked = () => Object.assign(new Error('The token was revoked.'), { status: 401 });
const later = (seconds: number) => () =>
  Object.assign(new Error('Slow down.'), { status: 429, headers: { 'retry-after': String(seconds) } });

async function stage(options: Partial<Parameters<typeof defineTask>[1]> = {}, more: TestOptions = {}) {
  const api = new Api();
  const clock: { now: () => number } = { now: () => 0 };
  const call = api.task(() => clock.now(), options);
  const kit = await openKit({ ...more, tasks: [call] });
  clock.now = () => kit.clock.now();
  const enqueue = async (count: number) =>
    (await kit.holdfast.enqueueAll(call, Array(count).fill({}))).map(({ id }) => id);
  return { api, call, kit, enqueue };
}

async function all(holdfast: Holdfast): Promise<readonly Task[]> {
  return holdfast.list({ limit: 1_000 });
}

/** A second worker, which lives on the clock of the kit like the first. */
function another(kit: Kit, leaseFor = '1d') {
  return kit.holdfast.work({ name: 'second', leaseFor, pollInterval: '1d', claimAhead: false });
}

describe('an outage', () => {
  test('of an hour charges nobody in the end, and most tasks never start in it', async () => {
    const { api, kit, enqueue } = await stage();
    another(kit);
    await enqueue(10);
    await kit.drain();
    expect(api.calls).toHaveLength(10);
    api.failure = refused;
    for (let part = 0; part < 6; part++) {
      await enqueue(15);
      await kit.advance('10m');
    }
    const useless = api.calls.length - 10;
    api.failure = undefined;
    await kit.advance('30m');
    const tasks = await all(kit.holdfast);
    expect(tasks.map(({ state }) => state)).toEqual(Array(100).fill('succeeded'));
    expect(tasks.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(0);
    expect(useless).toBeLessThan(120);
    expect(await kit.holdfast.sources.list()).toEqual([]);
  });

  test('refunds once the attempts that were charged before it was recognised', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = refused;
    const [first] = await enqueue(1);
    await kit.drain();
    expect(await kit.holdfast.get(first as number)).toMatchObject({ attempts: 1 });
    await kit.advance('500ms');
    const [second] = await enqueue(1);
    await kit.drain();
    expect(await kit.holdfast.get(second as number)).toMatchObject({ attempts: 0 });
    expect(await kit.holdfast.get(first as number)).toMatchObject({ attempts: 0 });
    const charges = (await kit.holdfast.history(first as number)).flatMap((entry) =>
      entry.kind === 'execution' ? [entry.charge] : [],
    );
    expect(charges).toContain('refunded');
  });

  test('that no other task confirms costs the task its attempts, and the last failure waits a minute', async () => {
    const { api, kit, enqueue } = await stage({ retry: { maxAttempts: 2, backoff: { kind: 'fixed', delay: 1_000 } } });
    api.failure = refused;
    const [only] = await enqueue(1);
    const id = only as number;
    await kit.advance('2s');
    expect(api.calls).toHaveLength(2);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 2 });
    await kit.advance('50s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 2 });
    await kit.advance('20s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 2 });
    // It ended without another start.
    expect(api.calls).toHaveLength(2);
  });

  test('ends the only task of a worker that is there for it at once, because somebody waits for that', async () => {
    const { api, kit, enqueue } = await stage({ retry: { maxAttempts: 1 } });
    await kit.worker.stop();
    api.failure = refused;
    const only = await enqueue(1);
    await kit.holdfast.worker({ only }).drain();
    expect(await kit.holdfast.get(only[0] as number)).toMatchObject({ state: 'dead', attempts: 1 });
  });

  test('that is recognised while a last straw waits saves that task', async () => {
    const { api, kit, enqueue } = await stage({ retry: { maxAttempts: 1 } });
    api.failure = refused;
    const [first] = await enqueue(1);
    await kit.advance('10s');
    expect(await kit.holdfast.get(first as number)).toMatchObject({ state: 'scheduled', attempts: 1 });
    await enqueue(1);
    await kit.advance('10s');
    api.failure = undefined;
    await kit.advance('10m');
    const tasks = await all(kit.holdfast);
    expect(tasks).toMatchObject([
      { state: 'succeeded', attempts: 0 },
      { state: 'succeeded', attempts: 0 },
    ]);
  });

  test('outlives the stop of every worker, as in a deploy', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = refused;
    await enqueue(20);
    await kit.advance('1m');
    const before = api.calls.length;
    await kit.worker.stop({ grace: 0 });
    another(kit);
    await kit.advance('1m');
    // Nothing is learnt anew: the next worker goes on with single probes.
    expect(api.calls.length - before).toBeLessThan(6);
    api.failure = undefined;
    await kit.advance('10m');
    for (const task of await all(kit.holdfast)) expect(task).toMatchObject({ state: 'succeeded', attempts: 0 });
  });

  test('continues if the worker that probes is lost', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = refused;
    await enqueue(5);
    await kit.advance('20s');
    await kit.worker.stop({ grace: 0 });
    await kit.advance('2m');
    // A claim by hand is the probe, and nobody ever says what came of it.
    const probe = await kit.holdfast.claim({ leaseFor: '1s' });
    expect(probe).toBeDefined();
    expect(await kit.holdfast.claim()).toBeUndefined();
    api.failure = undefined;
    another(kit, '30s');
    await kit.advance('10m');
    for (const task of await all(kit.holdfast)) expect(task).toMatchObject({ state: 'succeeded' });
  });

  test('ends when a claim by hand says so', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = refused;
    const [first] = await enqueue(5);
    await kit.advance('20s');
    await kit.worker.stop({ grace: 0 });
    for (let probes = 0; probes < 2; probes++) {
      await kit.advance('2m');
      await (await kit.holdfast.claim())?.complete();
    }
    expect(first).toBeDefined();
    const [source] = await kit.holdfast.sources.list();
    expect(source?.state?.restriction).toMatchObject({ ramping: true });
  });
});

test('changes of a source are logged, with the number of refunds', async () => {
  const lines: { level: string; event: unknown }[] = [];
  const at = (level: string) => (fields: object) => void lines.push({ level, event: fields });
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const { api, kit, enqueue } = await stage({}, { log });
  api.failure = refused;
  await enqueue(1);
  await kit.advance('500ms');
  await enqueue(1);
  await kit.advance('30s');
  api.failure = undefined;
  await kit.advance('10m');
  const said = lines.filter(({ event }) => String(Object(event).event).startsWith('source.'));
  expect(said).toMatchObject([
    { level: 'warn', event: { event: 'source.down', source: 'api', reason: 'net.refused', refunded: 1 } },
    { level: 'info', event: { event: 'source.normal', source: 'api' } },
  ]);
});

describe('a source that needs a person', () => {
  test('ends no task and charges none, and its tasks continue when a person releases it', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = revoked;
    await enqueue(1);
    await kit.advance('30s');
    await enqueue(5);
    await kit.advance('1h');
    // All that was claimed at once has started; nothing starts after that.
    expect(api.calls).toHaveLength(6);
    await enqueue(2);
    await kit.advance('1h');
    expect(api.calls).toHaveLength(6);
    const [source] = await kit.holdfast.sources.list();
    expect(source?.state?.restriction).toMatchObject({ cause: 'needs_person', shutFor: 'released' });
    for (const task of await all(kit.holdfast)) expect(task.attempts).toBe(0);
    api.failure = undefined;
    await kit.holdfast.sources.release('api', { actor: 'eva', note: 'the key was replaced' });
    await kit.advance('10m');
    for (const task of await all(kit.holdfast)) expect(task).toMatchObject({ state: 'succeeded', attempts: 0 });
    expect(await kit.holdfast.sources.list()).toEqual([]);

    const changes = await kit.holdfast.store.records.changes({ limit: 10 });
    expect(changes.map(({ id: _, at: __, ...change }) => change).toReversed()).toEqual([
      expect.objectContaining({ kind: 'source', name: 'api', change: 'condition', to: 'needs_person' }),
      expect.objectContaining({
        change: 'release',
        to: 'down',
        by: { actor: 'eva', note: 'the key was replaced' },
      }),
      expect.objectContaining({ change: 'condition', to: 'ramping' }),
      { kind: 'source', name: 'api', change: 'condition', to: 'normal' },
    ]);
  });
});

describe('a Retry-After', () => {
  test('of one task holds all tasks of its source, and no others', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = later(30);
    await enqueue(1);
    await kit.drain();
    api.failure = undefined;
    await enqueue(10);
    await kit.advance('29s');
    expect(api.calls).toHaveLength(1);
    await kit.advance('2m');
    for (const task of await all(kit.holdfast)) expect(task).toMatchObject({ state: 'succeeded', attempts: 0 });
  });
});

describe('a rate limit that a handler reports', () => {
  test('spaces its tasks until the limit is there again', async () => {
    const starts: number[] = [];
    const call = defineTask('call', {
      source: 'api',
      run(_, task) {
        starts.push(kit.clock.now());
        if (starts.length === 1) task.rateLimit({ remaining: 9, resetsIn: '90s' });
      },
    });
    const kit = await openKit({ tasks: [call], worker: { concurrency: 1 } });
    await kit.holdfast.enqueueAll(call, Array(30).fill({}));
    await kit.advance('85s');
    // 0.9 · 9 calls in 90 s.
    expect(starts.length).toBeGreaterThan(5);
    expect(starts.length).toBeLessThanOrEqual(10);
    await kit.advance('10m');
    expect(starts).toHaveLength(30);
  });

  test('is ignored where it is no limit, and changes nothing of what became of the task', async () => {
    const call = defineTask('call', {
      source: 'api',
      run(_, task) {
        for (const remaining of [Number.NaN, -1, '3'] as number[]) task.rateLimit({ remaining, resetsIn: '1h' });
        task.rateLimit({ remaining: 0, resetsIn: 'soon' });
      },
    });
    const kit = await openKit({ tasks: [call] });
    await kit.holdfast.enqueueAll(call, Array(3).fill({}));
    await kit.drain();
    expect(await all(kit.holdfast)).toMatchObject(Array(3).fill({ state: 'succeeded' }));
    expect(await kit.holdfast.sources.list()).toEqual([]);
  });
});

describe('a person', () => {
  async function down() {
    const staged = await stage();
    staged.api.failure = refused;
    await staged.enqueue(1);
    await staged.kit.advance('500ms');
    await staged.enqueue(4);
    await staged.kit.advance('10m');
    return staged;
  }

  test('has a source probed that is down, before its next probe is due', async () => {
    const { api, kit } = await down();
    await kit.advance('50s');
    const before = api.calls.length;
    expect(await kit.holdfast.sources.probe('api')).toBe(true);
    await kit.drain();
    expect(api.calls.length - before).toBeLessThanOrEqual(1);
    await kit.advance('2m');
    expect(api.calls.length).toBeGreaterThan(before);
    expect(await kit.holdfast.sources.probe('other')).toBe(false);
  });

  test('releases a source that is down, and its tasks go on', async () => {
    const { api, kit } = await down();
    api.failure = undefined;
    const before = api.calls.length;
    await kit.holdfast.sources.release('api');
    await kit.drain();
    expect(api.calls.length).toBeGreaterThan(before);
    // Those that probed it last wait for their own retries.
    await kit.advance('3m');
    expect(await all(kit.holdfast)).toMatchObject(Array(5).fill({ state: 'succeeded', attempts: 0 }));
  });
});

describe('the health of a source', () => {
  test('is asked before each probe, and costs no task', async () => {
    let healthy = false;
    let asked = 0;
    const { api, kit, enqueue } = await stage({
      async health(source) {
        asked += 1;
        expect(source).toBe('api');
        return healthy || new Failed('Still down.');
      },
    });
    api.failure = refused;
    await enqueue(4);
    await kit.advance('1s');
    const started = api.calls.length;
    await kit.advance('10m');
    expect(api.calls).toHaveLength(started);
    expect(asked).toBeGreaterThan(8);
    healthy = true;
    api.failure = undefined;
    await kit.advance('10m');
    for (const task of await all(kit.holdfast)) expect(task).toMatchObject({ state: 'succeeded', attempts: 0 });
  });

  test('is forgotten after one failure if it had no task since', async () => {
    const { api, kit, enqueue } = await stage();
    api.failure = refused;
    const [only] = await enqueue(1);
    await kit.drain();
    expect(await kit.holdfast.sources.list()).toMatchObject([{ name: 'api' }]);
    await kit.holdfast.cancel(only as number);

    await kit.advance('2d');

    expect(await kit.holdfast.sources.list()).toEqual([]);
  });
});
