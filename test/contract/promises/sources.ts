import { expect, test } from 'vitest';
import { idsOf, retryIn, type StoreFactory, useScene } from '../scene.ts';

const eva = { actor: 'eva', note: 'the host is down' };

/** Holding a source and pausing a queue. */
export function promisesOfSources(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('claims nothing of a source that is held, and everything of others', async () => {
    const worker = await scene.join();
    const [held, open] = await scene.enqueue({ source: 'imap:A' }, { source: 'imap:B' });
    await scene.store.sources.hold('imap:A', eva);
    const [late] = await scene.enqueue({ source: 'imap:A' });

    expect(idsOf(await scene.claim(worker))).toEqual([open]);
    expect(await scene.claim(worker, { only: [held as number] })).toEqual([]);
    await scene.store.sources.release('imap:A');
    expect(idsOf(await scene.claim(worker))).toEqual([held, late]);
  });

  test('keeps the queue’s order during a hold', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue({ source: 'a' }, { source: 'b' }, { source: 'a' }, { source: 'b' });
    await scene.store.sources.hold('a', eva);
    await scene.store.sources.release('a');

    expect(idsOf(await scene.claim(worker))).toEqual(ids);
  });

  test('lets running tasks of a held source go on, and holds their retries', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.store.sources.hold(claimed.source, eva);

    expect(await scene.settle(claimed, retryIn(0))).toEqual({ answer: 'settled', state: 'ready' });
    expect(await scene.claim(worker)).toEqual([]);
    await scene.store.sources.release(claimed.source);
    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task]);
  });

  test('lets an operator cancel a task of a held source', async () => {
    const worker = await scene.join();
    const [one, two] = (await scene.enqueue({ source: 'a' }, { source: 'a' })) as [number, number];
    await scene.store.sources.hold('a', eva);
    await scene.move(one, { verb: 'cancel' });
    await scene.store.sources.release('a');

    expect(idsOf(await scene.claim(worker))).toEqual([two]);
  });

  test('says since when, by whom and why a source is held, and forgets it when it is released', async () => {
    await scene.store.sources.hold('a', eva);
    const since = scene.now();
    scene.advance(1_000);
    await scene.store.sources.hold('a', { actor: 'bob' });

    expect(await scene.store.records.sources()).toMatchObject([{ name: 'a', hold: { at: since, ...eva } }]);
    await scene.store.sources.release('a');
    await scene.store.sources.release('never held');
    expect(await scene.store.records.sources()).toEqual([]);
  });

  test('claims nothing of a paused queue, and continues in order when it is resumed', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue({ queue: 'mail' }, { queue: 'mail', type: 'other' });
    const [elsewhere] = await scene.enqueue({});
    await scene.store.sources.pause('mail', eva);

    expect(idsOf(await scene.claim(worker))).toEqual([elsewhere]);
    expect(await scene.claim(worker, { only: ids })).toEqual([]);
    await scene.store.sources.resume('mail');
    expect(idsOf(await scene.claim(worker))).toEqual(ids);
  });

  test('pauses a queue before it has any task', async () => {
    const worker = await scene.join();
    await scene.store.sources.pause('mail', eva);
    await scene.enqueue({ queue: 'mail' });

    expect(await scene.claim(worker)).toEqual([]);
    expect(await scene.store.records.queues()).toContainEqual({
      name: 'mail',
      order: 'fifo',
      fair: false,
      paused: { at: scene.now(), ...eva },
    });
  });

  test.runIf(scene.hasSecond)('is heard by other processes at their next claim', async () => {
    const second = await scene.openSecond();
    const there = await second.tasks.join({ name: 'there', leaseFor: 30_000, publishes: {} });
    const claim = () =>
      second.tasks.claim({ worker: there, limit: 10, capabilities: {}, suspects: 1, alone: true, except: [] });
    const [id] = await scene.enqueue({ queue: 'mail', source: 'a' });

    await scene.store.sources.pause('mail', eva);
    expect((await claim()).tasks).toEqual([]);
    await scene.store.sources.resume('mail');
    await scene.store.sources.hold('a', eva);
    expect((await claim()).tasks).toEqual([]);
    await scene.store.sources.release('a');
    expect(idsOf((await claim()).tasks)).toEqual([id]);
  });

  test('names what holds a ready task: its source, its queue, or that no worker takes it', async () => {
    const id = await scene.enqueueOne({ queue: 'mail', source: 'a', type: 'mail', needs: { gpu: true } });
    const heldBy = async () => (await scene.find(id)).heldBy;

    expect(await heldBy()).toBe('no_worker');
    await scene.join('without', { takes: { capabilities: {} } });
    await scene.join('other', { takes: { types: ['other'], capabilities: { gpu: true } } });
    expect(await heldBy()).toBe('no_worker');
    await scene.join('with', { takes: { types: ['mail'], queues: ['mail'], capabilities: { gpu: true } } });
    expect(await heldBy()).toBeUndefined();
    await scene.store.sources.hold('a', eva);
    expect(await heldBy()).toBe('source_held');
    await scene.store.sources.pause('mail', eva);
    expect(await heldBy()).toBe('queue_paused');
    await scene.store.sources.resume('mail');
    await scene.store.sources.release('a');
    scene.advance(31_000);
    expect(await heldBy()).toBe('no_worker');
  });

  test('counts by queue, type, category and needs what no worker takes and nothing else holds', async () => {
    const { records, sources } = scene.store;
    expect(await records.withoutWorker(10)).toEqual([]);
    await scene.enqueue(
      { type: 'mail', source: 'a' },
      { type: 'mail', source: 'b', category: 'big', needs: { gpu: true, cpu: 4 } },
      { type: 'report', source: 'c' },
    );
    await scene.enqueue({ type: 'mail', source: 'a', delay: 1_000 }, { type: 'report', source: 'c' });
    const queue = 'default';
    const [mail, picky, report] = [
      { queue, type: 'mail', ready: 1 },
      { queue, type: 'mail', category: 'big', needs: { cpu: 4, gpu: true }, ready: 1 },
      { queue, type: 'report', ready: 2 },
    ] as const;
    expect(await records.withoutWorker(10)).toEqual([mail, picky, report]);
    expect(await records.withoutWorker(1)).toEqual([mail, picky, { ...report, ready: 1 }]);
    expect(await records.readyOf(['a', 'c', 'none'])).toEqual([
      { name: 'a', ready: 1 },
      { name: 'c', ready: 2 },
    ]);
    await scene.join('all', { takes: { capabilities: {} } });
    expect(await records.withoutWorker(10)).toEqual([picky]);
    await sources.hold('b', eva);
    expect(await records.withoutWorker(10)).toEqual([]);
    scene.advance(31_000);
    expect(await records.withoutWorker(10)).toEqual([mail, report]);
    await sources.pause('default', eva);
    expect(await records.withoutWorker(10)).toEqual([]);
  });

  test('names so many sources in trouble, but none that has only limits', async () => {
    const { records, sources } = scene.store;
    for (const source of ['held', 'also held', 'until later']) await sources.hold(source, eva, 1_000);
    await sources.limit('limited', { concurrency: 1 }, { ...eva, origin: 'person' });
    const names = async (most: number) => (await records.sources(most)).map(({ name }) => name);
    expect(await names(10)).toEqual(['also held', 'held', 'until later']);
    expect(await names(2)).toHaveLength(2);
    scene.advance(1_001);
    expect(await names(10)).toEqual([]);
    expect((await records.sources()).map(({ name }) => name)).toEqual(['limited']);
  });

  test('counts the ready and running tasks of every held source, and of so many others, the fullest first', async () => {
    const worker = await scene.join();
    const { records } = scene.store;
    expect([await records.countsBy('source', 10), await records.sourceNames()]).toEqual([[], []]);
    await scene.enqueue({ source: 'one' }, { source: 'two' }, { source: 'two', queue: 'mail' }, { source: 'held' });
    await scene.enqueue({ source: 'later', delay: 1_000 });
    await scene.start(worker, { source: 'runs' });
    await scene.store.sources.hold('held', eva);
    await scene.store.sources.hold('empty', eva);

    const held = [
      { name: 'held', ready: 1, running: 0 },
      { name: 'empty', ready: 0, running: 0 },
    ];
    const two = { name: 'two', ready: 2, running: 0 };
    const others = [two, { name: 'one', ready: 1, running: 0 }, { name: 'runs', ready: 0, running: 1 }];
    expect(await records.countsBy('source', 10)).toEqual([...held, ...others]);
    expect(await records.countsBy('source', 1)).toEqual([...held, two]);
    expect(await records.sourceNames()).toEqual(['held', 'one', 'runs', 'two']);
    expect(await records.sourceNames('on', 2)).toEqual(['one', 'runs']);
  });

  test('counts what is ready, runs and is scheduled of every queue, and says when it did not look at all of it', async () => {
    const worker = await scene.join();
    const { records } = scene.store;
    expect(await records.countsBy('queue', 10)).toEqual([]);
    await scene.enqueue({ queue: 'a' }, { queue: 'a', type: 'other', source: 's' }, { queue: 'a', delay: 1_000 });
    await scene.enqueue({ queue: 'b', delay: 2_000 });
    await scene.start(worker, { queue: 'b' });
    await scene.store.sources.setUp('c', { order: 'lifo' });

    const c = { name: 'c', ready: 0, running: 0, scheduled: 0 };
    const looked = (exact: boolean, scheduledInB: number) =>
      [
        { name: 'a', ready: 2, running: 0, scheduled: 1 },
        { name: 'b', ready: 0, running: 1, scheduled: scheduledInB },
        c,
      ].map((counts) => ({ ...counts, exact }));
    expect(await records.countsBy('queue', 2)).toEqual(looked(true, 1));
    expect(await records.countsBy('queue', 1)).toEqual(looked(false, 0));

    // No claim has made it ready yet, but nothing else keeps it from being claimed.
    scene.world.clock.advance(1_000);
    expect((await records.countsBy('queue', 10))[0]).toEqual({
      name: 'a',
      ready: 3,
      running: 0,
      scheduled: 0,
      exact: true,
    });
  });
}
