import { describe, expect, test } from 'vitest';
import type { Claimed, NewTask } from '../../../src/store/store.ts';
import { meets, type Needs, type QueueOrder } from '../../../src/task.ts';
import { dice } from '../../../src/testing/dice.ts';
import {
  claimRequest,
  deferredFor,
  ended,
  failure,
  handedBack,
  idsOf,
  lost,
  newTask,
  retryIn,
  type Scene,
  type StoreFactory,
  succeeded,
  UNBEGUN,
  useScene,
} from '../scene.ts';

export function promisesOfClaiming(factory: StoreFactory): void {
  const scene = useScene(factory);

  describe('order', () => promisesOfOrder(scene));
  describe('by chance', () => promisesOfChance(scene));
  describe('filters', () => promisesOfFilters(scene));
  describe('suspects', () => promisesOfSuspects(scene));
  describe('what has run', () => promisesOfPlaces(scene));
  describe('what must not run twice', () => promisesOfSecondRuns(scene));

  test('tells a worker all that it has to know of a task', async () => {
    const now = scene.now();
    const worker = await scene.join();
    const given = {
      type: 'charge',
      queue: 'billing',
      source: 'api:stripe',
      priority: 7,
      category: 'nightly',
      payload: '{"n":1}',
      idempotent: false,
      key: 'invoice-1',
      policy: '{"maxAttempts":2}',
      submittedAt: now - 5_000,
      deadline: now + 90_000,
    };
    const id = await scene.enqueueOne(given);
    scene.advance(1_000);

    const claimed = await scene.claimTask(worker, id);

    const { idempotent, ...told } = given;
    expect(claimed).toEqual({
      ...told,
      lease: { task: id, execution: 1, token: expect.any(String) },
      revision: expect.any(Number),
      facts: {
        executions: 1,
        charged: [],
        deferralsInARow: 0,
        deferredForMs: 0,
        recoveriesAgoMs: [],
        lostInARow: 0,
        idempotent: false,
        cancelRequested: false,
        sinceFirstStartMs: 0,
        untilDeadlineMs: 89_000,
      },
    });
  });

  test.each([
    ['an ordinary one', 0],
    ['one with a key', 3],
    ['one with a deadline', 9],
  ])('tells of each task of a claim what it has of its own; the first one is %s', async (_, first) => {
    const now = scene.now();
    const own = [
      {},
      { payload: '{"n":1}' },
      { priority: 3 },
      { key: 'invoice-1' },
      { source: 'api:stripe' },
      { type: 'charge' },
      { queue: 'billing' },
      { policy: '{"maxAttempts":2}' },
      { idempotent: false },
      { deadline: now + 90_000 },
      { submittedAt: now - 5_000 },
      { unique: { key: 'only', while: 'unfinished', onConflict: 'reject' } },
      { category: 'nightly' },
      {},
    ] as const;
    const tasks = own.map((_one, n) => newTask({ submittedAt: now - 1_000, ...own[(n + first) % own.length] }));
    const ids = await scene.enqueue(...tasks);

    const claimed = new Map((await scene.claim(await scene.join())).map((one) => [one.lease.task, one]));

    expect(ids.map((id) => claimed.get(id))).toEqual(
      tasks.map(({ idempotent, delay: _delay, unique: _unique, ...told }) => ({
        ...told,
        lease: { task: expect.any(Number), execution: 1, token: expect.any(String) },
        revision: expect.any(Number),
        facts: expect.objectContaining({ idempotent, ...(told.deadline && { untilDeadlineMs: 90_000 }) }),
      })),
    );
  });

  test('tells the message of the failure before', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(0), {
      report: { ranFor: 1, outcome: 'failure', failure: { ...failure(), message: 'The file is locked.' } },
    });

    expect(claimed).not.toHaveProperty('lastFailure');
    expect((await scene.claimTask(worker, claimed.lease.task)).lastFailure).toEqual({
      kind: 'transient',
      reason: 'fs.locked',
      message: 'The file is locked.',
    });
  });

  test('takes no deferral’s words for a failure’s', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, deferredFor(0));

    expect(await scene.claimTask(worker, claimed.lease.task)).not.toHaveProperty('lastFailure');
  });

  test('the claim itself raises executions, before the execution has ended', async () => {
    const worker = await scene.join('alice');
    const claimed = await scene.start(worker);

    expect(await scene.find(claimed.lease.task)).toMatchObject({
      state: 'running',
      executions: 1,
      running: { worker: 'alice', since: scene.now(), cancelRequested: false },
    });
  });

  test('gives no task to two workers', async () => {
    const [one, other] = [await scene.join('one'), await scene.join('other')];
    const ids = await scene.enqueue(...Array.from({ length: 30 }, () => ({})));

    const claims = await Promise.all([one, other, one, other].map((worker) => scene.claim(worker, { limit: 7 })));

    const claimed = claims.flatMap(idsOf);
    expect(claimed).toHaveLength(28);
    expect(new Set(claimed).size).toBe(28);
    expect(idsOf(await scene.claim(one)).sort()).toEqual(ids.filter((id) => !claimed.includes(id)).sort());
  });

  test.runIf(factory.openSecond)('gives no task to two processes', async () => {
    const second = await scene.openSecond();
    const here = await scene.join('here');
    const there = await second.tasks.join({ name: 'there', leaseFor: 30_000, publishes: {} });
    await scene.enqueue(...Array.from({ length: 100 }, (_, n) => ({ source: `s${n % 7}` })));

    const claims = await Promise.all(
      Array.from({ length: 12 }, (_, n) =>
        n % 2 === 0
          ? scene.store.tasks.claim(claimRequest(here, { limit: 5 }))
          : second.tasks.claim(claimRequest(there, { limit: 5 })),
      ),
    );

    const claimed = claims.flatMap(({ tasks }) => tasks);
    expect(claimed).toHaveLength(60);
    expect(new Set(idsOf(claimed)).size).toBe(60);
    expect(new Set(claimed.map(({ lease }) => `${lease.task} ${lease.token}`)).size).toBe(60);
  });

  test('gives at most as many as were asked for, and none when none were', async () => {
    const worker = await scene.join();
    await scene.enqueue({ source: 'a' }, { source: 'b' }, { source: 'a' }, { queue: 'other' }, { type: 'move' });

    expect(await scene.claim(worker, { limit: 0 })).toEqual([]);
    expect(await scene.claim(worker, { limit: 3 })).toHaveLength(3);
    expect(await scene.claim(worker, { limit: 3 })).toHaveLength(2);
    expect(await scene.claim(worker, { limit: 3 })).toEqual([]);
  });

  test('gives a scheduled task as soon as it is due, and not before', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ delay: 5_000 });

    scene.advance(4_999);
    expect(await scene.claim(worker)).toEqual([]);
    scene.advance(1);
    expect(idsOf(await scene.claim(worker))).toEqual([id]);
  });

  test('gives many tasks that fall due together, in the order of the queue and not of their times', async () => {
    const worker = await scene.join();
    const now = scene.now();
    const ids = await scene.enqueue(
      ...Array.from({ length: 50 }, (_, n) => ({ delay: 1_000 + n, submittedAt: now - n, source: `s${n % 3}` })),
    );
    scene.advance(2_000);

    expect(idsOf(await scene.claim(worker))).toEqual(ids.toReversed());
  });

  test('tells when the next waiting task falls due', async () => {
    const worker = await scene.join();
    const due = async () => (await scene.store.tasks.claim(claimRequest(worker))).nextDueIn;

    expect(await due()).toBeUndefined();
    await scene.enqueue({ delay: 9_000 }, { delay: 4_000 });
    scene.advance(1_000);
    expect(await due()).toBe(3_000);
    scene.advance(3_000);
    expect(await due()).toBe(5_000);
    scene.advance(5_000);
    expect(await due()).toBeUndefined();
  });

  test('tells when the next waiting task meets its deadline, and hands out those that have', async () => {
    const worker = await scene.join();
    const look = async () => scene.store.tasks.claim(claimRequest(worker, { limit: 0 }));

    await scene.enqueue({ deadline: scene.now() + 5_000 }, { delay: 60_000, deadline: scene.now() + 9_000 });
    expect(await look()).toMatchObject({ nextDueIn: 5_000, expired: [] });
    scene.advance(5_001);
    expect(await look()).toMatchObject({ nextDueIn: 3_999, expired: [{ why: 'expiry' }] });
    expect(await look()).toMatchObject({ nextDueIn: 3_999, expired: [] });
  });

  test('leases nothing to a worker that left or never joined, and says that it is unknown', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    await scene.store.tasks.leave(worker);

    for (const unknown of [worker, 999_999]) {
      expect(await scene.store.tasks.claim(claimRequest(unknown))).toMatchObject({ known: false, tasks: [] });
      expect(await scene.store.tasks.claim(claimRequest(unknown, { only: [id] }))).toMatchObject({ tasks: [] });
    }
    const present = await scene.join();
    expect(await scene.store.tasks.claim(claimRequest(present))).toMatchObject({
      known: true,
      tasks: [{ lease: { task: id, execution: 1 } }],
    });
  });

  test('gives no task to a worker that left, even if it still has tasks', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const [expired] = await scene.enqueue({ deadline: scene.now() + 1_000, delay: 5_000 });
    const hers = await scene.start(alice);
    const id = await scene.enqueueOne();
    await scene.store.tasks.leave(alice);
    scene.advance(1_001);

    expect(await scene.store.tasks.claim(claimRequest(alice))).toMatchObject({ known: false, tasks: [] });
    expect((await scene.store.tasks.recover(alice, 100)).tasks).toEqual([]);
    expect(idsOf(await scene.recover(bob)).toSorted((a, b) => a - b)).toEqual([expired, hers.lease.task]);
    expect(idsOf(await scene.claim(bob))).toEqual([id]);
  });

  test.each([
    ['were cancelled', true],
    ['were claimed by id', false],
  ])('finds what stands behind very many sources whose tasks %s', async (_, areCancelled) => {
    const worker = await scene.join();
    const gone = await scene.enqueue(...Array.from({ length: 1_200 }, (_, n) => ({ source: `s${n}` })));
    const [behind] = await scene.enqueue({ source: 'behind' });
    if (areCancelled) await scene.store.tasks.move(gone, { verb: 'cancel', actor: 'eva' });
    else await scene.claim(worker, { only: gone, limit: gone.length });

    expect(idsOf(await scene.claim(worker, { limit: 1 }))).toEqual([behind]);
  });

  test('serves every queue that has work, however much another one has', async () => {
    const worker = await scene.join();
    await scene.enqueue(...Array.from({ length: 200 }, () => ({ queue: 'big' })));
    const few = await scene.enqueue({ queue: 'small' }, { queue: 'small' }, { queue: 'tiny' });

    const claimed: number[] = [];
    for (let round = 0; round < 10; round += 1) claimed.push(...idsOf(await scene.claim(worker, { limit: 4 })));
    expect(claimed).toEqual(expect.arrayContaining(few));
    expect(claimed).toHaveLength(40);
  });

  test('serves every queue when it is asked for one task at a time', async () => {
    const worker = await scene.join();
    await scene.enqueue(...Array.from({ length: 50 }, () => ({ queue: 'big' })));
    const few = await scene.enqueue({ queue: 'small' }, { queue: 'tiny' });

    const claimed: number[] = [];
    for (let round = 0; round < 12; round += 1) claimed.push(...idsOf(await scene.claim(worker, { limit: 1 })));
    expect(claimed).toEqual(expect.arrayContaining(few));
  });
}

