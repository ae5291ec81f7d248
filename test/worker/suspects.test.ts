import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import type { Claimed } from '../../src/store/store.ts';
import { Suspects } from '../../src/worker/suspects.ts';
import { virtualWorld } from '../contract/virtual-world.ts';
import { type Kit, useKits } from './scene.ts';

const open = useKits();

/** Tasks that were lost with their workers, so often in a row, and are ready again. */
async function suspects(
  kit: Kit,
  lostInARow: number,
  inputs: readonly unknown[],
  options = {},
): Promise<readonly number[]> {
  const { tasks } = kit.holdfast.store;
  const receipts = await kit.holdfast.enqueueAll('work', inputs, options);
  const ids = receipts.map(({ id }) => id);
  const ghost = await tasks.join({ name: 'ghost', leaseFor: 1_000, publishes: {} });
  const request = { worker: ghost, limit: 100, capabilities: {}, suspects: 100, alone: true, only: ids, except: [] };
  const { tasks: taken } = await tasks.claim(request);
  const because = { step: 'recovery', rule: 'policy', policyVersion: 'v1', text: 'It was lost.' } as const;
  const decision = {
    next: 'scheduled',
    after: 0,
    reason: 'worker.lost',
    charge: { to: 'nobody' },
    lostInARow,
    because,
  } as const;
  const report = { ranFor: 1, outcome: 'loss' };
  await tasks.settle(taken.map(({ lease, revision }) => ({ lease, revision, decision, report })));
  await tasks.leave(ghost);
  await kit.advance('1ms');
  return ids;
}

/** A kit whose handlers run for as long as their input says, and the second in which each task began. */
async function timed() {
  const begun = new Map<number, number>();
  async function run(seconds: number, { id }: { readonly id: number }) {
    begun.set(id, (kit.clock.now() - start) / 1_000);
    await kit.clock.sleep(`${seconds}s`);
  }
  const tasks = [defineTask('work', { run }), defineTask('other', { run })];
  const kit = await open({ tasks, worker: { types: [] } });
  let start = 0;
  return {
    kit,
    begun,
    work(options = {}) {
      start = kit.clock.now();
      return kit.holdfast.work({ concurrency: 10, pollInterval: '100ms', ...options });
    },
  };
}

describe('a task that must run alone', () => {
  test.each([
    [2, 10],
    [3, 20],
    [5, 80],
  ])('is the only one for its probation, which doubles with each loss: %i', async (lostInARow, probation) => {
    const { kit, begun, work } = await timed();
    const [apart] = await suspects(kit, lostInARow, [1_000]);
    const { id } = await kit.holdfast.enqueue('work', 1);

    work();
    await kit.advance(`${probation + 2}s`);

    expect(begun.get(apart as number)).toBe(0);
    expect(begun.get(id)).toBeGreaterThanOrEqual(probation);
    expect(begun.get(id)).toBeLessThan(probation + 0.2);
  });

  test('lets others begin as soon as it has ended', async () => {
    const { kit, begun, work } = await timed();
    await suspects(kit, 2, [3]);
    const { id } = await kit.holdfast.enqueue('work', 1);

    work();
    await kit.advance('5s');

    expect(begun.get(id)).toBe(3);
  });

  test('waits until its worker runs nothing', async () => {
    const { kit, begun, work } = await timed();
    await kit.holdfast.enqueue('work', 5);
    await kit.advance('1ms');
    const [apart] = (await suspects(kit, 2, [1])) as [number];

    work();
    await kit.advance('10s');

    expect(begun.get(apart)).toBe(5);
  });

  test('waits for the other workers of its process too', async () => {
    const { kit, begun, work } = await timed();
    await kit.holdfast.enqueue('other', 5);
    work({ name: 'first', types: ['other'] });
    await kit.drain();
    const [apart] = (await suspects(kit, 2, [1])) as [number];

    kit.holdfast.work({ name: 'second', pollInterval: '100ms' });
    await kit.advance('10s');

    expect(begun.get(apart)).toBe(5);
  });

  test('is run beside others by a worker that was not empty for two minutes, which then takes nothing else', async () => {
    const { kit, begun, work } = await timed();
    await kit.holdfast.enqueue('work', 1_000);
    await kit.advance('1ms');
    const [apart] = (await suspects(kit, 2, [1_000])) as [number];

    work();
    await kit.advance('119s');
    expect(begun.get(apart)).toBeUndefined();
    await kit.advance('2s');
    expect(begun.get(apart)).toBeGreaterThanOrEqual(120);
    const { id } = await kit.holdfast.enqueue('work', 1);
    await kit.advance('8s');
    expect(begun.get(id)).toBeUndefined();
    await kit.advance('3s');
    expect(begun.get(id)).toBeLessThan(131);
  });

  test('runs alone in a worker that is always busy, after that worker has finished its other tasks', async () => {
    const { kit, begun, work } = await timed();
    const lasts = Array.from({ length: 30 }, (_, n) => 5 + (n % 7));
    const others = await kit.holdfast.enqueueAll('work', lasts);
    await kit.advance('1ms');
    const [apart] = (await suspects(kit, 2, [20])) as [number];
    const behind = await kit.holdfast.enqueueAll('work', lasts);

    work({ concurrency: 3 });
    await kit.advance('5m');

    const from = begun.get(apart) as number;
    // It is at the front after 75 s or so.
    expect(from).toBeGreaterThan(60);
    expect(from).toBeLessThan(95);
    const beside = [...others, ...behind].filter(({ id }, n) => {
      const at = begun.get(id) as number;
      return at < from + 10 && at + (lasts[n % 30] as number) > from;
    });
    expect(beside).toEqual([]);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 61 });
  });

  test('begins beside others where no execution is left to hand it back with', async () => {
    const { kit, begun, work } = await timed();
    await kit.holdfast.enqueue('work', 1_000);
    await kit.advance('1ms');
    const [apart] = (await suspects(kit, 2, [1], { retry: { maxAttempts: 2, maxExecutions: 2 } })) as [number];

    work();
    await kit.advance('62s');

    expect(begun.get(apart)).toBeGreaterThanOrEqual(60);
    expect(await kit.holdfast.get(apart)).toMatchObject({ state: 'succeeded' });
  });

  test('still waits until its worker runs nothing where a claim by hand was forgotten', async () => {
    const { kit, begun, work } = await timed();
    await kit.holdfast.enqueue('other', null);
    await kit.holdfast.claim({ types: ['other'] });
    await kit.advance('2m');
    await kit.holdfast.enqueue('work', 5);
    await kit.advance('1ms');
    const [apart] = (await suspects(kit, 2, [1])) as [number];

    work({ types: ['work'] });
    await kit.advance('10s');

    expect(begun.get(apart)).toBe(5);
  });

  test('is drained like any other', async () => {
    const { kit, begun } = await timed();
    await suspects(kit, 2, [1]);
    await suspects(kit, 3, [1]);
    await suspects(kit, 1, [1, 1, 1]);
    const done = kit.holdfast.worker().drain();
    await kit.advance('1m');
    await done;

    expect(begun.size).toBe(5);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 5, ready: 0 });
  });
});

