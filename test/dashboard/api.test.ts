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

test('a selection stays as it is: an action on its tasks leaves out what changed meanwhile', async () => {
  const kit = await open({ tasks: [charge] });
  for (const order of [2, 3, 4]) await kit.holdfast.enqueue(charge, order, { delay: '1h' });
  const { get, act } = callsOf(kit.holdfast);

  const { json: selected } = await act('selections', { filter: 'state:scheduled', verb: 'cancel' });
  expect(selected).toMatchObject({ schema: 'holdfast.selection/v1', total: 3, ids: [3, 2, 1], from: ['scheduled'] });
  await kit.holdfast.enqueue(charge, 5, { delay: '1h' });
  await kit.holdfast.hold(2);
  const body = { verb: 'cancel', ids: selected.ids, from: selected.from, note: 'not needed' };
  expect((await act('tasks/act', body)).json).toEqual({
    schema: 'holdfast.act/v1',
    done: 2,
    requested: 0,
    skipped: { changed: 1 },
  });
  expect(await kit.holdfast.history(1)).toMatchObject([{ verb: 'cancel', actor: 'ann', note: 'not needed' }]);
  expect((await act('tasks/act', { verb: 'retry', ids: [], from: ['running'] })).json.code).toBe('invalid_input');
  expect((await get('tasks/4/explain-if?options=maxAttempts:%209')).json.schema).toBe('holdfast.explain.if/v1');
  expect((await get('tasks/4/explain-if?options=maxAtempts:%209')).json.detail).toContain("'maxAttempts'");
  expect((await get('tasks/4/explain-at?at=2026-01-01T00:00:00Z')).json.schema).toBe('holdfast.explain.at/v1');
});

test('a task is enqueued through the API, but no command of ours without its own permission', async () => {
  const kit = await open({ tasks: [charge] });
  const { act } = callsOf(kit.holdfast);
  const { json } = await act('tasks', { type: 'charge', input: 7, key: 'order-7', at: '2026-02-01T00:00:00Z' });
  expect(json).toMatchObject({ schema: 'holdfast.enqueue/v1', created: true, task: { input: 7, key: 'order-7' } });
  expect((await act('tasks', { type: 'charge', input: 7, key: 'order-7' })).json).toMatchObject({ created: false });
  expect((await act('tasks', { type: 'shell_command', input: { argv: ['id'] } })).json.code).toBe('forbidden');
});

test('who may not do something is refused, and a read-only dashboard changes nothing', async () => {
  const kit = await open({ tasks: [charge] });
  const { id } = await kit.holdfast.enqueue(charge, 2);
  await kit.drain();

  const limited = callsOf(kit.holdfast, { authorize: () => ({ name: 'bob', can: ['view', 'hold'] }) });
  expect((await limited.get('me')).json.permissions).toMatchObject({ view: true, retry: false });
  expect((await limited.act(`tasks/${id}/retry`)).json).toMatchObject({ status: 403, code: 'forbidden' });
  expect((await limited.act('tasks/act', { verb: 'retry', ids: [id] })).json.code).toBe('forbidden');
  const readOnly = callsOf(kit.holdfast, { readOnly: true });
  expect((await readOnly.act(`tasks/${id}/retry`)).json.code).toBe('read_only');
  expect((await readOnly.act('tasks/act', { verb: 'retry', ids: [id] })).json.code).toBe('read_only');
  expect((await readOnly.act('selections', { filter: 'state:dead', verb: 'retry' })).json.total).toBe(1);
  const nobody = callsOf(kit.holdfast, { authorize: () => undefined });
  expect((await nobody.get('tasks')).json).toMatchObject({ status: 401, code: 'unauthorized' });
  expect((await nobody.get('/tasks')).status).toBe(401);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead' });
});

test('counts by time, what falls due, what people did, and how a filter may go on', async () => {
  const kit = await open({ tasks: [charge] });
  const { id } = await kit.holdfast.enqueue(charge, 2);
  await kit.drain();
  await kit.holdfast.enqueue(charge, 3, { delay: '90s', source: 'bank two' });
  const { get, act } = callsOf(kit.holdfast);
  await act('sources/charge/hold', { note: 'the bank is closed' });
  await kit.advance('1s');
  await act('tasks/act', { verb: 'retry', ids: [id], note: 'again' });
  const [group] = (await get('failures')).json.items;
  await kit.advance('1s');
  await act(`failures/${group.id}/mute`);

  const { json: stats } = await get('stats?since=24h&bin=5m');
  expect(stats.bins.length).toBe(24 * 12 + 1);
  expect(stats.bins.at(-1)).toMatchObject({ at: '2026-01-01T00:00:00.000Z', failures: 1, ended: { dead: 1 } });
  const { json: forecast } = await get('forecast?within=10m');
  expect(forecast).toMatchObject({ total: { value: 1, exact: true }, groups: [{ source: 'bank two', reason: null }] });
  expect(forecast.bins[1]).toMatchObject({ count: 1, first: 1, retries: 0 });
  const { json: audit } = await get('audit?limit=2');
  expect(audit.items).toMatchObject([
    { on: 'failures', verb: 'mute', actor: 'ann', name: group.id },
    { on: 'tasks', verb: 'retry', actor: 'ann', note: 'again', count: 1, tasks: [id] },
  ]);
  expect((await get(`audit?before=${audit.next}`)).json).toMatchObject({
    items: [{ on: 'source', verb: 'hold', name: 'charge', note: 'the bank is closed' }],
    next: null,
  });
  const complete = async (text: string) => (await get(`filter/complete?text=${encodeURIComponent(text)}`)).json.items;
  expect(await complete('state:dead so')).toEqual([{ text: 'state:dead source:' }]);
  expect(await complete('-source:other,ch')).toEqual([{ text: '-source:other,charge' }]);
});