function promisesOfOrder(scene: Scene): void {
  /** Tasks of many sources and types in one queue, with many ties. */
  function crowd(): Partial<NewTask>[] {
    const roll = dice(7);
    const pick = (n: number) => Math.floor(roll() * n);
    return Array.from({ length: 120 }, () => ({
      type: `type-${pick(4)}`,
      source: `source-${pick(12)}`,
      priority: pick(3) === 0 ? 4_095 : pick(4),
      submittedAt: scene.now() - pick(6) * 1_000,
      ...(pick(3) === 0 && { category: `category-${pick(2)}` }),
    }));
  }

  const orders: Record<Exclude<QueueOrder, 'weighted_random'>, (a: Waiting, b: Waiting) => number> = {
    fifo: (a, b) => a.submittedAt - b.submittedAt || a.id - b.id,
    lifo: (a, b) => b.submittedAt - a.submittedAt || b.id - a.id,
    priority: (a, b) => b.priority - a.priority || a.submittedAt - b.submittedAt || a.id - b.id,
  };

  describe.each(Object.entries(orders))('%s', (order, compare) => {
    async function expectOrder(worker: number, limit: number, tasks: readonly Waiting[]): Promise<void> {
      const expected = tasks.toSorted(compare).map(({ id }) => id);
      const claimed: number[] = [];
      for (let got = -1; got !== 0; ) {
        const next = idsOf(await scene.claim(worker, { limit }));
        claimed.push(...next);
        got = next.length;
      }
      expect(claimed).toEqual(expected);
    }

    async function enqueueCrowd(): Promise<Waiting[]> {
      const tasks = crowd();
      const ids = await scene.enqueue(...tasks);
      return tasks.map((task, n) => ({
        ...newTask(task),
        submittedAt: task.submittedAt as number,
        id: ids[n] as number,
      }));
    }

    test.each([1, 7, 200])(
      'is exact across sources, types and categories, ties included, %i at a time',
      async (limit) => {
        await scene.store.sources.setUp('default', { order: order as QueueOrder });
        const tasks = await enqueueCrowd();
        await expectOrder(await scene.join(), limit, tasks);
      },
    );

    test('is exact for tasks that waited before the queue was given this order', async () => {
      const tasks = await enqueueCrowd();
      await scene.store.sources.setUp('default', { order: 'weighted_random' });
      await scene.store.sources.setUp('default', { order: order as QueueOrder });
      await expectOrder(await scene.join(), 5, tasks);
    });

    test('is exact for tasks that were claimed and handed back in between, before they began', async () => {
      await scene.store.sources.setUp('default', { order: order as QueueOrder });
      const tasks = await enqueueCrowd();
      const worker = await scene.join();
      for (const claimed of await scene.claim(worker, { limit: 50 })) {
        await scene.settle(claimed, handedBack(), { report: UNBEGUN });
      }
      await expectOrder(worker, 11, tasks);
    });

    test('is exact for the tasks that a filter leaves', async () => {
      await scene.store.sources.setUp('default', { order: order as QueueOrder });
      const tasks = await enqueueCrowd();
      const worker = await scene.join();
      const left = tasks.filter(({ type, category }) => type !== 'type-0' && category === 'category-1');
      const claimed = await scene.claim(worker, {
        limit: 200,
        types: ['type-1', 'type-2', 'type-3'],
        categories: ['category-1'],
      });
      expect(idsOf(claimed)).toEqual(left.toSorted(compare).map(({ id }) => id));
    });
  });

  interface Waiting extends Pick<NewTask, 'priority' | 'type' | 'category'> {
    readonly id: number;
    readonly submittedAt: number;
  }

  test('is fifo unless it was set', async () => {
    const now = scene.now();
    const ids = await scene.enqueue(
      { submittedAt: now },
      { submittedAt: now - 9, priority: 0 },
      { submittedAt: now - 4 },
    );

    expect(idsOf(await scene.claim(await scene.join()))).toEqual([ids[1], ids[2], ids[0]]);
  });

  test.each(['fifo', 'lifo'] as const)('%s is exact for times of any age', async (order) => {
    await scene.store.sources.setUp('default', { order });
    const times = [0, Date.UTC(1999, 11, 31), Date.UTC(2020, 0, 1), scene.now(), Date.UTC(2262, 3, 11), -1];
    const ids = await scene.enqueue(...times.map((submittedAt) => ({ submittedAt })));
    const oldest = times.toSorted((a, b) => a - b).map((time) => ids[times.indexOf(time)]);

    expect(idsOf(await scene.claim(await scene.join()))).toEqual(order === 'fifo' ? oldest : oldest.toReversed());
  });

  test('priority goes before age, were it thirty years', async () => {
    await scene.store.sources.setUp('default', { order: 'priority' });
    const [old, young] = [Date.UTC(2020, 0, 2), Date.UTC(2050, 0, 1)];
    const ids = await scene.enqueue(
      { priority: 0, submittedAt: old },
      { priority: 1, submittedAt: young },
      { priority: 4_094, submittedAt: old },
      { priority: 4_095, submittedAt: young },
      { priority: 4_095, submittedAt: young - 1 },
    );
    const [a, b, c, d, e] = ids;
    expect(idsOf(await scene.claim(await scene.join()))).toEqual([e, d, c, b, a]);
  });

  test('is exact over a thousand sources', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue(...Array.from({ length: 1_000 }, (_, n) => ({ source: `s${(n * 7) % 1_000}` })));

    const claimed: number[] = [];
    for (let round = 0; round < 10; round += 1) claimed.push(...idsOf(await scene.claim(worker, { limit: 100 })));
    expect(claimed).toEqual(ids);
  });

  test('is each queue’s own', async () => {
    await scene.store.sources.setUp('stack', { order: 'lifo' });
    const worker = await scene.join();
    const a = await scene.enqueue({ queue: 'stack' }, { queue: 'stack' });
    const b = await scene.enqueue({ queue: 'line' }, { queue: 'line' });

    expect(idsOf(await scene.claim(worker, { queues: ['stack'] }))).toEqual(a.toReversed());
    expect(idsOf(await scene.claim(worker, { queues: ['line'] }))).toEqual(b);
  });

  test('gives a retry the place of its submission, so that an old task and new work compete fairly', async () => {
    const worker = await scene.join();
    const old = await scene.start(worker);
    scene.advance(10);
    const [middle] = await scene.enqueue({});
    await scene.settle(old, retryIn(1_000));
    scene.advance(1_000);
    const [young] = await scene.enqueue({});

    expect(idsOf(await scene.claim(worker))).toEqual([old.lease.task, middle, young]);
  });

  test('puts tasks into a queue’s new order also when they were scheduled or held as it changed', async () => {
    const worker = await scene.join();
    const [scheduled, held] = await scene.enqueue({ delay: 1_000, priority: 2 }, { priority: 3 });
    await scene.move(held as number, { verb: 'hold' });
    await scene.store.sources.setUp('default', { order: 'priority' });
    const [low, high] = await scene.enqueue({ priority: 1 }, { priority: 4 });
    await scene.move(held as number, { verb: 'release' });
    scene.advance(1_000);

    expect(idsOf(await scene.claim(worker))).toEqual([high, held, scheduled, low]);
  });

  test('takes an order again that it has already', async () => {
    await scene.store.sources.setUp('default', { order: 'lifo' });
    const ids = await scene.enqueue({}, {});
    await scene.store.sources.setUp('default', { order: 'lifo' });

    expect(idsOf(await scene.claim(await scene.join()))).toEqual(ids.toReversed());
  });

  test.runIf(scene.hasSecond)('is the same for another process, at once', async () => {
    const second = await scene.openSecond();
    const there = await second.tasks.join({ name: 'there', leaseFor: 30_000, publishes: {} });
    // The second handle has seen the queue in its first order.
    await second.tasks.enqueue([newTask()]);
    await second.tasks.claim(claimRequest(there));
    await scene.store.sources.setUp('default', { order: 'lifo' });
    const here = await scene.enqueue({}, {});
    const [last] = await second.tasks.enqueue([newTask()]);

    const { tasks } = await second.tasks.claim(claimRequest(there));
    expect(idsOf(tasks)).toEqual([last?.id, ...here.toReversed()]);
  });
}

