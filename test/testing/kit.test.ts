import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defineTask, fixed, type RunningTask, schedule } from '../../src/index.ts';
import { openTestHoldfast, type TestHoldfast, type TestOptions, VirtualClock } from '../../src/testing/index.ts';
import { aStore, STORE } from '../a-store.ts';
import { useFolder, useKits } from '../worker/scene.ts';

const open = useKits();
const folder = useFolder();
const DAY = 86_400_000;

test('a three-day schedule passes in milliseconds, each try at its own moment', async () => {
  const at: string[] = [];
  const report = defineTask('report', {
    retry: { backoff: schedule(['1h', '1d', '2d']), jitter: { kind: 'none' } },
    run(input: { name: string }, task) {
      at.push(`${input.name} ${task.attempt} ${kit.clock.now() - Date.UTC(2026, 0, 1)}`);
      if (task.attempt < 4) throw new Error('not yet');
      return 'done';
    },
  });
  const kit = await openTestHoldfast({ store: aStore(), tasks: [report] });
  const started = performance.now();
  const { id } = await kit.holdfast.enqueue(report, { name: 'a' });
  await kit.advance('4d');
  const hour = 3_600_000;
  expect(at).toEqual(['a 1 0', `a 2 ${hour}`, `a 3 ${25 * hour}`, `a 4 ${73 * hour}`]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done', executions: 4, attempts: 3 });
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(await kit.holdfast.store.upkeep.verify()).toEqual([]);
  await kit.close();
});

/** Sixty tasks that fail, sleep, are too slow and are put off, as their numbers say. */
function busyWorld(options: TestOptions = {}) {
  let kit: TestHoldfast;
  const busy = defineTask('busy', {
    retry: { maxAttempts: 4, timeout: '90s' },
    async run(n: number, task: RunningTask) {
      await kit.clock.sleep(`${n}s`, task.signal);
      if (n % 3 === task.attempt % 3) throw new Error(`no ${n}`);
      if (n % 7 === 0) await kit.clock.sleep('5m', task.signal);
      return n;
    },
  });
  return {
    async begin() {
      kit = await openTestHoldfast({
        store: aStore(),
        tasks: [busy],
        worker: { concurrency: 7, leaseFor: '10m' },
        ...options,
      });
      for (let n = 0; n < 60; n++) await kit.holdfast.enqueue(busy, n, { delay: `${n % 5}s` });
      return kit;
    },
    /** All that happened, as text: tokens are drawn anew each time. */
    events: () => JSON.stringify(kit.events, (key, value) => (key === 'token' ? undefined : value)),
  };
}

describe('a kit is deterministic', () => {
  test('the same seed gives the same events, to the letter; another seed gives others', async () => {
    const runs = [];
    for (const seed of [7, 7, 8]) {
      const world = busyWorld({ seed });
      const kit = await world.begin();
      await kit.advance('1h');
      runs.push(world.events());
      await kit.close();
    }

    expect(runs[0]).toBe(runs[1]);
    expect(runs[0]).not.toBe(runs[2]);
    expect(runs[0]?.length).toBeGreaterThan(50_000);
  });

  test('advancing in steps is advancing at once', async () => {
    const runs = [];
    for (const steps of [1, 60, 399]) {
      const world = busyWorld();
      const kit = await world.begin();
      for (let step = 0; step < steps; step++) await kit.advance(`${3_591_000 / steps}ms`);
      runs.push(world.events());
      await kit.close();
    }

    expect(runs[1]).toBe(runs[0]);
    expect(runs[2]).toBe(runs[0]);
  });

  test('on a file as in memory', async () => {
    const memory = busyWorld();
    const file = busyWorld({ store: aStore(join(folder(), 'tasks.db')) });
    for (const world of [memory, file]) {
      const kit = await world.begin();
      await kit.advance('10m');
      await kit.close();
    }

    expect(file.events()).toBe(memory.events());
  });

  test('with several workers, for none of which the clock moves on too early', async () => {
    const runs = [];
    for (let run = 0; run < 2; run++) {
      const starts: string[] = [];
      const work = defineTask('work', {
        retry: { backoff: fixed('10s'), maxAttempts: 3 },
        async run(n: number, task) {
          starts.push(`${n} ${task.execution} at ${kit.clock.now() % DAY}`);
          await kit.clock.sleep('3s');
          if (n % 2 === 0) throw new Error('even');
        },
      });
      const kit = await openTestHoldfast({ store: aStore(), tasks: [work], worker: { concurrency: 2 } });
      kit.holdfast.work({ concurrency: 2, name: 'second', pollInterval: '1h', leaseFor: '1d' });
      for (let n = 0; n < 12; n++) await kit.holdfast.enqueue(work, n);
      await kit.advance('5m');
      runs.push(starts.toSorted());
      await kit.close();
    }

    expect(runs[1]).toEqual(runs[0]);
    expect(runs[0]).toHaveLength(6 + 6 * 3);
  });
});

describe('a kit without tasks', () => {
  test('is for claims by hand: its worker takes nothing, and looks for what others lost', async () => {
    const kit = await open({ worker: { leaseFor: '30s' } });
    const { id } = await kit.holdfast.enqueue('analysis', null);
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready' });

    const lost = await kit.holdfast.claim({ leaseFor: '10s' });
    await kit.advance('1m');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 1 });
    const claim = await kit.holdfast.claim();
    await claim?.fail(new Error('No.'));

    const due = new Date(kit.clock.now() + 300_000);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 1, dueAt: due });
    await expect(lost?.complete()).rejects.toMatchObject({ code: 'lease_lost' });
  });
});

