import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineTask, type Group, openHoldfast, PermanentFailure } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { useKits } from '../worker/scene.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();
const kits = useKits();

const resize = defineTask('resize', {
  run(width: number) {
    if (width < 0) throw new PermanentFailure('A width is positive.');
    return { width };
  },
});
const seen: { readonly album: number; readonly group: Group }[] = [];
const report = defineTask('report', {
  async run({ album }: { album: number }, task) {
    seen.push({ album, group: await task.group() });
  },
});

test('the follow-up of a group runs when all have ended, and reads how they ended and their results', async () => {
  const kit = await kits({ tasks: [resize, report] });
  const { tasks, followUp } = await kit.holdfast.enqueueGroup(resize, [1, -1, 2], {
    followUp: [report, { album: 7 }, { priority: 3 }],
    // So that none has ended before the follow-up is explained.
    options: (width) => ({ key: `w${width}`, delay: '1m' }),
  });
  const [a, b, c] = tasks.map(({ id }) => id);
  expect(followUp).toEqual({ id: (c as number) + 1, created: true });
  expect(await kit.holdfast.get(followUp.id)).toMatchObject({ state: 'scheduled', waitsForGroup: true, priority: 3 });
  const { text } = await kit.holdfast.explain(followUp.id);
  expect(text).toMatch(/^#4 report waits until all tasks of its group have ended\./);
  expect(text).toMatch(/due +when all tasks of its group have ended/);
  expect(text).not.toMatch(/NaN|Invalid|\dy/);

  await kit.advance('1m');

  const group = {
    open: 0,
    succeeded: 2,
    dead: 1,
    cancelled: 0,
    tasks: [
      { id: a, ended: 'succeeded', result: { width: 1 } },
      { id: b, ended: 'dead' },
      { id: c, ended: 'succeeded', result: { width: 2 } },
    ],
  };
  expect(seen).toEqual([{ album: 7, group }]);
  expect(await kit.holdfast.group(followUp.id)).toEqual(group);
  expect(await kit.holdfast.group(a as number)).toEqual({ open: 0, succeeded: 0, dead: 0, cancelled: 0, tasks: [] });
});

test('a group has tasks of several types, each with its own input and options', async () => {
  const scan = defineTask('scan', { queue: 'scans', run: ({ file }: { file: string }) => file });
  const kit = await kits({ tasks: [resize, scan, report] });
  const { tasks, followUp } = await kit.holdfast.enqueueGroup(
    [
      [resize, -1],
      [scan, { file: 'a' }, { priority: 5, key: 'scan-a' }],
      ['scan', { file: 'b' }],
    ],
    { followUp: [report, { album: 8 }] },
  );
  const found = await Promise.all(tasks.map(({ id }) => kit.holdfast.get(id)));
  expect(found.map(({ type, queue, priority, key }) => [type, queue, priority, key])).toEqual([
    ['resize', 'default', 0, undefined],
    ['scan', 'scans', 5, 'scan-a'],
    ['scan', 'scans', 0, undefined],
  ]);
  await kit.drain();
  expect(await kit.holdfast.group(followUp.id)).toMatchObject({
    ...{ open: 0, succeeded: 2, dead: 1 },
    tasks: [{ ended: 'dead' }, { result: 'a' }, { result: 'b' }],
  });
  expect((await kit.holdfast.get(followUp.id)).state).toBe('succeeded');

  const of = [...[1, 2].map((width) => [resize, width] as const), [scan, { file: 'c' }] as const];
  expect((await kit.holdfast.enqueueGroup(of, { followUp: [report, { album: 9 }] })).tasks).toHaveLength(3);
  // @ts-expect-error The input of `scan` is an object.
  await kit.holdfast.enqueueGroup([[scan, 3]], { followUp: [report, { album: 9 }] });
});

let holdfast: Awaited<ReturnType<typeof openHoldfast>>;
beforeAll(async () => {
  holdfast = await openHoldfast({ store: aStore(), tasks: [resize, report] });
});
afterAll(() => holdfast.close());

test('enqueueGroup refuses what it cannot use, and then records nothing', async () => {
  const attempt = (group: unknown, inputs: unknown = [1]) =>
    refused(() => holdfast.enqueueGroup('resize', inputs as never, group as never));
  for (const [, group] of nonsense()) expect((await attempt(group)).code).toBe('invalid_input');
  for (const [, followUp] of nonsense()) expect((await attempt({ followUp })).code).toBe('invalid_input');
  const followUp = [report, { album: 1 }];
  expect((await attempt({ followUp, each: {} })).message).toMatch(/enqueueGroup has no option 'each'/);
  for (const due of [{ delay: '1h' }, { at: new Date() }]) {
    expect((await attempt({ followUp: [...followUp, due] })).message).toMatch(
      /when its tasks have ended, so it takes no/,
    );
  }
  expect((await attempt({ followUp }, [1n])).message).toMatch(/inputs\[0\] is refused, so nothing was enqueued/);
  expect((await attempt({ followUp: [report, 1n] })).code).toBe('payload_rejected');
  const mixed = (tasks: unknown, group: unknown = { followUp }) =>
    refused(() => holdfast.enqueueGroup(tasks as never, group as never));
  expect((await mixed([[resize, 1], 'resize'])).message).toMatch(/^tasks\[1\] is refused, so nothing was enqueued/);
  expect((await mixed([[resize, 1n]])).code).toBe('payload_rejected');
  expect((await mixed([[resize, 1]], { followUp, options: {} })).message).toMatch(/has no option 'options'/);
  expect((await mixed(Array.from({ length: 10_001 }, () => [resize, 1]))).message).toMatch(/at most 10000 tasks/);
  expect((await attempt({ followUp, options: { key: 'k' } })).message).toMatch(/`key` names one task/);
  expect((await holdfast.counts()).byState).toMatchObject({ ready: 0, scheduled: 0 });
});
