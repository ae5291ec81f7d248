import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineTask, Failed, type Holdfast, immediate, openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { useKits } from '../worker/scene.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();

let holdfast: Holdfast;
const work = defineTask('work', { run() {} });
beforeAll(async () => {
  holdfast = await openHoldfast({ store: aStore(), tasks: [work] });
});
afterAll(() => holdfast.close());

const kits = useKits();

describe('a unique task', () => {
  test('is unique while it is unfinished, and answers those who come after, unless they say otherwise', async () => {
    const { id } = await holdfast.enqueue(work, 1, { unique: { key: 'defaults' } });

    expect(await holdfast.enqueue(work, 2, { unique: { key: 'defaults' } })).toEqual({
      id,
      created: false,
      state: 'ready',
    });
    expect(await holdfast.get(id)).toMatchObject({ input: 1, unique: { key: 'defaults', while: 'unfinished' } });
    const error = await refused(() =>
      holdfast.enqueue('work', 3, { unique: { key: 'defaults', onConflict: 'reject' } }),
    );
    expect(error).toMatchObject({ code: 'unique_conflict', task: id, type: 'work', key: 'defaults' });
    expect(error.message).toMatch(
      /^Task #\d+ of the type 'work' has the unique key 'defaults', so nothing was enqueued\./,
    );
    const replaced = await holdfast.enqueue(work, 4, { unique: { key: 'defaults', onConflict: 'replace' } });
    expect(replaced).toMatchObject({ created: true, replaced: id });
    expect(await holdfast.get(id)).toMatchObject({ state: 'cancelled', reason: 'unique.superseded' });
  });

  test('is one of many inputs by a function of each, which meet in their order', async () => {
    const receipts = await holdfast.enqueueAll(work, ['a', 'b', 'a'], (input) => ({ unique: { key: input } }));
    expect(receipts.map(({ created }) => created)).toEqual([true, true, false]);
    expect(receipts[2]?.id).toBe(receipts[0]?.id);

    const all = holdfast.enqueueAll(work, ['new', 'b'], (key) => ({ unique: { key, onConflict: 'reject' } }));
    await expect(all).rejects.toMatchObject({ code: 'unique_conflict', key: 'b', task: receipts[1]?.id });
    expect(await holdfast.enqueue(work, 1, { unique: { key: 'new' } })).toMatchObject({ created: true });
  });

  test('is not retried by hand beside another one, and says which', async () => {
    const { id: old } = await holdfast.enqueue(work, 1, { unique: { key: 'by hand' } });
    await holdfast.cancel(old);
    const { id } = await holdfast.enqueue(work, 2, { unique: { key: 'by hand' } });

    const error = await refused(() => holdfast.retry(old));
    expect(error).toMatchObject({ code: 'state_conflict', task: old, state: 'cancelled', occupiedBy: id });
    expect(error.message).toContain(`task #${id} has its unique key`);
  });

  test('gives way to a newer one when its worker would retry it, and the worker goes on', async () => {
    const seen: unknown[] = [];
    const sync = defineTask('sync', {
      retry: { maxAttempts: 9, backoff: immediate },
      async run(input: string) {
        seen.push(input);
        if (input !== 'first') return;
        await kit.holdfast.enqueue(sync, 'second', { unique, delay: '1m' });
        throw new Failed('Not now.', { reason: 'x.y' });
      },
    });
    const unique = { key: 'u', while: 'waiting', onConflict: 'replace' } as const;
    const kit = await kits({ tasks: [sync] });
    const { id } = await kit.holdfast.enqueue(sync, 'first', { unique });
    await kit.holdfast.enqueue(sync, 'other');
    await kit.advance('1h');

    expect(seen).toEqual(['first', 'other', 'second']);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'cancelled', reason: 'unique.superseded', attempts: 1 });
    expect(kit.events).toContainEqual(expect.objectContaining({ kind: 'settled', state: 'cancelled' }));
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 2, cancelled: 1 });
  });
});

