import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WHEN_GROUP_ENDS } from '../../src/store/new-task.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Claimed, NewTask, Receipt, Store } from '../../src/store/store.ts';
import { claimRequest, idsOf, lost, newTask, retryIn, settlement, succeeded } from '../contract/scene.ts';
import { type VirtualWorld, virtualWorld } from '../contract/virtual-world.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const NEVER = { default: 'never' } as const;
const KEEP = { succeeded: { default: 30 * DAY }, dead: NEVER, cancelled: NEVER, needs_manual: NEVER } as const;

let folder: string;
let world: VirtualWorld;
let open: Store[];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-clock-'));
  world = virtualWorld();
  world.clock.tellUptime();
  open = [];
});
afterEach(async () => {
  for (const store of open) await store.upkeep.close();
  rmSync(folder, { recursive: true });
});

async function openStore(): Promise<Store> {
  const store = await sqlite(join(folder, 'tasks.db')).open(world);
  open.push(store);
  return store;
}

const joined = (store: Store) => store.tasks.join({ name: 'worker', leaseFor: 30_000, publishes: {} });

describe('a wall clock that jumps 40 days ahead', () => {
  test('makes nothing due, expires nothing, and lets nothing be removed', async () => {
    const store = await openStore();
    const worker = await joined(store);
    await store.tasks.enqueue([newTask({})]);
    const [done] = (await store.tasks.claim(claimRequest(worker))).tasks;
    await store.tasks.settle([settlement(done as NonNullable<typeof done>, succeeded())]);
    const now = store.upkeep.now();
    await store.tasks.enqueue([newTask({ delay: DAY }), newTask({ deadline: now + 2 * DAY, delay: DAY })]);

    world.clock.jumpWall(40 * DAY);
    expect(store.upkeep.now()).toBe(now);
    world.clock.advance(MINUTE);
    expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ tasks: [], expired: [] });
    expect((await store.tasks.recover(worker, 10)).tasks).toEqual([]);
    expect(await store.upkeep.prune(KEEP)).toEqual({ removed: [] });
    expect(store.upkeep.now()).toBe(now + MINUTE);
    expect(await store.upkeep.clock()).toEqual({
      now: now + MINUTE,
      wall: now + 40 * DAY + MINUTE,
      believedIn: HOUR - MINUTE,
    });

    world.clock.jumpWall(-40 * DAY);
    world.clock.advance(MINUTE);
    await store.tasks.renew(worker, []);
    expect(await store.upkeep.clock()).toEqual({ now: now + 2 * MINUTE, wall: now + 2 * MINUTE });
  });

  test('is believed when it has stayed there for an hour, over processes that live for a moment', async () => {
    const first = await openStore();
    await first.tasks.enqueue([newTask({})]);
    const before = first.upkeep.now();
    await first.upkeep.close();
    world.clock.jumpWall(40 * DAY);
    for (let minutes = 0; minutes < 60; minutes += 10) {
      const store = await openStore();
      await store.tasks.enqueue([newTask({})]);
      expect(store.upkeep.now()).toBe(before + minutes * MINUTE);
      await store.upkeep.close();
      world.clock.advance(10 * MINUTE);
    }
    const store = await openStore();
    expect(store.upkeep.now()).toBe(world.clock.now());
    await store.tasks.enqueue([newTask({})]);
    expect(await store.upkeep.clock()).toEqual({ now: world.clock.now(), wall: world.clock.now() });
  });

  test('is believed at once when an operator says so, by all processes', async () => {
    const [store, other] = [await openStore(), await openStore()];
    for (const one of [store, other]) await one.tasks.enqueue([newTask({})]);
    world.clock.jumpWall(40 * DAY);
    for (const one of [store, other]) await one.tasks.enqueue([newTask({})]);
    await store.upkeep.resetClock();

    expect(store.upkeep.now()).toBe(world.clock.now());
    await other.tasks.enqueue([newTask({})]);
    expect(other.upkeep.now()).toBe(world.clock.now());
    expect(await other.upkeep.clock()).not.toHaveProperty('believedIn');
  });
});

test('a sleep of eight hours is no jump', async () => {
  const store = await openStore();
  const worker = await joined(store);
  await store.tasks.enqueue([newTask({ delay: HOUR })]);
  world.clock.sleep(8 * HOUR);
  expect((await store.tasks.claim(claimRequest(worker))).tasks).toHaveLength(1);
  expect(await store.upkeep.clock()).not.toHaveProperty('believedIn');
});

