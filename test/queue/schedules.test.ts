import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask, fixed, openHoldfast } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { alter, aStore } from '../a-store.ts';

const START = new Date('2026-06-01T00:30:00Z');

/** A Holdfast with one type, whose handler the test replaces. */
async function kit(run: () => unknown = () => 'done', start = START, path?: string) {
  const log: object[] = [];
  const note = (fields: object) => void log.push(fields);
  const sync = defineTask('sync', { run, retry: { backoff: fixed('10h'), jitter: 'none', timeout: 'none' } });
  const kit = await openTestHoldfast({
    store: aStore(path),
    tasks: [sync],
    start,
    patienceMs: 5,
    log: { debug() {}, info: note, warn: note, error: note },
  });
  return { ...kit, sync, log, list: async () => (await kit.holdfast.list({ limit: 1_000 })).toReversed() };
}

test('a schedule enqueues a task at each of its times, with the time as its key and due time', async () => {
  const { holdfast, sync, advance, list, close, log } = await kit();
  const schedule = await holdfast.schedules.set('hourly', { task: sync, input: { box: 7 }, cron: '0 * * * *' });
  expect(schedule).toMatchObject({
    cron: '0 * * * *',
    timeZone: 'UTC',
    missed: 'latest',
    overlap: 'skip',
    type: 'sync',
    input: { box: 7 },
    nextAt: new Date('2026-06-01T01:00:00Z'),
  });
  await advance('3h');
  const tasks = await list();
  expect(tasks.map(({ key, state }) => [key, state])).toEqual([
    ['schedule:hourly:2026-06-01T01:00:00.000Z', 'succeeded'],
    ['schedule:hourly:2026-06-01T02:00:00.000Z', 'succeeded'],
    ['schedule:hourly:2026-06-01T03:00:00.000Z', 'succeeded'],
  ]);
  expect(await holdfast.schedules.get('hourly')).toMatchObject({
    counts: { enqueued: 3, skipped: 0, missed: 0 },
    last: { tick: new Date('2026-06-01T03:00:00Z'), was: 'enqueued' },
    lastTask: { id: tasks.at(-1)?.id, state: 'succeeded' },
    nextAt: new Date('2026-06-01T04:00:00Z'),
  });
  expect(log).toContainEqual(
    expect.objectContaining({ event: 'schedule.enqueued', schedule: 'hourly', at: '2026-06-01T01:00:00.000Z' }),
  );
  await close();
});

test('setting the same schedule again writes nothing; changing its input keeps its times, changing its cron does not', async () => {
  const { holdfast, sync, close } = await kit();
  const { schedules } = holdfast;
  const options = { task: sync, cron: '0 * * * *', timeZone: 'Europe/Berlin' } as const;
  await Promise.all(Array.from({ length: 20 }, () => schedules.set('one', options)));
  const before = await holdfast.store.schedules.find('one');
  await schedules.set('one', options);
  expect(await holdfast.store.schedules.find('one')).toEqual(before);
  await schedules.set('one', { ...options, input: 1 });
  expect(await holdfast.store.schedules.find('one')).toMatchObject({
    revision: 2,
    progress: before?.progress,
    lookAt: before?.lookAt,
  });
  await schedules.set('one', { ...options, cron: '15 4 * * *' });
  expect((await schedules.get('one')).nextAt).toEqual(new Date('2026-06-01T02:15:00Z'));
  expect(await schedules.next('one', 2)).toEqual([new Date('2026-06-01T02:15:00Z'), new Date('2026-06-02T02:15:00Z')]);
  await close();
});

test('while the task before runs, `skip` passes times over; a waiting retry is replaced by the next time', async () => {
  let fail = false;
  let end = () => {};
  const { holdfast, sync, advance, list, close } = await kit(() => {
    if (fail) throw new Error('no');
    return new Promise<void>((resolve) => {
      end = resolve;
    });
  });
  await holdfast.schedules.set('hourly', { task: sync, cron: '0 * * * *' });
  await advance('3h');
  expect((await holdfast.schedules.get('hourly')).counts).toEqual({ enqueued: 1, skipped: 2, missed: 0 });
  fail = true;
  end();
  await advance('2h');
  expect((await list()).map(({ state }) => state)).toEqual(['succeeded', 'cancelled', 'scheduled']);
  await close();
});

test('with `queue` at most one runs and one waits, and the times in between are counted', async () => {
  const ends: (() => void)[] = [];
  const { holdfast, sync, advance, list, close } = await kit(
    () => new Promise<void>((resolve) => void ends.push(resolve)),
  );
  await holdfast.schedules.set('minutely', { task: sync, cron: '* * * * *', overlap: 'queue' });
  await advance('5m');
  expect(await list()).toHaveLength(1);
  expect(await holdfast.schedules.get('minutely')).toMatchObject({ counts: { enqueued: 1, skipped: 0 }, waits: true });
  ends[0]?.();
  await advance('6s');
  expect((await list()).map(({ state }) => state)).toEqual(['succeeded', 'running']);
  expect((await holdfast.schedules.get('minutely')).counts).toEqual({ enqueued: 2, skipped: 3, missed: 0 });
  ends[1]?.();
  await close();
});