describe('a unique task with merge', () => {
  const union = {
    merge: (waiting: { ids: number[] }, added: { ids: number[] }) => ({ ids: [...waiting.ids, ...added.ids] }),
  };
  const index = defineTask('index', { run: (input: { ids: number[] }) => input.ids });

  test('gets the input of each enqueue until it starts, and each is merged once', async () => {
    const kit = await kits({ tasks: [index] });
    const unique = { key: 'all', while: 'waiting', onConflict: union } as const;
    const receipts = await Promise.all(
      [1, 2, 3, 4, 5].map((id) => kit.holdfast.enqueue(index, { ids: [id] }, { unique, delay: '1h' })),
    );
    const [first] = receipts.filter(({ created }) => created);
    expect(receipts.filter(({ merged }) => merged)).toHaveLength(4);
    expect(new Set(receipts.map(({ id }) => id)).size).toBe(1);
    await kit.advance('1h');
    const { result } = await kit.holdfast.get(first?.id as number, index);
    expect(result?.toSorted()).toEqual([1, 2, 3, 4, 5]);
    expect(await kit.holdfast.enqueue(index, { ids: [6] }, { unique })).toMatchObject({ created: true });
  });

  test('is refused, with nothing lost silently, if the other one has started, or a key says that it was enqueued', async () => {
    const unique = { key: 'started', onConflict: union } as const;
    const { id } = await holdfast.enqueue('work', { ids: [1] }, { unique, key: 'once' });
    expect(await holdfast.enqueue('work', { ids: [1] }, { unique, key: 'once' })).toEqual({
      id,
      created: false,
      state: 'ready',
    });
    const claim = await holdfast.claim({ id });
    const error = await refused(() => holdfast.enqueue('work', { ids: [2] }, { unique }));
    expect(error).toMatchObject({ code: 'unique_conflict', task: id });
    expect(error.message).toMatch(/is running, so nothing was merged into its input, and nothing was enqueued/);
    await claim?.complete();
    expect((await holdfast.get(id)).input).toEqual({ ids: [1] });
  });

  test('takes a function, and only in enqueue', async () => {
    const all = holdfast.enqueueAll('work', [1], () => ({ unique: { key: 'k', onConflict: union } }));
    await expect(all).rejects.toThrow(/works with `enqueue` only/);
    for (const onConflict of [{}, { merge: 1 }, { merge: null }]) {
      const attempt = () => holdfast.enqueue('work', 1, { unique: { key: 'k', onConflict: onConflict as never } });
      expect((await refused(attempt)).message).toMatch(/unique.onConflict.merge must be a function/);
    }
    const unsuitable = { merge: () => 1n as never };
    await holdfast.enqueue('work', 1, { unique: { key: 'big' } });
    const attempt = () => holdfast.enqueue('work', 2, { unique: { key: 'big', onConflict: unsuitable } });
    expect((await refused(attempt)).code).toBe('payload_rejected');
  });
});

describe('unique refuses', () => {
  test('what is no object with a key, and words that it does not know', async () => {
    const attempt = (unique: unknown) => refused(() => holdfast.enqueue(work, 1, { unique: unique as never }));
    for (const [, value] of nonsense()) expect((await attempt(value)).code).toBe('invalid_input');
    for (const [, key] of nonsense(['a text'])) expect((await attempt({ key })).message).toMatch(/unique\.key must be/);
    expect((await attempt({ key: 'k', while: 'running' })).message).toMatch(/unique\.while must be one of unfinished/);
    expect((await attempt({ key: 'k', onConflict: 'skip' })).message).toMatch(/one of ignore, replace, reject/);
    expect((await attempt({ key: 'k', until: '1h' })).message).toMatch(/unique has no option 'until'/);
    for (const [, value] of nonsense()) {
      expect((await attempt({ key: 'k', for: value })).message).toMatch(/unique\.for (must|needs)/);
    }
    expect((await attempt({ key: 'k', for: '0s' })).message).toMatch(/unique\.for must be longer than 0/);
  });

  test('one key for all inputs', async () => {
    const all = await refused(() => holdfast.enqueueAll(work, [1, 2], { unique: { key: 'k' } } as never));
    expect(all.message).toMatch(/`unique` names one task.*\(input\) => \(\{ unique: … \}\)/);
  });
});