test('a correction of some minutes is believed', async () => {
  const store = await openStore();
  await store.tasks.enqueue([newTask({})]);
  world.clock.jumpWall(4 * MINUTE);
  expect(store.upkeep.now()).toBe(world.clock.now());
});

test('a clock that was set back and is put right again is believed', async () => {
  const store = await openStore();
  await store.tasks.enqueue([newTask({})]);
  world.clock.jumpWall(-2 * DAY);
  world.clock.advance(HOUR);
  await store.tasks.enqueue([newTask({})]);
  world.clock.jumpWall(2 * DAY);
  await store.tasks.enqueue([newTask({})]);
  expect(await store.upkeep.clock()).toEqual({ now: world.clock.now(), wall: world.clock.now() });
});

test('after a boot the clock is believed, but nothing is removed for ten minutes, and that is said', async () => {
  const before = await openStore();
  const worker = await joined(before);
  await before.tasks.enqueue([newTask({})]);
  const [done] = (await before.tasks.claim(claimRequest(worker))).tasks;
  await before.tasks.settle([settlement(done as NonNullable<typeof done>, succeeded())]);
  await before.upkeep.close();
  world.clock.reboot();
  world.clock.jumpWall(40 * DAY);

  const store = await openStore();
  expect(store.upkeep.now()).toBe(world.clock.now());
  expect(await store.upkeep.prune(KEEP)).toEqual({ removed: [] });
  expect(await store.upkeep.clock()).toMatchObject({ leapt: 40 * DAY, removesIn: 10 * MINUTE });
  await store.tasks.enqueue([newTask({})]);
  const other = await openStore();
  expect(await other.upkeep.clock()).toMatchObject({ leapt: 40 * DAY });
  world.clock.advance(10 * MINUTE);
  expect((await store.upkeep.prune(KEEP)).removed).toHaveLength(1);
  expect(await store.upkeep.clock()).not.toHaveProperty('removesIn');
});

test('a store that went ahead with a wrong clock is reset to the right one, for all processes, leases too', async () => {
  world.clock.jumpWall(40 * DAY);
  const [store, other] = [await openStore(), await openStore()];
  await joined(store);
  await other.tasks.enqueue([newTask({})]);
  world.clock.jumpWall(-40 * DAY);
  await store.tasks.enqueue([newTask({})]);
  const { now, wall } = await store.upkeep.clock();
  expect(now - wall).toBe(40 * DAY);

  await other.upkeep.resetClock();
  for (const one of [store, other]) {
    await one.tasks.enqueue([newTask({})]);
    expect(one.upkeep.now()).toBe(world.clock.now());
  }
  const [worker] = await store.records.workers();
  expect(worker?.leaseUntil).toBe(world.clock.now() + 30_000);
});

test('a reset brings back what counts from the wrong time: retries, the order of tasks, and chores', async () => {
  const store = await openStore();
  const worker = await joined(store);
  const later = world.clock.now() + 50 * DAY;
  world.clock.jumpWall(40 * DAY);
  await store.upkeep.resetClock();
  const [failing, dated] = (await store.tasks.enqueue([newTask({}), newTask({ dueAt: later })])) as [Receipt, Receipt];
  const [claimed] = (await store.tasks.claim(claimRequest(worker))).tasks as [Claimed];
  await store.tasks.settle([settlement(claimed, retryIn(10_000))]);
  const [early] = (await store.tasks.enqueue([newTask({})])) as [Receipt];
  expect(await store.upkeep.takeTurn('retention', HOUR)).toBe(true);

  world.clock.jumpWall(-40 * DAY);
  await store.upkeep.resetClock();
  world.clock.advance(1_000);
  const [late] = (await store.tasks.enqueue([newTask({})])) as [Receipt];
  const dueIn = async (id: number) => ((await store.records.find(id))?.dueAt ?? 0) - world.clock.now();
  expect(await dueIn(failing.id)).toBe(9_000);
  expect(await dueIn(dated.id)).toBe(later - world.clock.now());
  expect(await store.upkeep.verify()).toEqual([]);

  const again = await joined(store);
  const first = await store.tasks.claim(claimRequest(again, { limit: 1 }));
  expect(idsOf(first.tasks)).toEqual([early.id]);
  world.clock.advance(10_000);
  const rest = await store.tasks.claim(claimRequest(again, { limit: 3 }));
  expect(idsOf(rest.tasks).toSorted((a, b) => a - b)).toEqual([failing.id, late.id]);
  world.clock.advance(HOUR);
  expect(await store.upkeep.takeTurn('retention', HOUR)).toBe(true);
});