test('a paused schedule enqueues nothing, and what fell into the pause is not made up for', async () => {
  const { holdfast, sync, advance, list, close } = await kit();
  await holdfast.schedules.set('hourly', { task: sync, cron: '0 * * * *', missed: 'all', overlap: 'allow' });
  await holdfast.schedules.pause('hourly', { actor: 'eva', note: 'holidays' });
  await advance('5h');
  expect(await list()).toEqual([]);
  expect(await holdfast.schedules.get('hourly')).toMatchObject({ paused: { actor: 'eva', note: 'holidays' } });
  expect((await holdfast.schedules.run('hourly')).created).toBe(true);
  await holdfast.schedules.resume('hourly');
  expect((await holdfast.schedules.get('hourly')).nextAt).toEqual(new Date('2026-06-01T06:00:00Z'));
  await advance('1h');
  expect(await list()).toHaveLength(2);
  await holdfast.schedules.remove('hourly');
  await advance('5h');
  expect(await list()).toHaveLength(2);
  await expect(holdfast.schedules.get('hourly')).rejects.toMatchObject({ code: 'schedule_not_found' });
  await close();
});

test('the times on the day when New York sets its clocks forward', async () => {
  const { holdfast, sync, advance, list, close } = await kit(undefined, new Date('2026-03-08T04:59:00Z'));
  const zoned = { task: sync, timeZone: 'America/New_York' } as const;
  await holdfast.schedules.set('quarter', { ...zoned, cron: '*/15 * * * *' });
  await holdfast.schedules.set('night', { ...zoned, cron: '30 2 * * *' });
  await advance('23h');
  const keys = (await list()).map(({ key }) => key as string);
  expect(keys.filter((key) => key.startsWith('schedule:night'))).toEqual(['schedule:night:2026-03-08T07:00:00.000Z']);
  expect(keys.filter((key) => key.startsWith('schedule:quarter'))).toHaveLength(92);
  await close();
});

test('two workers enqueue each time once', async () => {
  const { holdfast, sync, advance, list, close } = await kit();
  holdfast.work({ name: 'second' });
  await holdfast.schedules.set('minutely', { task: sync, cron: '* * * * *' });
  await advance('30m');
  expect(await list()).toHaveLength(30);
  await close();
});

test.each([
  [{ cron: '0 3 * *' }, /cron must have five fields/],
  [{ cron: '0 3 * * *', timeZone: 'Berlin' }, /timeZone must be a name such as 'Europe\/Berlin'/],
  [{ cron: '0 3 * * *', overlap: 'never' }, /`overlap` of The schedule|overlap/],
  [{ cron: '0 3 * * *', missed: 'all' }, /Use overlap: 'queue' or 'allow'/],
  [{ cron: '0 3 * * *', every: '5m' }, /Write it as `cron`/],
  [{ cron: '0 3 * * *', tz: 'UTC' }, /Did you mean 'timeZone'\?/],
  [{ cron: '0 3 * * *', input: 1n }, /\$/],
] as const)('%o is refused', async (options, message) => {
  const holdfast = await openHoldfast({ store: aStore() });
  await expect(holdfast.schedules.set('nightly', { task: 'sync', ...options } as never)).rejects.toThrow(message);
  await expect(holdfast.schedules.set('n'.repeat(201), { task: 'sync', cron: '@daily' })).rejects.toThrow(/200/);
  expect(await holdfast.schedules.list()).toEqual([]);
  await holdfast.close();
});

test('a schedule whose row is damaged is named, stops no other one, and is mended by setting it again', async () => {
  const path = join(await mkdtemp(join(tmpdir(), 'holdfast-')), 'tasks.db');
  const { holdfast, sync, advance, list, close, log } = await kit(undefined, START, path);
  const { schedules } = holdfast;
  for (const called of ['a', 'b']) await schedules.set(called, { task: sync, cron: '0 * * * *' });
  await alter(path, {
    sqlite: `UPDATE hf_schedules SET definition = '{"cron', progress = '' WHERE name = 'a'`,
    postgres: `UPDATE holdfast.schedules SET definition = '{"cron', progress = '' WHERE name = 'a'`,
  });
  await advance('1h');
  expect((await list()).map(({ key }) => key)).toEqual(['schedule:b:2026-06-01T01:00:00.000Z']);
  expect(log).toContainEqual(expect.objectContaining({ schedule: 'a' }));
  for (const refused of [schedules.list(), schedules.get('a'), schedules.next('a'), schedules.run('a')]) {
    await expect(refused).rejects.toThrow("The schedule 'a' is damaged in the store. Set it again, or remove it.");
  }
  await schedules.set('a', { task: sync, cron: '0 * * * *' });
  await advance('1h');
  expect((await schedules.list()).map(({ counts }) => counts.enqueued)).toEqual([1, 2]);
  await close();
});

test('a time that has a task already does not make `queue` wait', async () => {
  const { holdfast, sync, advance, list, close } = await kit();
  await holdfast.enqueue(sync, {}, { key: 'schedule:all:2026-06-01T01:00:00.000Z' });
  await advance('1m');
  await holdfast.schedules.set('all', { task: sync, cron: '0 * * * *', missed: 'all', overlap: 'queue' });
  await advance('2h');
  expect((await list()).map(({ key }) => key)).toEqual([
    'schedule:all:2026-06-01T01:00:00.000Z',
    'schedule:all:2026-06-01T02:00:00.000Z',
  ]);
  expect((await holdfast.schedules.get('all')).waits).toBe(false);
  await close();
});
