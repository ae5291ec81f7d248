import { expect, test } from 'vitest';
import { Registry } from '../../src/config/registry.ts';
import { Failed } from '../../src/failure/signals.ts';
import { pathSegment } from '../../src/path-segment.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { useKits } from '../worker/scene.ts';
import { callsOf } from './calls.ts';

const open = useKits();

const push = defineTask('push', {
  source: 'api',
  run() {
    throw Object.assign(new Error('Service Unavailable'), { status: 503 });
  },
});
const bill = defineTask('bill', {
  run(number: number) {
    throw new Failed(`invoice ${number} is closed`, { kind: 'permanent', reason: 'bill.closed' });
  },
});

test('sources are listed with what happened to them, held, released, limited and probed by who asked', async () => {
  const kit = await open({ tasks: [push] });
  for (let n = 0; n < 2; n++) {
    await kit.holdfast.enqueue(push, n);
    await kit.drain();
    await kit.advance('10ms');
  }
  const { get, act } = callsOf(kit.holdfast);

  const { json: list } = await get('sources');
  expect(list).toMatchObject({
    schema: 'holdfast.sources/v1',
    items: [{ name: 'api', state: 'down', reason: 'http.5xx' }],
    timelines: [{ source: 'api', spans: [{ condition: 'down', to: null }] }],
  });
  const probed = await act('sources/api/probe', { note: 'they say that it is mended' });
  expect(probed.json).toMatchObject({
    schema: 'holdfast.sources.probe/v1',
    changed: true,
    source: { state: 'probing' },
  });
  const held = await act('sources/api/hold', { for: '2h', note: 'not now' });
  expect(held.json).toMatchObject({
    changed: true,
    source: { state: 'held', held: { actor: 'ann', note: 'not now' } },
  });
  expect((await act('sources/api/release')).json).toMatchObject({ changed: true, source: { state: 'ramping' } });
  const limited = await act('sources/api/limit', { pace: '10/s', concurrency: 4 });
  expect(limited.json).toMatchObject({ changed: true, source: { limits: { per_second: 10, concurrency: 4 } } });
  expect((await act('sources/api/limit', { pace: null, concurrency: null })).json.source.limits).toBeNull();
  expect((await act('sources/api/limit', { pace: 'fast' })).status).toBe(400);

  const { json: shown } = await get('sources/api?days=1');
  expect(shown.outages).toEqual([
    expect.objectContaining({ condition: 'down', reason: 'http.5xx', message: 'Service Unavailable' }),
  ]);
  const actions = shown.changes.filter(({ actor }: { actor: string | null }) => actor !== null);
  expect(actions.map(({ change, actor, note }: Record<string, string>) => [change, actor, note])).toEqual([
    ['limit', 'ann', null],
    ['limit', 'ann', null],
    ['release', 'ann', null],
    ['release', 'ann', null],
    ['hold', 'ann', 'not now'],
    ['probe', 'ann', 'they say that it is mended'],
  ]);
});

test('a source may have any name', async () => {
  const kit = await open({ tasks: [bill] });
  const { get, act } = callsOf(kit.holdfast);
  const name = 'fs:/mnt/ä b?#%2F';
  expect((await act(`sources/${encodeURIComponent(name)}/hold`)).json.source.name).toBe(name);
  expect((await get(`sources/${encodeURIComponent(name)}`)).json.source).toMatchObject({ name, state: 'held' });
});

