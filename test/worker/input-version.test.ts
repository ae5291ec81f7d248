import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTask, immediate } from '../../src/index.ts';
import { type Kit, useKits } from './scene.ts';

const open = useKits();

const first = { input: z.object({ name: z.string() }), retry: { backoff: immediate, maxDeferrals: 3 } };
const second = {
  ...first,
  version: 2,
  input: z.object({ first: z.string(), last: z.string() }),
  migrate: ({ name }: { name: string }) => {
    const [first = '', last = ''] = name.split(' ');
    return { first, last };
  },
};

/** Stores a task as a process of another version of the type does. */
async function stored(kit: Kit, input: object, policy?: string): Promise<number> {
  const common = { type: 'greet', queue: 'default', source: 'greet', priority: 0, delay: 0 };
  const task = { ...common, payload: JSON.stringify(input), ...(policy !== undefined && { policy }) };
  const [receipt] = await kit.holdfast.store.tasks.enqueue([task]);
  return (receipt as { id: number }).id;
}

describe('an input of another version of its type', () => {
  test('is migrated before the schema reads it, if it is older', async () => {
    const seen: unknown[] = [];
    const kit = await open({ tasks: [defineTask('greet', { ...second, run: (input) => void seen.push(input) })] });
    await stored(kit, { name: 'Ada Lovelace' });
    await kit.drain();
    await kit.holdfast.enqueue('greet', { first: 'Alan', last: 'Turing' });
    await kit.drain();
    expect(seen).toEqual([
      { first: 'Ada', last: 'Lovelace' },
      { first: 'Alan', last: 'Turing' },
    ]);
  });

  test('is stored with its version, beside the options of the task, and shown so', async () => {
    const kit = await open({
      tasks: [defineTask('greet', { ...second, run() {} }), defineTask('plain', { run() {} })],
    });
    const { id } = await kit.holdfast.enqueue('greet', { first: 'A', last: 'T' }, { retry: { maxAttempts: 9 } });
    expect(await kit.holdfast.get(id)).toMatchObject({ inputVersion: 2, retry: { maxAttempts: 9 } });
    expect((await kit.holdfast.policyFor(await kit.holdfast.get(id))).policy.maxAttempts).toBe(9);
    const plain = await kit.holdfast.enqueue('plain', null);
    expect(await kit.holdfast.store.records.find(plain.id)).not.toHaveProperty('policy');
    const elsewhere = await kit.holdfast.enqueue('elsewhere', null, { version: 3 });
    expect(await kit.holdfast.get(elsewhere.id)).toMatchObject({ inputVersion: 3 });
    expect(await kit.holdfast.get(elsewhere.id)).not.toHaveProperty('retry');
    expect(await kit.holdfast.claim({ id: elsewhere.id })).toMatchObject({ inputVersion: 3 });
  });

  test('is put off without a charge, if it is newer, and then needs a person', async () => {
    const kit = await open({ tasks: [defineTask('greet', { ...first, run: () => 'hello' })] });
    const id = await stored(kit, { first: 'Ada', last: 'Lovelace' }, '{"inputVersion":2}');
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({
      state: 'scheduled',
      reason: 'input.newer_version',
      attempts: 0,
    });
    await kit.advance('1m');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', attempts: 0 });
    expect((await kit.holdfast.history(id))[0]).toMatchObject({
      message: expect.stringContaining("has version 2 of 'greet', and this worker knows version 1"),
    });
  });

  test('needs a person where the schema refuses what `migrate` returned, and fails as a handler does where it throws', async () => {
    const migrate = ({ name }: { name: string }) => {
      if (name === 'throws') throw new Error('No rule for this name.');
      return { first: name } as never;
    };
    const kit = await open({
      tasks: [defineTask('greet', { ...second, retry: { backoff: immediate, maxAttempts: 2 }, migrate, run() {} })],
    });
    const refused = await stored(kit, { name: 'Ada' });
    const thrown = await stored(kit, { name: 'throws' });
    await kit.drain();
    expect(await kit.holdfast.get(refused)).toMatchObject({ state: 'needs_manual', reason: 'validation', attempts: 0 });
    expect((await kit.holdfast.history(refused))[0]).toMatchObject({
      failure: { message: expect.stringMatching(/version 2 from version 1 that is refused.*last/) },
    });
    expect(await kit.holdfast.get(thrown)).toMatchObject({ state: 'dead', attempts: 2 });
  });

  test('is left to definitions for all types as it is', async () => {
    const seen: unknown[] = [];
    const kit = await open({ tasks: [defineTask('*', { run: (input) => void seen.push(input) })] });
    await stored(kit, { any: 1 }, '{"inputVersion":7}');
    await kit.drain();
    expect(seen).toEqual([{ any: 1 }]);
  });
});