function promisesOfChance(scene: Scene): void {
  test('weighted_random gives a weight of 8 about eight times the share of a weight of 1', async () => {
    await scene.store.sources.setUp('default', { order: 'weighted_random' });
    const worker = await scene.join();
    const heavy = Array.from({ length: 1_000 }, (_, n) => ({ priority: 8, source: `h${n % 5}` }));
    const light = Array.from({ length: 1_000 }, (_, n) => ({ priority: 1, source: `l${n % 5}` }));
    await scene.enqueue(...heavy, ...light);

    let heavyOnes = 0;
    for (let round = 0; round < 36; round += 1) {
      const claimed = await scene.claim(worker, { limit: 5 });
      heavyOnes += claimed.filter(({ priority }) => priority === 8).length;
    }
    // Of 180, 160 are expected; the standard deviation is about 4.
    expect(heavyOnes).toBeGreaterThan(140);
    expect(heavyOnes).toBeLessThan(177);
  });

  test('weighted_random gives a priority of 0 the chance of 1, and lets none starve while others keep coming', async () => {
    await scene.store.sources.setUp('default', { order: 'weighted_random' });
    const worker = await scene.join();
    const light = await scene.enqueue(...Array.from({ length: 5 }, () => ({ priority: 0, source: 'light' })));
    const batch = Array.from({ length: 40 }, (_, n) => ({ priority: 8, source: `heavy-${n % 3}` }));
    await scene.enqueue(...batch);

    const waiting = new Set(light);
    for (let round = 0; round < 120 && waiting.size > 0; round += 1) {
      scene.advance(10);
      await scene.enqueue(...batch);
      const claimed = await scene.claim(worker, { limit: 40 });
      for (const { lease } of claimed) waiting.delete(lease.task);
      await scene.store.tasks.settle(
        claimed.map(({ lease, revision }) => ({
          lease,
          revision,
          decision: succeeded(),
          report: { ranFor: 1, outcome: 'success' },
        })),
      );
    }
    expect([...waiting]).toEqual([]);
  });

  test('weighted_random gives each task once, and every one', async () => {
    await scene.store.sources.setUp('default', { order: 'weighted_random' });
    const ids = await scene.enqueue(
      ...Array.from({ length: 60 }, (_, n) => ({ priority: n % 9, source: `s${n % 4}` })),
    );
    const worker = await scene.join();

    const claimed: number[] = [];
    for (let round = 0; round < 10; round += 1) claimed.push(...idsOf(await scene.claim(worker, { limit: 6 })));
    expect(claimed.toSorted((a, b) => a - b)).toEqual(ids);
    expect(claimed).not.toEqual(ids);
  });
}