test('queues are listed, paused, resumed, ordered and limited', async () => {
  const kit = await open({ tasks: [bill] });
  await kit.holdfast.enqueue(bill, 1, { queue: 'mail' });
  const { get, act } = callsOf(kit.holdfast);
  const paused = await act('queues/mail/pause', { note: 'holidays' });
  expect(paused.json).toMatchObject({ schema: 'holdfast.queues.pause/v1', changed: true });
  expect((await get('queues')).json.items).toContainEqual(
    expect.objectContaining({
      name: 'mail',
      ready: 1,
      paused: expect.objectContaining({ actor: 'ann', note: 'holidays' }),
    }),
  );
  expect((await act('queues/mail/resume')).json).toMatchObject({ changed: true, queue: { paused: null } });
  expect((await act('queues/mail/resume')).json).toMatchObject({ changed: false });
  expect((await act('queues/none/pause')).status).toBe(404);
  const ordered = await act('queues/mail/order', { order: 'priority', fair: true });
  expect(ordered.json).toMatchObject({
    schema: 'holdfast.queues.order/v1',
    changed: true,
    queue: { order: 'priority', fair: true },
  });
  expect((await act('queues/mail/order', { fair: false })).json.queue).toMatchObject({
    order: 'priority',
    fair: false,
  });
  expect((await act('queues/mail/order', { order: 'random' })).status).toBe(400);
  const limited = await act('queues/mail/limit', { pace: '10/s', concurrency: 4 });
  expect(limited.json).toMatchObject({ changed: true, queue: { limits: { per_second: 10, concurrency: 4 } } });
  expect((await act('queues/mail/limit', { pace: null })).json.queue.limits).toMatchObject({
    per_second: null,
    concurrency: 4,
  });
  expect((await act('queues/none/limit', { concurrency: 1 })).status).toBe(404);
});

test('workers are listed and ended', async () => {
  const kit = await open({ tasks: [bill] });
  const worker = kit.holdfast.work({ name: 'mill-1' });
  await kit.advance('1s');
  const { get, act } = callsOf(kit.holdfast);
  const { items } = (await get('workers')).json;
  const mill = items.find(({ name }: { name: string }) => name === 'mill-1');
  expect(mill).toMatchObject({ alive: true, running: 0 });
  expect((await act(`workers/${mill.id}/end`)).json).toMatchObject({ items: [{ name: 'mill-1', ended: true }] });
  expect((await act('workers/999/end')).status).toBe(404);
  await worker.stop();
});

test('schedules are listed with their next times, paused, resumed, run and removed', async () => {
  const kit = await open({ tasks: [bill] });
  await kit.holdfast.schedules.set('nightly', { task: bill, input: 1, cron: '0 3 * * *' });
  const { get, act } = callsOf(kit.holdfast);
  expect((await get('schedules')).json.items).toMatchObject([{ name: 'nightly', type: 'bill' }]);
  expect((await get('schedules/nightly')).json.next).toHaveLength(5);
  expect((await act('schedules/nightly/pause', { note: 'holidays' })).json.schedule.paused).toMatchObject({
    actor: 'ann',
    note: 'holidays',
  });
  expect((await act('schedules/nightly/resume')).json.schedule.paused).toBeNull();
  expect((await act('schedules/nightly/run')).json).toMatchObject({ created: true, id: expect.any(Number) });
  expect((await get('schedules/none')).status).toBe(404);
  expect((await act('schedules/nightly/remove')).json).toMatchObject({ name: 'nightly' });
  expect((await get('schedules/nightly')).status).toBe(404);
});

test('a redrive is previewed, started, paused, resumed and cancelled', async () => {
  const kit = await open({ tasks: [bill] });
  for (let n = 0; n < 4; n++) await kit.holdfast.enqueue(bill, n);
  await kit.drain();
  const { get, act } = callsOf(kit.holdfast);

  const preview = await act('redrives/preview', { filter: 'type:bill', rate: '1/s' });
  expect(preview.json).toMatchObject({ dry_run: true, plan: { matches: 4, may_run_twice: 0 }, redrive: null });
  expect((await act('redrives', { filter: 'type:bill' })).json.detail).toContain('The body has no note');
  const started = await act('redrives', { filter: 'type:bill', note: 'the invoices are open' });
  expect(started.json.redrive).toMatchObject({ state: 'running', selected: 4, actor: 'ann' });
  const { id } = started.json.redrive;
  expect((await act(`redrives/${id}/pause`, { note: 'lunch' })).json.redrive.state).toBe('paused');
  expect((await act(`redrives/${id}/pause`)).status).toBe(409);
  expect((await act(`redrives/${id}/resume`)).json.redrive.state).toBe('running');
  expect((await act(`redrives/${id}/cancel`)).json.redrive.state).toBe('cancelled');
  expect((await get('redrives')).json.items).toMatchObject([{ id, note: 'the invoices are open' }]);
  expect((await get(`redrives/${id}`)).json).toMatchObject({ redrive: { id }, skipped_by: {} });
  expect((await get('redrives/999')).status).toBe(404);
});

