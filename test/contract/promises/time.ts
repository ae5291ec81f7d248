import { expect, test } from 'vitest';
import { idsOf, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';
import { virtualWorld } from '../virtual-world.ts';

const YEAR = 365 * 86_400_000;

export function promisesOfTime(factory: StoreFactory): void {
  const scene = useScene(factory);

  test.each([
    ['longer than a timer of Node’s', 2 ** 31],
    ['of a year', YEAR],
    ['of ten years', 10 * YEAR],
  ])('waits for a delay %s, neither less nor more', async (_, delay) => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ delay });

    scene.advance(delay - 1);
    await scene.store.tasks.renew(worker, []);
    expect(await scene.claim(worker)).toEqual([]);
    scene.advance(1);
    expect(idsOf(await scene.claim(worker))).toEqual([id]);
  });

  test('waits as long for a retry', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(2 ** 31));

    scene.advance(2 ** 31 - 1);
    await scene.store.tasks.renew(worker, []);
    expect(await scene.claim(worker)).toEqual([]);
    scene.advance(1);
    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task]);
  });

  test('goes at the pace of the world', async () => {
    const before = scene.now();
    await scene.enqueueOne();
    expect(scene.now()).toBe(before);
    scene.advance(12_345);
    await scene.enqueueOne();
    expect(scene.now()).toBe(before + 12_345);
  });

  test('never runs backwards', async () => {
    let last = scene.now();
    for (const jump of [-1, -3_600_000, 60_000, -5, 8 * 3_600_000, -12 * 3_600_000]) {
      scene.world.clock.jumpWall(jump);
      expect(scene.now()).toBeGreaterThanOrEqual(last);
      const id = await scene.enqueueOne();
      const { createdAt } = await scene.find(id);
      expect(createdAt).toBeGreaterThanOrEqual(last);
      expect(scene.now()).toBeGreaterThanOrEqual(createdAt);
      last = scene.now();
    }
  });

  test('is the wall clock’s time again once that was put right', async () => {
    await scene.enqueueOne();
    scene.world.clock.jumpWall(-3_600_000);
    await scene.enqueueOne();
    scene.advance(10_000);
    await scene.enqueueOne();
    scene.world.clock.jumpWall(3_600_000);

    // Looking at the clock must not move it.
    expect(scene.now()).toBe(scene.world.clock.now());
    const { createdAt } = await scene.find(await scene.enqueueOne());
    expect(createdAt).toBe(scene.world.clock.now());
  });

  test('stays at the wall clock’s time when that trembles after it was put right', async () => {
    await scene.enqueueOne();
    scene.world.clock.jumpWall(-3_600_000);
    await scene.enqueueOne();
    scene.world.clock.jumpWall(2 * 3_600_000);
    const seen = scene.now();
    scene.world.clock.jumpWall(-1);

    const { createdAt } = await scene.find(await scene.enqueueOne());
    expect(createdAt).toBe(seen);
  });

  test('does not jump ahead when the wall clock is corrected to slightly less than before', async () => {
    await scene.enqueueOne();
    scene.world.clock.jumpWall(-3_600_000);
    const { createdAt: before } = await scene.find(await scene.enqueueOne());
    scene.world.clock.jumpWall(3_599_000);

    const { createdAt } = await scene.find(await scene.enqueueOne());
    expect(createdAt - before).toBeLessThan(1_000);
  });

  test('continues at once after the wall clock was set back', async () => {
    const worker = await scene.join();
    const [before] = await scene.enqueue({ delay: 10_000 });
    scene.world.clock.jumpWall(-3_600_000);
    const [after] = await scene.enqueue({ delay: 10_000 });

    scene.advance(9_000);
    expect(await scene.claim(worker)).toEqual([]);
    scene.advance(2_000);
    expect(idsOf(await scene.claim(worker))).toEqual([before, after]);
  });

  test('runs nothing twice, and everything that was due, when the wall clock is set back', async () => {
    const worker = await scene.join();
    const running = await scene.start(worker);
    const due = await scene.enqueue(...Array.from({ length: 10 }, () => ({})));
    scene.world.clock.jumpWall(-3_600_000);

    expect(idsOf(await scene.claim(worker))).toEqual(due);
    expect(await scene.recover(worker)).toEqual([]);
    expect(await scene.settle(running, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });

  test.runIf(scene.hasSecond)('never runs backwards over a restart either', async () => {
    const worker = await scene.join();
    const due = await scene.enqueue({}, { delay: 500 });
    scene.advance(5_000);
    const last = await scene.find(await scene.enqueueOne());
    const claimed = await scene.claimTask(worker, last.id);

    const later = virtualWorld(3);
    later.clock.jumpWall(5_000 - 3_600_000);
    const second = await scene.openSecond(later);
    await scene.closeStore();

    const [receipt] = await second.tasks.enqueue([{ ...claimedToTask(claimed), delay: 0 }]);
    const record = await second.records.find(receipt?.id as number);
    // The clock's highest value may be noted a little late, so that reading it costs no write.
    expect(record?.createdAt).toBeGreaterThanOrEqual(last.createdAt - 1_000);
    const again = await second.tasks.join({ name: 'again', leaseFor: 30_000, publishes: {} });
    expect(idsOf(await scene.claim(again, { only: due }))).toHaveLength(2);
  });

  test.runIf(scene.hasSecond)('is one for two processes, whichever wall clock is ahead', async () => {
    const ahead = virtualWorld(3);
    ahead.clock.jumpWall(60_000);
    const second = await scene.openSecond(ahead);
    const alice = await scene.join('alice');
    await second.tasks.join({ name: 'bob', leaseFor: 30_000, publishes: {} });
    const [id] = await scene.enqueue({ delay: 1_000 });

    const record = await scene.find(id as number);
    expect(record.createdAt).toBeGreaterThanOrEqual(ahead.clock.now());
    scene.advance(1_000);
    expect(idsOf(await scene.claim(alice))).toEqual([id]);
  });

  function claimedToTask({ type, queue, source, priority, payload }: Awaited<ReturnType<typeof scene.start>>) {
    return { type, queue, source, priority, payload, idempotent: true };
  }
}
