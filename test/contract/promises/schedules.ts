import { expect, test } from 'vitest';
import type { NewSchedule, ScheduleTurn } from '../../../src/store/schedules.ts';
import type { NewTask } from '../../../src/store/store.ts';
import { newTask, type StoreFactory, useScene } from '../scene.ts';

const HOUR = 3_600_000;

export function promisesOfSchedules(factory: StoreFactory): void {
  const scene = useScene(factory);
  const schedules = () => scene.store.schedules;
  const now = () => scene.store.upkeep.now();

  function nightly(more: Partial<NewSchedule> = {}): NewSchedule {
    return {
      name: 'nightly',
      definition: '{"cron":"0 3 * * *"}',
      origin: { by: 'code' },
      progress: '{"enqueued":0}',
      lookAt: now() + HOUR,
      ...more,
    };
  }

  function turnOf(revision: number, tasks: readonly NewTask[], more: Partial<ScheduleTurn> = {}): ScheduleTurn {
    return {
      name: 'nightly',
      revision,
      tasks,
      step: { progress: '{"enqueued":1}', lookAt: now() + 2 * HOUR },
      ...more,
    };
  }

  test('a schedule is kept as it was defined, until somebody defines it anew', async () => {
    expect(await schedules().define(nightly(), 0)).toBe(true);
    const found = await schedules().find('nightly');
    expect(found).toEqual({ ...nightly(), revision: 1, createdAt: now() });
    expect(await schedules().define(nightly({ definition: '{}' }), 0)).toBe(false);
    expect(await schedules().define(nightly({ definition: '{}', origin: { by: 'file', file: '/a.yaml' } }), 1)).toBe(
      true,
    );
    expect(await schedules().find('nightly')).toMatchObject({
      definition: '{}',
      origin: { by: 'file', file: '/a.yaml' },
      revision: 2,
    });
    await schedules().define(nightly({ name: 'Äther' }), 0);
    await schedules().define(nightly({ name: 'Hourly' }), 0);
    expect((await schedules().list()).map(({ name }) => name)).toEqual(['Hourly', 'nightly', 'Äther']);
    expect([await schedules().remove('nightly'), await schedules().remove('nightly')]).toEqual([true, false]);
    expect(await schedules().find('nightly')).toBeUndefined();
  });

  test('`due` names what is to be looked at now, and when the next one is', async () => {
    expect(await schedules().due()).toEqual({ schedules: [] });
    await schedules().define(nightly(), 0);
    await schedules().define(nightly({ name: 'never', lookAt: undefined }), 0);
    expect(await schedules().due()).toEqual({ schedules: [], nextIn: HOUR });
    scene.advance(HOUR);
    const { schedules: due, nextIn } = await schedules().due();
    expect(due.map(({ name }) => name)).toEqual(['nightly']);
    expect(nextIn).toBeUndefined();
  });

  test('a turn enqueues and writes the progress once, whoever else takes it', async () => {
    await schedules().define(nightly(), 0);
    const [first, second] = await Promise.all([
      schedules().turn(turnOf(1, [newTask({ key: 'tick' })])),
      schedules().turn(turnOf(1, [newTask({ key: 'tick' })])),
    ]);
    const [made] = [first, second].filter((receipts) => receipts !== undefined);
    expect([first, second].filter((receipts) => receipts === undefined)).toHaveLength(1);
    expect(made).toEqual([{ id: expect.any(Number), created: true }]);
    expect(await schedules().find('nightly')).toMatchObject({
      revision: 2,
      progress: '{"enqueued":1}',
      lookAt: now() + 2 * HOUR,
      lastTask: made?.[0]?.id,
    });
    expect(await scene.store.records.list({ limit: 9 })).toHaveLength(1);
  });

  test('a turn whose task is not recorded, because its unique key is taken, writes the other progress', async () => {
    await schedules().define(nightly(), 0);
    const unique = { key: 'nightly', while: 'unfinished', onConflict: 'ignore' } as const;
    const id = await scene.enqueueOne({ unique });
    const otherwise = { progress: '{"skipped":1}', lookAt: undefined };
    expect(await schedules().turn(turnOf(1, [newTask({ unique })], { otherwise }))).toMatchObject([
      { id, created: false },
    ]);
    const found = await schedules().find('nightly');
    expect(found).toMatchObject({ progress: '{"skipped":1}', revision: 2 });
    expect([found?.lookAt, found?.lastTask]).toEqual([undefined, undefined]);
    expect(await schedules().turn(turnOf(2, []))).toEqual([]);
    expect((await schedules().find('nightly'))?.progress).toBe('{"enqueued":1}');
  });

  test('a paused schedule is not looked at and takes no turn, until it is resumed', async () => {
    await schedules().define(nightly(), 0);
    expect(await schedules().pause('nightly', { actor: 'eva', note: 'holidays' })).toBe(true);
    const pausedAt = now();
    scene.advance(HOUR);
    expect(await schedules().pause('nightly', { actor: 'bob' })).toBe(true);
    const paused = await schedules().find('nightly');
    expect(paused).toMatchObject({ paused: { actor: 'eva', note: 'holidays', at: pausedAt }, revision: 3 });
    expect(await schedules().due()).toEqual({ schedules: [] });
    expect(await schedules().turn(turnOf(3, [newTask()]))).toBeUndefined();
    expect(await schedules().define(nightly({ definition: '{}' }), 3)).toBe(true);
    expect(await schedules().due()).toEqual({ schedules: [] });
    const step = { progress: '{}', lookAt: now() + 5 };
    expect(await schedules().resume('nightly', 3, step)).toBe(false);
    expect(await schedules().resume('nightly', 4, step)).toBe(true);
    expect(await schedules().resume('nightly', 5, step)).toBe(false);
    expect(await schedules().due()).toEqual({ schedules: [], nextIn: 5 });
    expect(await schedules().find('nightly')).toMatchObject({ progress: '{}', revision: 5 });
    expect((await schedules().find('nightly'))?.paused).toBeUndefined();
    expect(await schedules().pause('none', { actor: 'eva' })).toBe(false);
  });
}