describe('time in a kit', () => {
  test('stands still until it is moved', async () => {
    const kit = await open({ tasks: [defineTask('work', { run() {} })], start: new Date('2030-05-05T05:05:05Z') });
    await kit.drain();
    expect(new Date(kit.clock.now())).toEqual(new Date('2030-05-05T05:05:05Z'));
    expect(kit.holdfast.store.upkeep.now()).toBe(kit.clock.now());
  });

  test('passes ten years in a few seconds', async () => {
    const ran: number[] = [];
    const work = defineTask('work', { run: () => void ran.push(kit.clock.now()) });
    // It renews three times in that time, and each renewal is a stop on the way. On PostgreSQL a worker makes the partitions of three
    // days at each, and drops those of days that are over.
    const leaseFor = STORE === 'sqlite' ? '30d' : '600d';
    const kit = await open({ tasks: [work], worker: { leaseFor } });
    const due = new Date(Date.UTC(2026, 0, 1) + 3_649 * DAY);
    await kit.holdfast.enqueue(work, null, { delay: '3649d' });
    await kit.holdfast.enqueue(work, null, { at: due });

    const started = performance.now();
    await kit.advance('3648d');
    expect(ran).toEqual([]);
    await kit.advance('1d');

    expect(ran).toEqual([due.getTime(), due.getTime()]);
    expect(performance.now() - started).toBeLessThan(15_000);
  });

  test('lets each task run at its own moment, however far it is moved at once', async () => {
    const ran: number[] = [];
    const work = defineTask('work', { run: (n: number) => void ran.push(kit.clock.now() - n * 60_000) });
    const kit = await open({ tasks: [work] });
    for (const n of [5, 1, 3]) await kit.holdfast.enqueue(work, n, { delay: `${n}m` });

    await kit.advance('1h');

    expect(ran).toEqual(Array(3).fill(Date.UTC(2026, 0, 1)));
  });

  test('is waited for by handlers that sleep, and by nothing else', async () => {
    const work = defineTask('work', {
      async run() {
        for (let n = 0; n < 50; n++) await kit.clock.sleep('1m');
        return kit.clock.now();
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.advance('49m');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'running' });
    await kit.advance('1m');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: Date.UTC(2026, 0, 1, 0, 50) });
  });

  test('ends a handler that hangs, by its time limit, after little real time', async () => {
    const work = defineTask('work', {
      retry: { timeout: '1h', maxAttempts: 2, backoff: fixed('1m'), jitter: { kind: 'none' } },
      run: () => new Promise(() => {}),
    });
    const kit = await open({ tasks: [work], worker: { grace: '10s' }, patienceMs: 20 });
    const { id } = await kit.holdfast.enqueue(work, null);

    const started = performance.now();
    await kit.advance('3h');

    // The second execution waits for the first handler to end, which it never does.
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 1, attempts: 1, reason: 'timeout' });
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test('may be moved by hand, far beyond what was to happen, and goes on from there', async () => {
    const ran: string[] = [];
    const work = defineTask('work', { run: (name: string) => void ran.push(name) });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, 'first', { delay: '1h' });

    kit.clock.moveTo(kit.clock.now() + 30 * DAY);
    await kit.drain();
    expect(ran).toEqual(['first']);
    await kit.holdfast.enqueue(work, 'second', { delay: '1h' });
    await kit.advance('1h');

    expect(ran).toEqual(['first', 'second']);
  });
});

