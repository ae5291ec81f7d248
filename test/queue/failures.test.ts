import { expect, test } from 'vitest';
import { FailureGroupNotFoundError } from '../../src/errors.ts';
import { failureGroupJson, failureGroupLines } from '../../src/views/failure-text.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { atOnce, useKits } from '../worker/scene.ts';

const open = useKits();

test('failures are grouped by what they are, and people say what they know of them', async () => {
  const work = defineTask('work', {
    retry: { ...atOnce, maxAttempts: 2 },
    run(n: number) {
      throw new Error(`order ${n} is closed \u001b[2J`);
    },
  });
  const kit = await open({ tasks: [work] });
  for (const n of [1, 2, 3]) await kit.holdfast.enqueue(work, n);
  await kit.drain();

  const { failures } = kit.holdfast;
  const [group, ...others] = await failures.list();
  expect(others).toEqual([]);
  expect(group).toMatchObject({ type: 'work', state: 'open', dead: 3, sources: { work: group?.count } });
  const id = group?.id ?? '';
  await failures.acknowledge(id, { actor: 'ann', note: 'mine' });
  expect(await failures.resolve(id.slice(0, 6), { actor: 'ann' })).toMatchObject({ state: 'resolved' });

  await kit.advance('1s');
  await kit.holdfast.enqueue(work, 4);
  await kit.drain();
  const again = await failures.get(id);
  expect(again).toMatchObject({ state: 'regressed', dead: 4 });
  expect(again.actions).toMatchObject([{ verb: 'acknowledge', actor: 'ann', note: 'mine' }, { verb: 'resolve' }]);
  expect(failureGroupLines(again, kit.holdfast.now()).join('')).not.toContain('\u001b');
  expect(JSON.stringify(failureGroupJson(again))).toContain('"state":"regressed"');
  expect(await failures.mute(id, { for: '2h', note: 'the vendor knows' })).toMatchObject({ state: 'muted' });
  expect(await failures.note(id, { actor: 'bea', note: 'ticket 7' })).toMatchObject({ state: 'muted' });
  await kit.advance('2h');
  expect(await failures.get(id)).toMatchObject({ state: 'open' });
  await expect(failures.note(id, { actor: 'bea' })).rejects.toThrow('needs a `note`');
  await expect(failures.mute(id, { for: 'soon' })).rejects.toThrow('for');
  await expect(failures.mute('nothing')).rejects.toThrow(FailureGroupNotFoundError);
});