function promisesOfFilters(scene: Scene): void {
  test('never touches a task whose type the worker does not know', async () => {
    const worker = await scene.join();
    const unknown = await scene.enqueue(...Array.from({ length: 100 }, () => ({ type: 'new' })));
    const [known] = await scene.enqueue({ type: 'old' });

    expect(idsOf(await scene.claim(worker, { types: ['old', 'never-seen'] }))).toEqual([known]);
    expect(await scene.claim(worker, { types: [] })).toEqual([]);
    const records = await scene.store.records.list({ types: ['new'], limit: 1_000 });
    expect(records).toHaveLength(unknown.length);
    for (const record of records) expect(record).toMatchObject({ state: 'ready', executions: 0, charged: [] });
    expect(await scene.claim(worker, { types: ['new'] })).toHaveLength(100);
  });

  test('gives only tasks of the queues that were named', async () => {
    const worker = await scene.join();
    const [a, , c] = await scene.enqueue({ queue: 'a' }, { queue: 'b' }, { queue: 'c' });

    const claimed = await scene.claim(worker, { queues: ['a', 'c', 'never-seen'] });
    expect(idsOf(claimed).sort()).toEqual([a, c].sort());
    expect(await scene.claim(worker, { queues: [] })).toEqual([]);
  });

  test('gives only tasks of the categories that were named, and any without such a filter', async () => {
    const worker = await scene.join();
    const [x, y, none] = await scene.enqueue({ category: 'x' }, { category: 'y' }, {});

    expect(idsOf(await scene.claim(worker, { categories: ['x', 'never-seen'] }))).toEqual([x]);
    expect(await scene.claim(worker, { categories: [] })).toEqual([]);
    expect(idsOf(await scene.claim(worker))).toEqual([y, none]);
  });

  const needs: readonly (Needs | undefined)[] = [
    undefined,
    {},
    { cpu: 4 },
    { cpu: 8 },
    { cpu: 4, gpu: 'RTX5090' },
    { gpu: 'A100' },
    { ssd: true },
    { ssd: false },
    { cpu: '4' },
    { cpu: -1 },
    { cpu: 1.5 },
    { toString: 'x' },
    { constructor: true },
    { 'it’s "quoted"; --': 'ünï' },
  ];
  const offers: readonly Needs[] = [
    {},
    { cpu: 4 },
    { cpu: 16, gpu: 'RTX5090' },
    { cpu: 3, ssd: true },
    { ssd: false, gpu: 'A100' },
    { cpu: '4' },
    { cpu: 0, toString: 'x', constructor: true },
    { 'it’s "quoted"; --': 'ünï', extra: 1 },
  ];

  test.each(offers)('gives a worker that offers %o the tasks whose needs it meets, and no others', async (offer) => {
    const worker = await scene.join();
    const ids = await scene.enqueue(...needs.map((each) => (each ? { needs: each } : {})));

    const claimed = await scene.claim(worker, { capabilities: offer });

    expect(idsOf(claimed)).toEqual(ids.filter((_, n) => meets(offer, needs[n] ?? {})));
  });

  test('applies all filters together', async () => {
    const worker = await scene.join();
    const whole = { type: 'a', queue: 'q', category: 'c', needs: { cpu: 2 } };
    const [wanted] = await scene.enqueue(
      whole,
      { ...whole, type: 'b' },
      { ...whole, queue: 'r' },
      { ...whole, category: 'd' },
      { ...whole, needs: { cpu: 3 } },
    );

    const filter = { types: ['a'], queues: ['q'], categories: ['c'], capabilities: { cpu: 2 } };
    expect(idsOf(await scene.claim(worker, filter))).toEqual([wanted]);
  });

  test('gives only the tasks with the requested ids, if they are ready and match', async () => {
    const worker = await scene.join();
    const [a, b, scheduled, held, other] = (await scene.enqueue({}, {}, { delay: 1_000 }, {}, { type: 'other' })) as [
      number,
      number,
      number,
      number,
      number,
    ];
    await scene.move(held, { verb: 'hold' });

    const only = [b, scheduled, held, other, 999_999];
    expect(idsOf(await scene.claim(worker, { only, types: ['mail'] }))).toEqual([b]);
    expect(await scene.claim(worker, { only })).toHaveLength(1);
    expect(await scene.claim(worker, { only: [] })).toEqual([]);
    expect(await scene.claim(worker, { only: [b] })).toEqual([]);
    scene.advance(1_000);
    expect(idsOf(await scene.claim(worker, { only: [scheduled] }))).toEqual([scheduled]);
    expect(idsOf(await scene.claim(worker))).toEqual([a]);
  });

  test('skips tasks that still run in the claiming process, and takes the next ones', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue({}, {}, { source: 'b' }, {}, {});
    const [first, second, third, fourth, fifth] = ids as [number, number, number, number, number];

    expect(idsOf(await scene.claim(worker, { except: [first, third, 999_999], limit: 2 }))).toEqual([second, fourth]);
    expect(await scene.claim(worker, { only: [first], except: [first] })).toEqual([]);
    expect(idsOf(await scene.claim(worker))).toEqual([first, third, fifth]);
  });

  test('passes over an excepted task that falls due with the claim', async () => {
    const worker = await scene.join();
    const [first, second] = (await scene.enqueue({ delay: 1_000 }, { delay: 1_000 })) as [number, number];
    scene.advance(1_000);

    expect(idsOf(await scene.claim(worker, { except: [first] }))).toEqual([second]);
    expect(idsOf(await scene.claim(worker))).toEqual([first]);
  });
}