test('policies are listed by type, with each value and who said it, every delay, and what another file would change', async () => {
  const config = new Registry();
  config.load('types:\n  bill:\n    retry: { maxAttempts: 7 }\n', 'holdfast.yaml');
  const kit = await open({ tasks: [bill], config });
  const { get, act } = callsOf(kit.holdfast);
  await kit.holdfast.enqueue(bill, 1);
  await kit.drain();

  const { json: list } = await get('policies');
  expect(list.config).toMatchObject({ file: 'holdfast.yaml', warnings: 0 });
  expect(list.items).toContainEqual(expect.objectContaining({ name: 'bill', kind: 'type', max_attempts: 7 }));
  expect(list.items).toContainEqual(expect.objectContaining({ name: 'http_delivery', kind: 'preset' }));
  const { json: shown } = await get('policies/bill');
  const attempts = shown.values.find(({ path }: { path: string[] }) => path.join() === 'maxAttempts');
  expect(attempts).toMatchObject({ value: 7, from: { text: expect.stringContaining('holdfast.yaml') } });
  const { json: schedule } = await get('policies/bill/schedule?reason=http.503');
  expect(schedule).toMatchObject({ policy: 'bill', reason: 'http.503', max_attempts: 7 });
  expect(schedule.delays).toHaveLength(6);
  expect((await get('policies/bill/schedule?reason=no%20reason')).status).toBe(400);

  const diff = await act('policies/diff', { yaml: 'types:\n  bill:\n    retry: { maxAttempts: 3 }\n' });
  expect(diff.json).toMatchObject({ same: false, items: [{ what: 'type', name: 'bill' }] });
  expect(diff.json.items[0].changes).toMatchObject([{ path: ['maxAttempts'], before: 7, after: 3 }]);
  expect((await act('policies/diff', { yaml: 'types:\n  bill:\n    retry: { maxAttempts: 7 }\n' })).json.same).toBe(
    true,
  );
  const refused = await act('policies/diff', { yaml: 'types: 5' });
  expect(refused.status).toBe(400);
  expect(refused.json.code).toBe('invalid_config');
});

test('an act on a task that is not as it was seen does nothing, and says what the task is now', async () => {
  const kit = await open({ tasks: [bill] });
  const { id } = await kit.holdfast.enqueue(bill, 7);
  await kit.drain();
  const { act, get } = callsOf(kit.holdfast);
  const seen = { state: 'dead', executions: 1 };
  expect((await act(`tasks/${id}/retry`, { if_still: seen })).status).toBe(200);
  await kit.drain();

  // It is dead again, but not as it was seen.
  for (const verb of ['retry', 'cancel']) {
    const refused = await act(`tasks/${id}/${verb}`, { if_still: seen });
    expect(refused.json).toMatchObject({ status: 409, code: 'state_conflict' });
    expect(refused.json.detail).toContain(
      `#${id} has changed: it was dead after 1 execution, and is dead after 2 executions`,
    );
  }
  const asked = { as: 'dead', if_still: { state: 'needs_manual', executions: 2 } };
  expect((await act(`tasks/${id}/resolve`, asked)).json.detail).toContain('it was needs_manual after 2 executions');
  for (const wrong of [{ state: 'gone', executions: 1 }, { state: 'dead' }, { state: 'dead', executions: -1 }, 7]) {
    expect((await act(`tasks/${id}/retry`, { if_still: wrong })).status).toBe(400);
  }
  expect((await get(`tasks/${id}`)).json.task).toMatchObject({ state: 'dead', executions: 2 });
});

test('a source may be called `.` or `..`', async () => {
  const named = defineTask('named', { source: (name: string) => name, run: () => undefined });
  const kit = await open({ tasks: [named] });
  const { act, get } = callsOf(kit.holdfast);
  for (const name of ['.', '..', '~.', '~..', '~', '%2E', 'a.b']) {
    await kit.holdfast.enqueue(named, name);
    expect((await act(`sources/${pathSegment(name)}/hold`)).json.source).toMatchObject({ name, state: 'held' });
    expect((await get(`sources/${pathSegment(name)}`)).json.source).toMatchObject({ name });
  }
});