test('a reset brings back since when a follow-up is due, and leaves one that waits for its group', async () => {
  const store = await openStore();
  world.clock.jumpWall(40 * DAY);
  await store.upkeep.resetClock();
  const group = (...tasks: NewTask[]) =>
    store.tasks.enqueue([...tasks, newTask({ dueAt: WHEN_GROUP_ENDS, groupOf: tasks.length })]);
  const [task, followUp] = (await group(newTask({}))) as [Receipt, Receipt];
  const [empty] = (await group()) as [Receipt];
  const [running, waiting] = (await group(newTask({}))) as [Receipt, Receipt];
  await store.tasks.move([task.id], { verb: 'cancel', actor: 'eva' });

  world.clock.jumpWall(-40 * DAY);
  await store.upkeep.resetClock();
  expect(await store.upkeep.verify()).toEqual([]);
  world.clock.advance(1_000);
  const { tasks } = await store.tasks.claim(claimRequest(await joined(store)));
  expect(idsOf(tasks).toSorted((a, b) => a - b)).toEqual([followUp.id, empty.id, running.id]);
  expect(await store.records.find(waiting.id)).toMatchObject({ waitsForGroup: true });
});

test('a reset brings back when recoveries were charged, so that they count no longer than they should', async () => {
  const store = await openStore();
  const worker = await joined(store);
  const [{ id }] = (await store.tasks.enqueue([newTask({})])) as [Receipt];
  const loseCharged = async () => {
    const { tasks } = await store.tasks.claim(claimRequest(worker, { only: [id] }));
    await store.tasks.settle([settlement(tasks[0] as Claimed, lost('charged'))]);
  };
  await loseCharged();
  world.clock.jumpWall(40 * DAY);
  await store.upkeep.resetClock();
  await loseCharged();
  world.clock.jumpWall(-40 * DAY);
  await store.upkeep.resetClock();
  world.clock.advance(1_000);

  const again = await joined(store);
  const { tasks } = await store.tasks.claim(claimRequest(again));
  expect(tasks[0]?.facts.recoveriesAgoMs).toEqual([1_000, 1_000]);
});

test('is not held up where the system does not tell how long it has run', async () => {
  world = virtualWorld();
  const store = await openStore();
  await store.tasks.enqueue([newTask({})]);
  world.clock.jumpWall(40 * DAY);
  expect(store.upkeep.now()).toBe(world.clock.now());
});

test('a reset brings back what sources wait for: they open after the same time as without the wrong clock', async () => {
  const store = await openStore();
  world.clock.jumpWall(40 * DAY);
  await store.upkeep.resetClock();
  const shut = { cause: 'breaker', shutFor: 60_000 } as const;
  await store.sources.change('shut', {
    revision: 0,
    change: { memory: 'm', restriction: shut, tokens: 0, refunds: [] },
  });
  await store.sources.limit('paced', { pace: { perSecond: 0.1, burst: 1 } }, { actor: 'eva', origin: 'person' });
  await store.sources.hold('held', { actor: 'eva' }, 60_000);
  await store.tasks.enqueue(['shut', 'paced', 'paced', 'held'].map((source) => newTask({ source })));
  expect((await store.tasks.claim(claimRequest(await joined(store)))).tasks).toHaveLength(1);

  world.clock.jumpWall(-40 * DAY);
  await store.upkeep.resetClock();
  const worker = await joined(store);
  expect(await store.tasks.claim(claimRequest(worker))).toMatchObject({ tasks: [], nextDueIn: 10_000 });
  world.clock.advance(10_000);
  expect((await store.tasks.claim(claimRequest(worker))).tasks.map(({ source }) => source)).toEqual(['paced']);
  world.clock.advance(50_000);
  expect((await store.tasks.claim(claimRequest(worker))).tasks.map(({ source }) => source)).toEqual(['shut', 'held']);
  expect(await store.upkeep.verify()).toEqual([]);
});
