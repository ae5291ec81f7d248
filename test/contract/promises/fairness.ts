import { describe, expect, test } from 'vitest';
import type { Claimed, ClaimRequest, NewTask } from '../../../src/store/store.ts';
import type { QueueOrder } from '../../../src/task.ts';
import { claimRequest, handedBack, idsOf, type StoreFactory, succeeded, UNBEGUN, useScene } from '../scene.ts';

/** What a fair queue means: its sources are served in turn, and its order holds inside each of them. */
export function promisesOfFairness(factory: StoreFactory): void {
  const scene = useScene(factory);
  const many = (count: number, task: Partial<NewTask>) => Array.from({ length: count }, () => task);
  const beFair = (fair = true) => scene.store.sources.setUp('default', { fair });
  const sourcesOf = (claimed: readonly Claimed[]) => claimed.map(({ source }) => source).join('');

  /** The sources of the next tasks, in the order in which they are given. */
  async function next(worker: number, count: number, request: Partial<ClaimRequest> = {}): Promise<string> {
    return sourcesOf(await scene.claim(worker, { ...request, limit: count }));
  }

  test.each([1, 4, 100])('serves the sources in turn, however many tasks one has, %i at a time', async (limit) => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue(...many(300, { source: 'A' }), ...many(3, { source: 'b' }), ...many(1, { source: 'c' }));

    let given = '';
    while (given.length < 8) given += await next(worker, limit);
    expect(given.slice(0, 8)).toBe('AbcAbAbA');
  });

  test('keeps the exact order over all sources unless it is asked for fairness', async () => {
    const worker = await scene.join();
    await scene.enqueue(...many(3, { source: 'A' }), { source: 'b' });

    expect(await next(worker, 4)).toBe('AAAb');
    expect(await scene.store.records.queues()).toMatchObject([{ name: 'default', order: 'fifo', fair: false }]);
  });

  test.each<[QueueOrder, string]>([
    ['fifo', '012'],
    ['lifo', '210'],
    ['priority', '102'],
  ])('holds the order inside each source, over its types and categories: %s', async (order, expected) => {
    await scene.store.sources.setUp('default', { order, fair: true });
    const worker = await scene.join();
    const ids = await scene.enqueue(
      ...['a', 'b'].flatMap((source) => [
        { source, type: 'mail', category: 'x' },
        { source, type: 'move', priority: 1 },
        { source, type: 'mail' },
      ]),
    );

    const claimed = idsOf(await scene.claim(worker));
    const places = (first: number) => claimed.map((id) => ids.indexOf(id) - first).filter((n) => n >= 0 && n < 3);
    expect([places(0).join(''), places(3).join('')]).toEqual([expected, expected]);
  });

  test('takes no turn from a source for a task that was claimed by its number', async () => {
    await beFair();
    const worker = await scene.join();
    const [, second] = await scene.enqueue(...many(3, { source: 'A' }), ...many(2, { source: 'b' }));
    await scene.claimTask(worker, second as number);

    expect(await next(worker, 3)).toBe('AbA');
  });

  test('continues with the next source if the one with the turn has no task left', async () => {
    await beFair();
    const worker = await scene.join();
    const [first] = await scene.enqueue({ source: 'a' }, { source: 'b' }, { source: 'c' });
    await scene.move(first as number, { verb: 'cancel' });

    expect(await next(worker, 2)).toBe('bc');
  });

  test.each([
    ['were cancelled', true],
    ['were claimed by id', false],
  ])('goes on behind very many sources whose tasks %s', async (_, areCancelled) => {
    await beFair();
    const worker = await scene.join();
    const gone = await scene.enqueue(...Array.from({ length: 1_200 }, (_, n) => ({ source: `s${n}` })));
    const behind = await scene.enqueue({ source: 'a' }, { source: 'b' });
    if (areCancelled) await scene.store.tasks.move(gone, { verb: 'cancel', actor: 'eva' });
    else await scene.claim(worker, { only: gone, limit: gone.length });

    expect(idsOf(await scene.claim(worker, { limit: 1 }))).toEqual(behind.slice(0, 1));
    expect(idsOf(await scene.claim(worker, { limit: 1 }))).toEqual(behind.slice(1));
  });

  test('gives a source with more types no more turns', async () => {
    await beFair();
    const worker = await scene.join();
    const types = ['one', 'two', 'three'].flatMap((type) => many(3, { source: 'A', type }));
    await scene.enqueue(...types, ...many(6, { source: 'b' }));

    expect(await next(worker, 10)).toBe('AbAbAbAbAb');
  });

  test('counts what a source was given of one type also for the workers of another', async () => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue({ source: 'A', type: 'one' }, { source: 'A', type: 'two' }, { source: 'b', type: 'two' });

    expect(await next(worker, 1, { types: ['one'] })).toBe('A');
    expect(await next(worker, 2, { types: ['two'] })).toBe('bA');
  });

  test('serves in turn those sources that a filter leaves', async () => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue(...['A', 'b', 'c'].flatMap((source) => many(2, { source, type: source === 'b' ? 'b' : 'x' })));

    expect(await next(worker, 3, { types: ['x'] })).toBe('AcA');
    expect(await next(worker, 3)).toBe('bcb');
  });

  test('a new source gets the last turn, and a source that comes back keeps its turn', async () => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue({ source: 'A' }, ...many(9, { source: 'b' }), ...many(9, { source: 'c' }));
    expect(await next(worker, 4)).toBe('Abcb');
    await scene.enqueue(...many(2, { source: 'N' }), ...many(2, { source: 'A' }));

    expect(await next(worker, 4)).toBe('AcbN');
  });

  test.each([
    ['its queue was set up anew', () => scene.store.sources.setUp('default', { order: 'priority' })],
    [
      'it was held and released',
      async () => {
        await scene.store.sources.hold('new', { actor: 'eva' });
        await scene.store.sources.release('new');
      },
    ],
  ])(
    'sends a source whose first task is not due yet to the back of the line once it is due, also after %s',
    async (_, change) => {
      await beFair();
      const worker = await scene.join();
      await scene.enqueue({ source: 'A' }, { source: 'new', delay: 1 });
      expect(await next(worker, 1)).toBe('A');

      await change();
      await scene.world.clock.advance(1);
      await scene.enqueue({ source: 'A' });

      expect(await next(worker, 2)).toBe('Anew');
    },
  );

  test('starves no source while new ones come without end', async () => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue(...many(2, { source: 'A' }), { source: 'b' });
    let given = '';
    for (let n = 0; n < 10; n += 1) {
      await scene.enqueue({ source: String(n) }, { source: `${n}, too` });
      given += await next(worker, 1);
    }
    expect(given.startsWith('Ab')).toBe(true);
    expect(given.match(/A/g)).toHaveLength(2);
  });

  test('keeps a source’s turn during a hold, and puts tasks that were handed back into their order', async () => {
    await beFair();
    const worker = await scene.join();
    const [first] = await scene.enqueue(...many(3, { source: 'A' }), ...many(3, { source: 'b' }));
    const [claimed] = await scene.claim(worker, { limit: 1 });
    await scene.store.sources.hold('b', { actor: 'eva' });
    expect(await next(worker, 1)).toBe('A');
    await scene.settle(claimed as Claimed, handedBack(), { report: UNBEGUN });
    await scene.store.sources.release('b');

    const rest = await scene.claim(worker);
    expect(sourcesOf(rest)).toBe('bAbAb');
    expect(idsOf(rest.filter(({ source }) => source === 'A'))[0]).toBe(first);
  });

  test('gives up to four tasks a turn where more than a thousand sources wait', async () => {
    await beFair();
    const worker = await scene.join();
    const sources = Array.from({ length: 1_010 }, (_, n) => `s${n}`);
    await scene.enqueue(...sources.flatMap((source) => many(source === 's1' ? 2 : 5, { source })));

    const claimed = await scene.claim(worker, { limit: 10 });
    expect(claimed.map(({ source }) => source)).toEqual(['s0', 's0', 's0', 's0', 's1', 's1', 's2', 's2', 's2', 's2']);
  });

  test('is set and taken back while tasks wait, and touches no other queue', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue(...many(4, { source: 'A' }), ...many(4, { source: 'b' }));
    const others = await scene.enqueue(...many(2, { source: 'A', queue: 'x' }), { source: 'b', queue: 'x' });
    await beFair();
    const first = await scene.claim(worker, { limit: 3, queues: ['default'] });
    expect(sourcesOf(first)).toBe('AbA');
    await beFair(false);

    const left = ids.filter((id) => !idsOf(first).includes(id));
    expect(idsOf(await scene.claim(worker, { queues: ['default'] }))).toEqual(left);
    expect(idsOf(await scene.claim(worker))).toEqual(others);
  });

  test('the turns begin again when fairness is set again', async () => {
    const worker = await scene.join();
    await beFair();
    await scene.enqueue(...many(3, { source: 'A' }), ...many(2, { source: 'b' }));
    expect(await next(worker, 1)).toBe('A');
    await beFair(false);
    await beFair();

    expect(await next(worker, 4)).toBe('AbAb');
  });

  test('keeps the turns when the queue’s order changes', async () => {
    const worker = await scene.join();
    await beFair();
    const ids = await scene.enqueue(...many(3, { source: 'A' }), ...many(3, { source: 'b' }));
    expect(await next(worker, 1)).toBe('A');
    await scene.store.sources.setUp('default', { order: 'lifo' });

    const rest = await scene.claim(worker, { limit: 3 });
    expect(idsOf(rest)).toEqual([ids[5], ids[2], ids[4]]);
    expect(await scene.store.records.queues()).toMatchObject([{ order: 'lifo', fair: true }]);
  });

  test('claims ahead in turn, until the next one is of another type', async () => {
    await beFair();
    const worker = await scene.join();
    await scene.enqueue(...many(9, { source: 'A' }), ...many(9, { source: 'b' }), { source: 'c', type: 'other' });

    expect(await next(worker, 2, { ahead: { limit: 5, types: ['mail'] } })).toBe('Ab');
    expect(await next(worker, 1)).toBe('c');
    expect(await next(worker, 2, { ahead: { limit: 3, types: ['mail'] } })).toBe('AbAbA');
  });

  describe.runIf(factory.openSecond)('in several processes', () => {
    test('is one line for all of them', async () => {
      const second = await scene.openSecond();
      const there = await second.tasks.join({ name: 'there', leaseFor: 30_000, publishes: {} });
      const here = await scene.join();
      await second.tasks.claim(claimRequest(there));
      await beFair();
      await scene.enqueue(...many(20, { source: 'A' }), ...many(3, { source: 'b' }), ...many(3, { source: 'c' }));

      let given = '';
      for (let n = 0; n < 4; n += 1) {
        given += await next(here, 1);
        const { tasks } = await second.tasks.claim(claimRequest(there, { limit: 1 }));
        given += sourcesOf(tasks);
        await second.tasks.settle(
          tasks.map(({ lease, revision }) => ({
            lease,
            revision,
            decision: succeeded(),
            report: { ranFor: 1, outcome: 'success' },
          })),
        );
      }
      expect(given).toBe('AbcAbcAb');
    });
  });
}