test('60 tasks of 500 ms that were lost with their worker are done on 100 slots within 5 s', async () => {
  const { kit, work } = await timed();
  await suspects(
    kit,
    1,
    Array.from({ length: 60 }, () => 0.5),
  );

  work({ concurrency: 100 });
  await kit.advance('5s');

  expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 60 });
});

test('a suspect that outlives its probation of 10 s keeps no other one waiting', async () => {
  const { kit, begun, work } = await timed();
  const [, second, third] = (await suspects(kit, 1, [1_000, 1_000, 1_000])) as [number, number, number];

  work();
  await kit.advance('9s');
  expect(begun.size).toBe(1);
  await kit.advance('21s');

  expect(begun.get(second)).toBeCloseTo(10, 0);
  expect(begun.get(third)).toBeCloseTo(20, 0);
});

test('a suspect gets its turn in a worker that claims tasks ahead', async () => {
  const { kit, begun, work } = await timed();
  const before = await kit.holdfast.enqueueAll('work', Array(100).fill(0.005));
  await kit.advance('1ms');
  const [suspect] = (await suspects(kit, 1, [0.005])) as [number];
  await kit.holdfast.enqueueAll('work', Array(400).fill(0.005));

  work({ concurrency: 1, leaseFor: '1d' });
  await kit.advance('10s');

  expect(begun.size).toBe(501);
  expect([...begun.keys()].indexOf(suspect)).toBe(before.length);
});

test('a process that runs nothing between two tasks for moments only asks for a task that must run alone after a minute', () => {
  const { clock } = virtualWorld();
  const all = new Suspects(clock);
  const claimed = { facts: { lostInARow: 0 } } as Claimed;
  all.noteAsked();
  const runForSeconds = (seconds: number) => {
    for (let n = 0; n < seconds; n += 1) {
      all.begin(claimed);
      clock.advance(1_000);
      if (n < seconds - 1) all.end(claimed, true);
    }
  };

  runForSeconds(59);
  expect(all.allowed).toMatchObject({ alone: false });
  all.end(claimed, true);
  runForSeconds(1);
  expect(all.allowed).toMatchObject({ alone: true });
});

test('a new loss that a process sees lets suspects go one at a time again', async () => {
  const { kit, begun, work } = await timed();
  await suspects(kit, 1, [1, 1, 1]);
  const worker = work();
  await kit.advance('2s');
  expect(begun.size).toBe(3);

  const { tasks } = kit.holdfast.store;
  const ghost = await tasks.join({ name: 'ghost', leaseFor: 1_000, publishes: {} });
  await kit.holdfast.enqueueAll('elsewhere', [0, 0]);
  await tasks.claim({
    worker: ghost,
    limit: 9,
    types: ['elsewhere'],
    capabilities: {},
    suspects: 0,
    alone: false,
    except: [],
  });
  await tasks.leave(ghost);
  await kit.advance('30s');
  await worker.stop();
  const later = await suspects(kit, 1, [5, 5, 5]);
  work();
  await kit.advance('1s');

  expect(later.filter((id) => begun.has(id))).toHaveLength(1);
});
