import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { alter, aStore } from '../a-store.ts';
import { atOnce, type Kit, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

const QUARANTINED = { state: 'needs_manual', reason: 'task.corrupt', attempts: 0 };

/** A kit with three tasks that are due in an hour, of which the second one's row is damaged, and what ran. */
async function withDamage(
  damage: { readonly sqlite: string; readonly postgres: string },
  { byHand = false } = {},
): Promise<{ readonly kit: Kit; readonly ran: unknown[] }> {
  const path = join(folder(), 'tasks.db');
  const ran: unknown[] = [];
  const work = defineTask('work', {
    retry: atOnce,
    run(input) {
      ran.push(input);
    },
  });
  const kit = await open({ store: aStore(path), tasks: byHand ? [] : [work] });
  for (const n of [1, 2, 3]) await kit.holdfast.enqueue('work', { n }, { delay: '1h', retry: { maxAttempts: 3 } });
  await alter(path, damage);
  return { kit, ran };
}

const column = (name: string, text: string) => ({
  sqlite: `UPDATE hf_tasks SET ${name} = '${text}' WHERE id = 2`,
  postgres: `UPDATE holdfast.bodies SET ${name} = '${text}' WHERE id = 2`,
});

describe('a task whose row is damaged', () => {
  test.each([
    ['payload', '{"n":', ['payload']],
    ['payload', '', ['payload']],
    ['policy', 'not a policy', ['policy']],
  ])('needs a person when its %s is %j, and the others run', async (name, text, unreadable) => {
    const { kit, ran } = await withDamage(column(name, text));
    const { holdfast } = kit;
    expect(await holdfast.list()).toHaveLength(3);
    expect(await holdfast.get(2)).toMatchObject({ state: 'scheduled', unreadable });
    await kit.advance('1h');

    expect(ran).toEqual([{ n: 1 }, { n: 3 }]);
    expect(await holdfast.get(2)).toMatchObject({ ...QUARANTINED, unreadable });
    const [entry] = await holdfast.history(2);
    expect(entry).toMatchObject({
      charge: 'nobody',
      because: { text: 'The stored task is damaged.' },
      failure: { message: expect.stringContaining(`its ${name} cannot be read, so it was not run`) },
    });
    expect((await holdfast.explain(2)).text).toMatch(/needs a person/);
    await holdfast.resolve(2, { as: 'dead' });
    expect(await holdfast.get(2)).toMatchObject({ state: 'dead' });
  });

  test.each(['{"gpu":', '[1]', '"gpu"', ''])(
    'needs a person when its needs are %j, and the others run',
    async (text) => {
      const path = join(folder(), 'tasks.db');
      const ran: unknown[] = [];
      const work = defineTask('work', { run: (input) => void ran.push(input) });
      const kit = await open({ store: aStore(path), tasks: [work], worker: { capabilities: { gpu: 1 } } });
      const { id } = await kit.holdfast.enqueue(work, 1, { delay: '1h', needs: { gpu: 2 } });
      await kit.holdfast.enqueue(work, 2, { delay: '1h', needs: { gpu: 1 } });
      await kit.holdfast.enqueue(work, 3, { delay: '1h' });
      const damage = (table: string) => `UPDATE ${table} SET needs = '${text}' WHERE needs = '{"gpu":2}'`;
      await alter(path, { sqlite: damage('hf_classes'), postgres: damage('holdfast.classes') });
      await kit.advance('1h');

      expect(ran).toEqual([2, 3]);
      expect(await kit.holdfast.get(id)).toMatchObject({ ...QUARANTINED, unreadable: ['needs'] });
    },
  );

  test('can be cancelled before anybody claims it', async () => {
    const { kit } = await withDamage(column('payload', '{'));
    await kit.holdfast.cancel(2);
    expect(await kit.holdfast.get(2)).toMatchObject({ state: 'cancelled', unreadable: ['payload'] });
  });

  test('is not handed out by hand: the next one is', async () => {
    const { kit } = await withDamage(column('payload', '{'), { byHand: true });
    await kit.advance('1h');
    const first = await kit.holdfast.claim();
    const second = await kit.holdfast.claim();
    expect([first?.id, second?.id]).toEqual([1, 3]);
    expect(await kit.holdfast.get(2)).toMatchObject(QUARANTINED);
    await first?.complete();
    await second?.complete();
  });

  test('is shown with the result that it had, as far as that can be read', async () => {
    const path = join(folder(), 'tasks.db');
    const kit = await open({ store: aStore(path), tasks: [defineTask('work', { run: () => ({ ok: true }) })] });
    const { id } = await kit.holdfast.enqueue('work', null);
    await kit.drain();
    await alter(path, {
      sqlite: "UPDATE hf_resting SET result = '{'",
      postgres: "UPDATE holdfast.succeeded SET result = '{'",
    });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: null, unreadable: ['result'] });
  });
});

test('damaged parts of a history are left out, and named', async () => {
  const path = join(folder(), 'tasks.db');
  const work = defineTask('work', {
    retry: { ...atOnce, maxAttempts: 1 },
    run() {
      throw new Error('no');
    },
  });
  const kit = await open({ store: aStore(path), tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.drain();
  const damage = (table: string) => `UPDATE ${table} SET because = '{', failure = 'x'`;
  await alter(path, { sqlite: damage('hf_executions'), postgres: damage('holdfast.executions') });

  const [entry] = await kit.holdfast.history(id);
  expect(entry).toMatchObject({ kind: 'execution', outcome: 'failure', unreadable: ['because', 'failure'] });
  expect((await kit.holdfast.explain(id)).text).toMatch(/dead/);
});
