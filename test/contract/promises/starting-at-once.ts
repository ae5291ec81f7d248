import { expect, test } from 'vitest';
import type { Claimed, ClaimRequest, NewTask } from '../../../src/store/store.ts';
import { idsOf, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

const eva = { actor: 'eva' };

/**
 * A worker that is idle when tasks are enqueued in its process claims them in the transaction that records them. A store may write
 * them as running from the start, which nothing but its speed may show.
 */
export function promisesOfStartingAtOnce(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** A worker that ran a first task of its kind, and has nothing to do. */
  async function idle(task: Partial<NewTask> = {}): Promise<number> {
    const worker = await scene.join();
    await scene.settle(await scene.start(worker, task), succeeded());
    expect(await scene.claim(worker)).toEqual([]);
    return worker;
  }

  /** Enqueues tasks, and claims in the same turn. */
  async function enqueueAndClaim(
    worker: number,
    tasks: readonly Partial<NewTask>[],
    request: Partial<ClaimRequest> = {},
  ) {
    let claiming: Promise<readonly Claimed[]> | undefined;
    const stop = scene.store.upkeep.onNews(() => {
      // A worker is told of it while it is called, and asks in the same turn.
      claiming ??= Promise.resolve().then(() => scene.claim(worker, request));
    });
    const ids = await scene.enqueue(...tasks);
    stop();
    return { ids, claimed: (await claiming) ?? [] };
  }

  test('gives an idle worker what is enqueued, with all that a claim gives', async () => {
    const worker = await idle();
    const { ids, claimed } = await enqueueAndClaim(worker, [
      { payload: '1', priority: 7, submittedAt: scene.now() - 5_000 },
      { payload: '2' },
    ]);
    expect(idsOf(claimed)).toEqual(ids);
    expect(claimed[0]).toMatchObject({ payload: '1', priority: 7, submittedAt: scene.now() - 5_000, revision: 0 });
    expect(claimed[0]?.lease).toMatchObject({ execution: 1 });
    expect(claimed[0]?.facts).toEqual((await claimUsually(worker, claimed[0] as Claimed))?.facts);
    expect(await scene.find(ids[1] as number)).toMatchObject({
      state: 'running',
      executions: 1,
      running: { worker: 'alice', since: scene.now() },
    });
    const leases = claimed.map(({ lease }) => lease);
    expect((await scene.store.tasks.renew(worker, leases)).lost).toEqual([]);
    for (const each of claimed) expect(await scene.settle(each, succeeded())).toMatchObject({ answer: 'settled' });
    expect(await scene.claim(worker)).toEqual([]);
  });

  /** What a claim of its own answers for a task that is like this one. */
  async function claimUsually(worker: number, { priority, submittedAt }: Claimed) {
    const other = await scene.start(worker, { payload: '1', priority, submittedAt });
    await scene.settle(other, succeeded());
    return other;
  }

  test('lets it wait, fail and be retried as any other', async () => {
    const worker = await idle();
    const { claimed, ids } = await enqueueAndClaim(worker, [{}]);
    await scene.settle(claimed[0] as Claimed, retryIn(60_000));
    expect(await scene.find(ids[0] as number)).toMatchObject({
      state: 'scheduled',
      executions: 1,
      charged: [{ count: 1 }],
    });
    scene.advance(60_000);
    const [again] = await scene.claim(worker);
    expect(again).toMatchObject({ lease: { task: ids[0], execution: 2 } });
    await scene.move(ids[0] as number, { verb: 'cancel' });
    expect((await scene.renew(worker)).cancelled).toHaveLength(1);
  });

  test('lets others take it over when its worker is lost', async () => {
    const worker = await idle();
    const { ids } = await enqueueAndClaim(worker, [{}]);
    const recovered = await scene.recoverAfterSilence(await scene.join('bob'));
    expect(recovered.map(({ lease }) => lease.task)).toEqual(ids);
  });

  test('starts no task before one that is ready already', async () => {
    const worker = await idle();
    const earlier = await scene.enqueueOne({ source: 'other' });
    const { ids, claimed } = await enqueueAndClaim(worker, [{}], { limit: 1 });
    expect(idsOf(claimed)).toEqual([earlier]);
    expect(idsOf(await scene.claim(worker))).toEqual(ids);
  });

  test('starts no task before one that is due now', async () => {
    const worker = await idle();
    const earlier = await scene.enqueueOne({ delay: 1_000 });
    scene.advance(1_000);
    const { ids, claimed } = await enqueueAndClaim(worker, [{ idempotent: true, priority: 9 }], { limit: 1 });
    expect(idsOf(claimed)).toEqual([earlier]);
    expect(idsOf(await scene.claim(worker))).toEqual(ids);
  });

  test('starts as many as the worker has slots for', async () => {
    const worker = await idle();
    const { ids, claimed } = await enqueueAndClaim(worker, [{}, {}], { limit: 1 });
    expect(idsOf(claimed)).toEqual(ids.slice(0, 1));
    expect(idsOf(await scene.claim(worker, { limit: 5 }))).toEqual(ids.slice(1));
  });

  test.each<[string, Partial<ClaimRequest>]>([
    ['another type', { types: ['other'] }],
    ['another queue', { queues: ['other'] }],
    ['another category', { categories: ['other'] }],
    ['no such task', { only: [1] }],
  ])('starts nothing for a worker that takes %s', async (_, request) => {
    const worker = await idle({ category: 'mail' });
    const { ids, claimed } = await enqueueAndClaim(worker, [{ category: 'mail' }], request);
    expect(claimed).toEqual([]);
    expect(await scene.stateOf(ids[0] as number)).toBe('ready');
  });

  test('starts nothing of a paused queue or a held source', async () => {
    const worker = await idle();
    await scene.store.sources.pause('default', eva);
    expect((await enqueueAndClaim(worker, [{}])).claimed).toEqual([]);
    await scene.store.sources.resume('default');
    expect(await scene.claim(worker, { limit: 9 })).toHaveLength(1);
    await scene.store.sources.hold('mail', eva);
    expect((await enqueueAndClaim(worker, [{ source: 'mail' }])).claimed).toEqual([]);
  });

  test('starts it while another queue is paused', async () => {
    const worker = await idle();
    await scene.enqueueOne({ queue: 'other' });
    await scene.store.sources.pause('other', eva);
    const { ids, claimed } = await enqueueAndClaim(worker, [{}]);
    expect(idsOf(claimed)).toEqual(ids);
  });

  test('counts it against the limit of its queue and of its source', async () => {
    const worker = await idle();
    await scene.store.sources.limit('mail', { concurrency: 1 }, { ...eva, origin: 'person' });
    await idle({ source: 'mail' });
    const two = [1, 2].map(() => ({ source: 'mail' }));
    expect((await enqueueAndClaim(worker, two, { limit: 5 })).claimed).toHaveLength(1);
  });

  test('frees a unique key that it has while it waits', async () => {
    const worker = await idle();
    const unique = { key: 'one', while: 'waiting', onConflict: 'ignore' } as const;
    const { ids } = await enqueueAndClaim(worker, [{ unique }]);
    expect(await scene.enqueueOne({ unique })).not.toBe(ids[0]);
  });
}