function promisesOfSuspects(scene: Scene): void {
  /** Tasks that were lost with their worker, so often in a row. */
  async function suspects(lostInARow: number, ...tasks: Partial<NewTask>[]): Promise<number[]> {
    const worker = await scene.join('fated');
    const ids = await scene.enqueue(...tasks);
    for (const claimed of await scene.claim(worker, { only: ids })) {
      await scene.settle(claimed, lost('free', lostInARow));
    }
    scene.advance(1);
    return ids;
  }

  test('gives as many as were asked for, and everything else', async () => {
    const worker = await scene.join();
    const suspected = await suspects(1, { source: 'a' }, { source: 'b' }, { type: 'move' }, { queue: 'other' });
    const [clean] = await scene.enqueue({});

    const claimed = await scene.claim(worker, { suspects: 2 });

    expect(claimed).toHaveLength(3);
    expect(idsOf(claimed)).toContain(clean);
    const among = claimed.filter(({ facts }) => facts.lostInARow === 1).map(({ lease }) => lease.task);
    expect(among).toHaveLength(2);
    for (const id of among) expect(suspected).toContain(id);
    expect(await scene.claim(worker, { suspects: 1 })).toHaveLength(1);
    expect(await scene.claim(worker, { suspects: 100 })).toHaveLength(1);
  });

  test('gives no suspect to a claim that wants none, but the tasks after it', async () => {
    const worker = await scene.join();
    const [suspect] = (await suspects(1, {})) as [number];
    const clean = await scene.enqueue({}, {});

    expect(idsOf(await scene.claim(worker, { suspects: 0 }))).toEqual(clean);
    expect(await scene.claim(worker, { suspects: 0, only: [suspect] })).toEqual([]);
    expect(idsOf(await scene.claim(worker))).toEqual([suspect]);
  });

  test('keeps their place in the queue’s order', async () => {
    const worker = await scene.join();
    const [before] = await scene.enqueue({});
    const [first, second] = await suspects(1, {}, { source: 'b' });
    const [after] = await scene.enqueue({});

    expect(idsOf(await scene.claim(worker, { limit: 2 }))).toEqual([before, first]);
    expect(idsOf(await scene.claim(worker, { limit: 2 }))).toEqual([second, after]);
  });

  test.each([1, 2, 3])('gives at most as many of several that are alike: %i', async (most) => {
    const worker = await scene.join();
    const ids = await suspects(1, {}, {}, {}, {});

    expect(idsOf(await scene.claim(worker, { suspects: most }))).toEqual(ids.slice(0, most));
    expect(idsOf(await scene.claim(worker, { suspects: most }))).toEqual(ids.slice(most, 2 * most));
  });

  test('gives at most as many that were asked for by id', async () => {
    const worker = await scene.join();
    const ids = await suspects(1, {}, {}, {});
    expect(await scene.claim(worker, { only: ids, suspects: 2 })).toHaveLength(2);
  });

  test('gives a suspect that must run alone as the only task, to a claim that accepts one', async () => {
    const worker = await scene.join();
    const [apart, other] = (await suspects(2, {}, {})) as [number, number];
    const behind = await scene.enqueue({}, {});

    expect(idsOf(await scene.claim(worker, { alone: false }))).toEqual(behind);
    expect(idsOf(await scene.claim(worker, { suspects: 0 }))).toEqual([apart]);
    expect(await scene.claim(worker, { alone: false })).toEqual([]);
    expect(await scene.claim(worker, { alone: false, only: [other] })).toEqual([]);
    expect(idsOf(await scene.claim(worker, { only: [other] }))).toEqual([other]);
  });

  test('gives a suspect that must run alone in its order: earlier tasks come first, without it', async () => {
    const worker = await scene.join();
    const before = await scene.enqueue({}, { source: 'b' });
    scene.advance(1);
    const [apart] = await suspects(3, {});
    const [after] = await scene.enqueue({});

    expect(idsOf(await scene.claim(worker))).toEqual([...before, after]);
    expect(idsOf(await scene.claim(worker))).toEqual([apart]);
  });

  test('a task that must run alone is the only task of its claim in a fair queue too', async () => {
    await scene.store.sources.setUp('default', { fair: true });
    const worker = await scene.join();
    const [apart] = await suspects(2, {});
    const behind = await scene.enqueue({}, {});

    expect(idsOf(await scene.claim(worker, { alone: false }))).toEqual(behind);
    await scene.enqueue({});
    const both = [idsOf(await scene.claim(worker)), idsOf(await scene.claim(worker))];
    expect(both.map(({ length }) => length)).toEqual([1, 1]);
    expect(both.flat()).toContain(apart);
  });

  test.each(['lifo', 'priority', 'weighted_random'] as const)('keeps them apart in a %s queue too', async (order) => {
    await scene.store.sources.setUp('default', { order });
    const worker = await scene.join();
    const ids = await suspects(1, {}, {});
    const [apart] = await suspects(2, {});

    expect(ids).toContain(idsOf(await scene.claim(worker, { alone: false }))[0]);
    expect(await scene.claim(worker, { suspects: 0, alone: false })).toEqual([]);
    expect(idsOf(await scene.claim(worker, { suspects: 0 }))).toEqual([apart]);
  });

  test('claims none of them ahead', async () => {
    const worker = await scene.join();
    await scene.enqueue({});
    scene.advance(1);
    await suspects(1, {});
    await suspects(2, {});
    const ahead = { limit: 10, types: ['mail'] };
    expect(await scene.claim(worker, { limit: 1, suspects: 5, ahead })).toHaveLength(1);
  });

  test.each([
    ['one', false, 1],
    ['one in a fair queue', true, 1],
    ['one that must run alone', false, 2],
    ['one that must run alone in a fair queue', true, 2],
  ])('claims nothing ahead behind %s that the worker may be given later', async (_, fair, lostInARow) => {
    await scene.store.sources.setUp('default', { fair });
    const worker = await scene.join();
    const [suspect] = await suspects(lostInARow, {});
    scene.advance(1);
    const behind = await scene.enqueue({}, {});
    const ahead = { limit: 10, types: ['mail'] };

    expect(await scene.claim(worker, { limit: 0, ahead })).toEqual([]);
    expect(idsOf(await scene.claim(worker, { limit: 0, suspects: 0, alone: false, ahead }))).toEqual(behind);
    expect(idsOf(await scene.claim(worker, { limit: 1, ahead }))).toEqual([suspect]);
  });
}

