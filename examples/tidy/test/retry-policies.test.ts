import { unlinkSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { keyOf } from '../plan.js';
import { policyOf } from '../queue.js';
import { test } from './scene.ts';

const LOCKED_WAITS = [5, 10, 20, 40, 80, 160, 320, 640, 1_280];

describe('a rule for each reason', () => {
  test('a locked file is tried again after 5, 10, 20 … minutes, and is moved once it is free', async ({ scene }) => {
    const move = scene.move('report.txt');
    const unlock = scene.lock('inbox/report.txt');
    const queue = await scene.queue();
    await queue.run(move);
    for (const minutes of LOCKED_WAITS.slice(0, 3)) {
      expect(await queue.task(move)).toMatchObject({ state: 'scheduled', reason: 'fs.locked' });
      expect(await queue.wait(move)).toBe(minutes);
      await queue.later(`${minutes}m`);
      await queue.run();
    }
    unlock();
    await queue.later('40m');

    expect(await queue.run()).toMatchObject({ succeeded: 1 });

    expect(scene.read('done/report.txt')).toBe('content of report.txt');
    expect(scene.read('inbox/report.txt')).toBeUndefined();
  });

  test('a file that stays locked is abandoned after 10 tries, and no person is asked', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.lock('inbox/report.txt');
    const queue = await scene.queue();

    expect(await queue.untilOver(move)).toEqual(LOCKED_WAITS);

    expect(await queue.task(move)).toMatchObject({ state: 'dead', attempts: 10, reason: 'fs.locked' });
    expect(scene.read('done/report.txt')).toBeUndefined();
  });

  test('a taken destination needs a person at the first try, and neither file is touched', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const queue = await scene.queue();

    expect(await queue.untilOver(move)).toEqual([]);

    expect(await queue.task(move)).toMatchObject({ state: 'needs_manual', attempts: 1, reason: 'fs.dest_exists' });
    expect(scene.read('inbox/report.txt')).toBe('content of report.txt');
    expect(scene.read('done/report.txt')).toBe('theirs');
  });

  test('a refused move waits 1 and 2 minutes, and needs a person at the third try', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/keep', '');
    scene.mount(['--bind', '-o', 'ro', scene.path('done'), scene.path('done')]);
    const queue = await scene.queue();

    expect(await queue.untilOver(move)).toEqual([1, 2]);

    expect(await queue.task(move)).toMatchObject({ state: 'needs_manual', attempts: 3, reason: 'fs.permission' });
  });

  test('any other failure waits 10, 20, 40 and 80 minutes, and needs a person at the fifth try', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/keep', '');
    scene.mount(['-t', 'tmpfs', '-o', 'size=4k,nr_inodes=1', 'tmpfs', scene.path('done')]);
    const queue = await scene.queue();

    expect(await queue.untilOver(move)).toEqual([10, 20, 40, 80]);

    expect(await queue.task(move)).toMatchObject({ state: 'needs_manual', attempts: 5, reason: 'fs.no_space' });
  });

  test('each reason counts its own failures: a file that was locked four times has all tries for a permission', async ({
    scene,
  }) => {
    const move = scene.move('report.txt');
    const unlock = scene.lock('inbox/report.txt');
    const queue = await scene.queue();
    await queue.run(move);
    for (const minutes of [5, 10, 20]) {
      await queue.later(`${minutes}m`);
      await queue.run();
    }
    unlock();
    scene.write('done/keep', '');
    scene.mount(['--bind', '-o', 'ro', scene.path('done'), scene.path('done')]);
    await queue.later('40m');
    await queue.run();

    expect(await queue.wait(move)).toBe(1);
    expect((await queue.task(move)).attemptsByReason).toMatchObject([
      { reason: 'fs.locked', count: 4 },
      { reason: 'fs.permission', count: 1 },
    ]);
  });

  test('the policy can be read: every number, by reason', async ({ scene }) => {
    const queue = await scene.queue();
    const { policy } = await queue.kit.holdfast.policyFor({ type: 'file_move' });
    const exponential = (base: number, cap: number) => ({
      kind: 'exponential',
      base: base * 60_000,
      cap: cap * 60_000,
    });

    expect(policy).toMatchObject({ maxAttempts: 5, backoff: exponential(10, 120), onExhausted: 'needs_manual' });
    expect(policy.rules).toMatchObject({
      'fs.locked': { maxAttempts: 10, backoff: exponential(5, 24 * 60), onExhausted: 'dead' },
      'fs.permission': { maxAttempts: 3, backoff: exponential(1, 5), onExhausted: 'needs_manual' },
      'fs.dest_exists': { maxAttempts: 1, onExhausted: 'needs_manual' },
    });
  });
});

test('no wait is longer than the cap of its reason, however many tries it is allowed', async ({ scene }) => {
  const { maxAttempts: _, rules, ...rest } = policyOf();
  const [locked, permission] = [rules['fs.locked'], rules['fs.permission']];
  const patient = {
    ...{ ...rest, maxAttempts: 12 },
    rules: { 'fs.locked': { ...locked, maxAttempts: 12 }, 'fs.permission': { ...permission, maxAttempts: 12 } },
  };
  const [busy, denied, full] = [
    scene.move('busy'),
    scene.move('denied', 'shut/denied'),
    scene.move('full', 'full/full'),
  ];
  scene.lock('inbox/busy');
  for (const folder of ['shut', 'full']) scene.write(`${folder}/keep`, '');
  scene.mount(['--bind', '-o', 'ro', scene.path('shut'), scene.path('shut')]);
  scene.mount(['-t', 'tmpfs', '-o', 'size=4k,nr_inodes=1', 'tmpfs', scene.path('full')]);
  const queue = await scene.queue();
  const waits = [];
  for (const move of [busy, denied, full]) {
    await queue.kit.holdfast.enqueue('file_move', move, { key: keyOf(move), retry: patient });
    waits.push((await queue.untilOver(move)).slice(-3));
  }
  expect(waits).toEqual([
    [1_280, 1_440, 1_440],
    [5, 5, 5],
    [120, 120, 120],
  ]);
});

describe('one plain policy', () => {
  test('tries a taken destination ten times over 42 hours, then abandons it', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const queue = await scene.queue({ smart: false });

    expect(await queue.untilOver(move)).toEqual(LOCKED_WAITS);

    expect(await queue.task(move)).toMatchObject({ state: 'dead', attempts: 10 });
    expect(scene.read('done/report.txt')).toBe('theirs');
  });

  test('is chosen by one option of a run', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const plan = scene.write('plan.json', JSON.stringify({ moves: [move] }));
    expect((await scene.start(['run', plan, '--plain'])).stdout).toContain('fs.dest_exists: attempt 1 of 10 failed');
  });

  test('a queue that began with it goes on with a rule for each reason, from its next failure', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const plain = await scene.queue({ smart: false });
    await plain.run(move);
    expect(await plain.wait(move)).toBe(5);
    await plain.kit.close();

    const smart = await scene.queue();
    await smart.later('5m');
    await smart.run();

    expect(await smart.task(move)).toMatchObject({ state: 'needs_manual', reason: 'fs.dest_exists' });
  });
});

describe('an answer', () => {
  test('retry starts a new round, and the move is made once the way is free', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const queue = await scene.queue();
    await queue.run(move);
    unlinkSync(scene.path('done/report.txt'));
    await queue.kit.holdfast.resolve((await queue.task(move)).id, { as: 'retry' });

    expect(await queue.run()).toMatchObject({ succeeded: 1 });
    expect(scene.read('done/report.txt')).toBe('content of report.txt');
  });
});
