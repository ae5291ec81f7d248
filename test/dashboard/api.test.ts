import { expect, test } from 'vitest';
import { defineTask } from '../../src/worker/define-task.ts';
import { atOnce, useKits } from '../worker/scene.ts';
import { callsOf } from './calls.ts';

const open = useKits();

const charge = defineTask('charge', {
  idempotent: false,
  retry: { ...atOnce, maxAttempts: 1 },
  run(order: number) {
    if (order === 1) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    throw new Error(`order ${order} is closed`);
  },
});

test('a task that fails is listed, shown with its explanation, and put back by who asked', async () => {
  const kit = await open({ tasks: [charge] });
  const { id } = await kit.holdfast.enqueue(charge, 2);
  await kit.drain();
  const { get, act } = callsOf(kit.holdfast);

  const { json: list } = await get('tasks?filter=state:dead');
  expect(list).toMatchObject({ schema: 'holdfast.list/v1', next: null, total: { value: 1 }, items: [{ id }] });
  const { json: shown } = await get(`tasks/${id}`);
  expect(shown).toMatchObject({ schema: 'holdfast.show/v1', task: { id, state: 'dead' } });
  expect(shown.explain.actions).toContainEqual({ words: expect.any(String), command: `holdfast retry ${id}` });

  expect((await act(`tasks/${id}/retry`, { note: 'the order is open again' })).json).toMatchObject({
    schema: 'holdfast.retry/v1',
    items: [{ id, from: 'dead', to: 'ready' }],
  });
  expect(await kit.holdfast.history(id)).toContainEqual(
    expect.objectContaining({ verb: 'retry', actor: 'ann', note: 'the order is open again' }),
  );
});

test('what may have happened is not retried without a decision, and is answered from the inbox', async () => {
  const kit = await open({ tasks: [charge] });
  const { id } = await kit.holdfast.enqueue(charge, 1);
  await kit.drain();
  const { get, act } = callsOf(kit.holdfast);

  expect((await get('inbox')).json).toMatchObject({ schema: 'holdfast.inbox/v1', total: 1, items: [{ task: { id } }] });
  const refused = await act(`tasks/${id}/retry`);
  expect(refused.status).toBe(409);
  expect(refused.headers.get('content-type')).toBe('application/problem+json');
  expect(refused.json).toMatchObject({
    code: 'state_conflict',
    hints: [expect.stringContaining('resolve'), expect.anything()],
  });
  expect((await act(`tasks/${id}/resolve`, { as: 'succeeded', result: { paid: true } })).json).toMatchObject({
    schema: 'holdfast.resolve/v1',
    task: { state: 'succeeded', result: { paid: true } },
  });
});

test('a wrong request is refused with what is wrong, and what is known is not sent again', async () => {
  const kit = await open({ tasks: [charge] });
  const { get, act } = callsOf(kit.holdfast);

  expect((await get('tasks?filter=colour:red')).json).toMatchObject({ status: 400, code: 'invalid_input' });
  expect((await get('tasks?colour=red')).json.detail).toContain("no option 'colour'");
  expect((await get('tasks/99')).json).toMatchObject({ status: 404, code: 'task_not_found' });
  expect((await get('nothing')).status).toBe(404);
  expect((await act('status')).status).toBe(405);
  expect((await act('tasks/1/resolve', '{')).json).toMatchObject({
    status: 400,
    detail: expect.stringContaining('JSON'),
  });
  const { headers } = await get('tasks');
  expect((await get('tasks', { 'if-none-match': headers.get('etag') ?? '' })).status).toBe(304);
});
