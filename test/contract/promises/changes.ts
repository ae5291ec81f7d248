import { expect, test } from 'vitest';
import { CHANGES_KEPT_FOR_MS } from '../../../src/store/changes.ts';
import { retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';
import { from } from '../source-scene.ts';

const eva = { actor: 'eva', note: 'the host is down' };
const DOWN = JSON.stringify({ change: 'condition', to: 'down', reason: 'net.refused' });
const NORMAL = JSON.stringify({ change: 'condition', to: 'normal' });

/** What stores record of the changes of sources and queues. */
export function promisesOfChanges(factory: StoreFactory): void {
  const scene = useScene(factory);
  const changes = (filter: object = {}) => scene.store.records.changes({ limit: 100, ...filter });

  test('are recorded with the settlement that makes them, newest first', async () => {
    const worker = await scene.join();
    const [first, second] = [await scene.start(worker), await scene.start(worker)];
    const at = scene.now();
    await scene.settle(first, retryIn(1_000), { source: from(0, { memory: 'down', facts: DOWN }) });
    scene.advance(5_000);
    const { revision } = (await scene.store.sources.state(first.source)) as { revision: number };
    await scene.settle(second, succeeded(), {
      source: { revision, change: { tokens: 0, refunds: [], facts: NORMAL } },
    });

    expect(await changes()).toEqual([
      { id: expect.any(Number), at: at + 5_000, kind: 'source', name: first.source, change: 'condition', to: 'normal' },
      {
        id: expect.any(Number),
        at,
        kind: 'source',
        name: first.source,
        change: 'condition',
        to: 'down',
        reason: 'net.refused',
      },
    ]);
  });

  test('are not recorded by a settlement that is not written', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.store.sources.change(claimed.source, from(0, { memory: 'new' }));

    const answer = await scene.settle(claimed, retryIn(1_000), { source: from(0, { memory: 'down', facts: DOWN }) });
    expect(answer).toMatchObject({ answer: 'changed' });
    expect(await changes()).toEqual([]);
  });

  test('name the person and the note of an action, which is recorded only if it has an effect', async () => {
    const { sources } = scene.store;
    await sources.hold('a', eva, 60_000);
    await sources.release('a', { actor: 'bob' });
    await sources.release('a', { actor: 'bob' });
    await sources.pause('mail', eva);
    await sources.pause('mail', { actor: 'bob' });
    await sources.resume('mail', { actor: 'bob' });
    await sources.resume('mail');
    await sources.limit('a', { concurrency: 3 }, { actor: 'config', origin: 'config' });
    await sources.limit('a', { pace: null, concurrency: 4 }, { ...eva, origin: 'person' });
    await sources.change('a', {
      revision: 0,
      change: { tokens: 0, refunds: [], facts: JSON.stringify({ change: 'probe', by: eva }) },
    });

    expect((await changes({ actions: true })).map(({ id: _, at: __, ...rest }) => rest)).toEqual([
      { kind: 'source', name: 'a', change: 'probe', by: eva },
      {
        kind: 'source',
        name: 'a',
        change: 'limit',
        by: { ...eva, origin: 'person' },
        limits: { pace: null, concurrency: 4 },
      },
      { kind: 'queue', name: 'mail', change: 'resume', by: { actor: 'bob' } },
      { kind: 'queue', name: 'mail', change: 'pause', by: eva },
      { kind: 'source', name: 'a', change: 'release', by: { actor: 'bob' } },
      { kind: 'source', name: 'a', change: 'hold', by: eva, heldForMs: 60_000 },
    ]);
  });

  test('are found by kind, name and time, a page at a time', async () => {
    const { sources } = scene.store;
    await sources.hold('a', eva);
    scene.advance(1_000);
    const since = scene.now();
    await sources.hold('b', eva);
    await sources.pause('a', eva);
    await sources.change('a', from(0, { memory: 'down', facts: DOWN }));

    const found = async (filter: object) => (await changes(filter)).map(({ kind, name }) => `${kind} ${name}`);
    expect(await found({})).toEqual(['source a', 'queue a', 'source b', 'source a']);
    expect(await found({ since })).toEqual(['source a', 'queue a', 'source b']);
    expect(await found({ kind: 'source' })).toEqual(['source a', 'source b', 'source a']);
    expect(await found({ kind: 'source', name: 'a', since })).toEqual(['source a']);
    expect(await found({ actions: true, since })).toEqual(['queue a', 'source b']);
    const [newest, next] = await changes({ limit: 2 });
    expect([newest?.kind, next?.kind]).toEqual(['source', 'queue']);
    expect(await found({ before: next?.id, limit: 1 })).toEqual(['source b']);
  });

  test('are forgotten after 30 days', async () => {
    await scene.store.sources.hold('a', eva);
    scene.advance(CHANGES_KEPT_FOR_MS);
    await scene.store.sources.hold('b', eva);
    while (await scene.store.upkeep.tidy());
    expect(await changes()).toHaveLength(2);
    scene.advance(1);
    while (await scene.store.upkeep.tidy());
    expect(await changes()).toEqual([expect.objectContaining({ name: 'b' })]);
  });
}