describe('a kit closes', () => {
  test('at once, while handlers sleep or hang', async () => {
    const work = defineTask('work', {
      run: (how: string) => (how === 'sleep' ? kit.clock.sleep('10h') : new Promise(() => {})),
    });
    const kit = await openTestHoldfast({ store: aStore(), tasks: [work], patienceMs: 20 });
    for (const how of ['sleep', 'hang']) await kit.holdfast.enqueue(work, how);
    await kit.drain();

    await kit.close();
    await kit.close();

    await expect(kit.holdfast.counts()).rejects.toMatchObject({ code: 'closed' });
  });

  test('although other workers are busy, whose grace passes on its clock', async () => {
    const ends: string[] = [];
    const work = defineTask('work', {
      async run(_: unknown, task) {
        await kit.clock.sleep('10h', task.signal).catch(() => ends.push('told to end'));
      },
    });
    const path = join(folder(), 'tasks.db');
    const kit = await openTestHoldfast({ tasks: [work], store: aStore(path), worker: { types: [] } });
    await kit.holdfast.enqueue(work, null);
    kit.holdfast.work({ leaseFor: '1d' });
    await kit.drain();

    await kit.close();

    expect(ends).toEqual(['told to end']);
  });

  test('and leaves no timer', async () => {
    const kit = await openTestHoldfast({
      store: aStore(),
      tasks: [defineTask('work', { run: () => kit.clock.sleep('1m') })],
    });
    await kit.holdfast.enqueue('work', null);
    await kit.advance('10m');
    await kit.close();

    expect(kit.clock.nextTimer).toBeUndefined();
  });

  test('by itself where the language has `await using`', async () => {
    let seen: TestHoldfast;
    {
      await using kit = await openTestHoldfast({ store: aStore(), tasks: [defineTask('work', { run() {} })] });
      seen = kit;
    }
    await expect(seen.holdfast.counts()).rejects.toMatchObject({ code: 'closed' });
  });

  test('after its worker has ended by itself', async () => {
    const ran: number[] = [];
    const work = defineTask('work', { run: (n: number) => void ran.push(n) });
    const kit = await open({ tasks: [work], worker: { maxTasks: 1 } });
    for (const n of [1, 2]) await kit.holdfast.enqueue(work, n);

    await kit.advance('1h');
    await kit.drain();

    expect(ran).toEqual([1]);
  });
});

describe('a virtual clock', () => {
  const START = new Date('2026-01-01T00:00:00Z');

  test('fires what is due in order, each at its own moment, and what is called off not at all', () => {
    const clock = new VirtualClock(START);
    const fired: [string, number][] = [];
    const note = (name: string) => () => void fired.push([name, clock.monotonic()]);
    clock.after(300, note('c'));
    clock.after(100, note('a'));
    clock.after(100, note('b'));
    clock.after(200, note('never'))();
    clock.after(-5, note('at once'));

    clock.moveTo(START.getTime() + 300);

    expect(fired).toEqual([
      ['at once', 0],
      ['a', 100],
      ['b', 100],
      ['c', 300],
    ]);
    expect(clock.nextTimer).toBeUndefined();
  });

  test('leaves what is set while it moves to the next move, so that a timer which sets itself anew is no endless loop', () => {
    const clock = new VirtualClock(START);
    let fired = 0;
    const again = () => {
      fired += 1;
      clock.after(0, again);
    };
    clock.after(0, again);

    clock.moveTo(START.getTime());
    expect(fired).toBe(1);
    clock.moveTo(START.getTime() + 1_000);
    expect(fired).toBe(2);
  });

  test('does not go back', () => {
    const clock = new VirtualClock(START);
    expect(() => clock.moveTo(START.getTime() - 1)).toThrow(expect.objectContaining({ code: 'invalid_input' }));
    expect(clock.now()).toBe(START.getTime());
  });

  test('sleeps until the time is over or the signal aborts, and holds on to no signal after that', async () => {
    const clock = new VirtualClock(START);
    const controller = new AbortController();
    let listening = 0;
    const { signal } = controller;
    const count = (by: number, method: 'addEventListener' | 'removeEventListener') => {
      const original = signal[method].bind(signal) as (...args: unknown[]) => void;
      signal[method] = (...args: unknown[]) => {
        listening += by;
        original(...args);
      };
    };
    count(1, 'addEventListener');
    count(-1, 'removeEventListener');

    for (let n = 0; n < 20; n++) {
      const slept = clock.sleep('1s', signal);
      clock.moveTo(clock.now() + 1_000);
      await slept;
    }
    expect(listening).toBe(0);
    const sleeping = clock.sleep('1s', signal);
    expect(clock.sleepers).toBe(1);
    controller.abort(new Error('enough'));

    await expect(sleeping).rejects.toThrow('enough');
    await expect(clock.sleep('1s', signal)).rejects.toThrow('enough');
    expect([clock.sleepers, clock.nextTimer]).toEqual([0, undefined]);
  });
});