function promisesOfPlaces(scene: Scene): void {
  /** Claims one task after another; each fails, to be tried again at once. */
  async function runFailing(worker: number, times: number): Promise<number[]> {
    const ran: number[] = [];
    for (let n = 0; n < times; n += 1) {
      const [claimed] = await scene.claim(worker, { limit: 1 });
      if (!claimed) break;
      ran.push(claimed.lease.task);
      scene.advance(1);
      await scene.settle(claimed, retryIn(0));
    }
    return ran;
  }

  test.each(['fifo', 'lifo', 'priority'] as const)(
    'runs nothing twice before what is ready and has not run: %s',
    async (order) => {
      await scene.store.sources.setUp('default', { order });
      const worker = await scene.join();
      const ids = await scene.enqueue(...Array.from({ length: 4 }, (_, n) => ({ source: `s${n % 2}` })));
      const right = order === 'lifo' ? ids.toReversed() : ids;

      expect(await runFailing(worker, 8)).toEqual([...right, ...right]);
    },
  );

  test('puts a retry between tasks submitted before its last start and later ones', async () => {
    const worker = await scene.join();
    const [first] = (await scene.enqueue({})) as [number];
    const before = await scene.enqueueOne();
    scene.advance(1);
    const claimed = await scene.claimTask(worker, first);
    const meanwhile = await scene.enqueueOne();
    scene.advance(1);
    const after = await scene.enqueueOne();
    await scene.settle(claimed, retryIn(0));

    expect(idsOf(await scene.claim(worker))).toEqual([before, meanwhile, first, after]);
  });

  test('goes by the last start also where the retry waited for its time, and keeps `submittedAt`', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const { submittedAt } = claimed;
    scene.advance(1);
    await scene.settle(claimed, retryIn(1_000));
    scene.advance(500);
    const later = await scene.enqueueOne();
    scene.advance(500);

    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task, later]);
    expect((await scene.find(claimed.lease.task)).submittedAt).toBe(submittedAt);
  });

  test('a task that was handed back before it began keeps its place', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const other = await scene.enqueueOne();
    await scene.settle(claimed, handedBack(), { report: UNBEGUN });

    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task, other]);
  });

  test('keeps the priority of a task that has run', async () => {
    await scene.store.sources.setUp('default', { order: 'priority' });
    const worker = await scene.join();
    const high = await scene.start(worker, { priority: 4_095 });
    const low = await scene.enqueueOne({ priority: 4_094 });
    scene.advance(1);
    await scene.settle(high, retryIn(0));

    expect(idsOf(await scene.claim(worker))).toEqual([high.lease.task, low]);
  });

  test('keeps the place of a task that has run when its queue gets another order', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const other = await scene.enqueueOne();
    scene.advance(1);
    await scene.settle(claimed, retryIn(0));
    await scene.store.sources.setUp('default', { order: 'lifo' });
    await scene.store.sources.setUp('default', { order: 'fifo' });

    expect(idsOf(await scene.claim(worker))).toEqual([other, claimed.lease.task]);
  });

  test('gives a new round of a task the place of its submission', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    scene.advance(1);
    const other = await scene.enqueueOne();
    await scene.settle(claimed, ended('dead'));
    await scene.move(claimed.lease.task, { verb: 'retry' });

    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task, other]);
  });
}

function promisesOfSecondRuns(scene: Scene): void {
  const unsaid = (): NewTask => {
    const { idempotent: _, ...task } = newTask();
    return task;
  };
  const enqueueUnsaid = async (): Promise<number> => {
    const [receipt] = await scene.store.tasks.enqueue([unsaid()]);
    return receipt?.id as number;
  };

  test('stores with the claim that a type must not run twice, where nobody has said it', async () => {
    const worker = await scene.join();
    const id = await enqueueUnsaid();
    const [claimed] = await scene.claim(worker, { notIdempotent: ['other', 'mail'] });

    expect(claimed).toMatchObject({ facts: { idempotent: false } });
    expect(claimed).not.toHaveProperty('idempotenceUnsaid');
    expect((await scene.find(id)).idempotent).toBe(false);
    await scene.store.tasks.leave(worker);
    expect(await scene.recover(await scene.join('bob'))).toMatchObject([{ facts: { idempotent: false } }]);
  });

  test('does not change a stored value, nor tasks of other types', async () => {
    const worker = await scene.join();
    const [said] = await scene.enqueue({ idempotent: true });
    const other = await enqueueUnsaid();
    expect(await scene.claim(worker, { only: [said as number], notIdempotent: ['mail'] })).toMatchObject([
      { facts: { idempotent: true } },
    ]);
    expect(await scene.claim(worker, { only: [other], notIdempotent: ['move'] })).toMatchObject([
      { facts: { idempotent: true }, idempotenceUnsaid: true },
    ]);
  });

  test('stores it of a lease afterwards, and not of one that is gone', async () => {
    const worker = await scene.join();
    const [one, two] = [await enqueueUnsaid(), await enqueueUnsaid()];
    const claimed = await scene.claim(worker);
    const [first, second] = claimed.map(({ lease }) => lease) as [Claimed['lease'], Claimed['lease']];
    await scene.store.tasks.forbidSecondRun([first, { ...second, token: 'forged' }]);
    await scene.store.tasks.forbidSecondRun([]);

    expect((await scene.find(one)).idempotent).toBe(false);
    expect((await scene.find(two)).idempotent).toBe(true);
    await scene.settle(claimed[0] as Claimed, retryIn(0));
    expect(await scene.claimTask(worker, one)).toMatchObject({ facts: { idempotent: false } });
  });

  test('does not override the value of the enqueue', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker, { idempotent: true });
    await scene.store.tasks.forbidSecondRun([claimed.lease]);
    expect((await scene.find(claimed.lease.task)).idempotent).toBe(true);
  });
}
