import { readdirSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { describe, expect } from 'vitest';
import { keyOf, type Move } from '../plan.js';
import { type Scene, test } from './scene.ts';

/** Killed with SIGKILL when it is about to make this call about this path, for the n-th time. */
function killedAt(calls: string, path: string, nth = 1): readonly string[] {
  const inject = `inject=${calls}:signal=KILL:when=${nth}`;
  // Calls are counted for each thread.
  return ['env', 'UV_THREADPOOL_SIZE=1', 'strace', '-f', '-qq', '-o', '/dev/null', '-P', path, '-e', inject];
}

const LINK = 'link,linkat';
const UNLINK = 'unlink,unlinkat';

function planOf(scene: Scene, moves: readonly Move[]): string {
  return scene.write('plan.yaml', JSON.stringify({ moves }));
}

function succeededIn(stdout: string): number {
  return Number(/Succeeded: (\d+) in this run/.exec(stdout)?.[1]);
}

describe('a dry run', () => {
  test('says what would happen and changes nothing, not even by making a queue', async ({ scene }) => {
    const moves = [scene.move('a.txt'), scene.move('b.txt'), { from: scene.path('none'), to: scene.path('done/none') }];
    scene.write('done/b.txt', 'theirs');
    const plan = planOf(scene, moves);
    const before = readdirSync(scene.folder, { recursive: true });

    const { stdout } = await scene.start(['run', plan, '--dry-run']);

    expect(stdout).toMatch(/a\.txt\n {2}would be moved\n/);
    expect(stdout).toMatch(/b\.txt\n {2}the destination exists: would need a person/);
    expect(stdout).toMatch(/none\n {2}there is no such file/);
    expect(readdirSync(scene.folder, { recursive: true })).toEqual(before);
  });

  test('tells of a move that waits when it is tried again, and moves nothing', async ({ scene }) => {
    const move = scene.move('a.txt');
    const unlock = scene.lock('inbox/a.txt');
    const plan = planOf(scene, [move]);
    await scene.start(['run', plan]);
    unlock();

    const { stdout } = await scene.start(['run', plan, '--dry-run']);

    expect(stdout).toMatch(/#1 waits until \S+, after fs\.locked/);
    expect(scene.read('inbox/a.txt')).toBe('content of a.txt');
  });
});

test('a run names each file that is missing and was not moved before, and exits with 1', async ({ scene }) => {
  const [there, missing] = [scene.move('a.txt'), { from: scene.path('inbox/none'), to: scene.path('done/none') }];
  const plan = planOf(scene, [there, missing]);
  for (const succeeded of [1, 0]) {
    const { stdout, exit } = await scene.start(['run', plan]);
    expect(succeededIn(stdout)).toBe(succeeded);
    expect(stdout).toContain(`These files do not exist, and were not moved before:\n  ${missing.from}\n`);
    expect(exit).toBe(1);
  }
  expect((await scene.start(['run', planOf(scene, [there])])).exit).toBe(0);
});

test('a dry run knows what has fallen due since', async ({ scene }) => {
  const move = scene.move('a.txt');
  const queue = await openHoldfast({ store: sqlite(scene.path('tidy.db')) });
  await queue.enqueue('file_move', move, { key: keyOf(move), delay: '1ms' });
  await queue.close();

  const { stdout } = await scene.start(['run', planOf(scene, [move]), '--dry-run']);

  expect(stdout).toMatch(/a\.txt\n {2}would be moved\n/);
});

describe('a later run', () => {
  test('picks up what is due, of earlier plans too, and leaves what is not', async ({ scene }) => {
    const [early, late] = [scene.move('early.txt'), scene.move('late.txt')];
    const unlocks = [scene.lock('inbox/early.txt'), scene.lock('inbox/late.txt')];
    const queue = await scene.queue();
    await queue.run(early);
    await queue.later('4m');
    await queue.run(late);
    for (const unlock of unlocks) unlock();
    await queue.later('1m');

    expect(await queue.run()).toMatchObject({ succeeded: 1 });

    expect(scene.read('done/early.txt')).toBe('content of early.txt');
    expect(await queue.wait(late)).toBe(4);
  });

  test('leaves an abandoned move alone, although its plan is read again', async ({ scene }) => {
    const move = scene.move('a.txt');
    const unlock = scene.lock('inbox/a.txt');
    const queue = await scene.queue();
    await queue.untilOver(move);
    unlock();

    expect(await queue.run(move)).toMatchObject({ succeeded: 0 });

    expect((await queue.task(move)).state).toBe('dead');
    expect(scene.read('inbox/a.txt')).toBe('content of a.txt');
  });

  test('moves a new file of a name that was moved before', async ({ scene }) => {
    const move = scene.move('a.txt');
    const queue = await scene.queue();
    await queue.run(move);
    rmSync(move.to);
    scene.write('inbox/a.txt', 'the next one');

    expect(await queue.run(move)).toMatchObject({ succeeded: 1 });
    expect(scene.read('done/a.txt')).toBe('the next one');
    expect(await queue.run(move)).toMatchObject({ succeeded: 0 });
  });
});

test('a worker of the command line takes what a run left, for it knows such moves', async ({ scene }) => {
  const move = scene.move('a.txt');
  const unlock = scene.lock('inbox/a.txt');
  await scene.start(['run', planOf(scene, [move])]);
  unlock();

  await scene.startHoldfast(['retry', '1', '--store', 'tidy.db']);
  await scene.startHoldfast(['worker', '--drain', '--store', 'tidy.db']);

  expect(scene.read('done/a.txt')).toBe('content of a.txt');
  expect((await scene.start(['status'])).stdout).toContain('Succeeded: 1 in all');
});

describe('two runs at once', () => {
  test('share a plan: each file is moved by one of them, once', async ({ scene }) => {
    const moves = Array.from({ length: 60 }, (_, index) => scene.move(`${index}.txt`));
    const plan = planOf(scene, moves);

    const runs = await Promise.all([scene.start(['run', plan]), scene.start(['run', plan])]);

    expect(runs.map(({ exit, stderr }) => [exit, stderr])).toEqual([
      [0, ''],
      [0, ''],
    ]);
    expect(runs.reduce((sum, { stdout }) => sum + succeededIn(stdout), 0)).toBe(60);
    expect(readdirSync(scene.path('done'))).toHaveLength(60);
    expect(readdirSync(scene.path('inbox'))).toEqual([]);
  });
});

describe('a run that died', () => {
  test('in the middle of a move blocks nobody: the next run finishes it at once', async ({ scene }) => {
    const move = scene.move('a.txt');
    const plan = planOf(scene, [move]);
    const killed = await scene.start(['run', plan], killedAt(UNLINK, move.from));
    expect(killed.stdout).toBe('');
    expect(statSync(move.to).nlink).toBe(2);

    const { stdout } = await scene.start(['run', plan]);

    expect(succeededIn(stdout)).toBe(1);
    expect(scene.read('inbox/a.txt')).toBeUndefined();
    expect(scene.read('done/a.txt')).toBe('content of a.txt');
    expect(statSync(move.to).nlink).toBe(1);
  });

  test('in the middle of a move to another file system leaves no second copy', async ({ scene }) => {
    const move = scene.move('a.txt');
    scene.write('done/keep', '');
    scene.mount(['-t', 'tmpfs', 'tmpfs', scene.path('done')]);
    const plan = planOf(scene, [move]);
    await scene.start(['run', plan], killedAt(UNLINK, move.from));
    expect(scene.read('inbox/a.txt')).toBe('content of a.txt');

    expect(succeededIn((await scene.start(['run', plan])).stdout)).toBe(1);

    expect(readdirSync(scene.path('done'))).toEqual(['a.txt']);
    expect(readdirSync(scene.path('inbox'))).toEqual([]);
  });

  test('with a copy that had no name yet leaves nothing of it', async ({ scene }) => {
    const move = scene.move('a.txt');
    scene.write('done/keep', '');
    scene.mount(['-t', 'tmpfs', 'tmpfs', scene.path('done')]);
    const plan = planOf(scene, [move]);
    await scene.start(['run', plan], killedAt(LINK, move.to, 2));
    expect(readdirSync(scene.path('done'))).toEqual([expect.stringMatching(/^\.a\.txt\.holdfast-/)]);

    expect(succeededIn((await scene.start(['run', plan])).stdout)).toBe(1);

    expect(readdirSync(scene.path('done'))).toEqual(['a.txt']);
  });

  test('just before its last word is believed: the file is there, so the move succeeded', async ({ scene }) => {
    const move = scene.move('a.txt');
    const plan = planOf(scene, [move]);
    // The old name is gone, and its folder is about to be synced.
    await scene.start(['run', plan], killedAt('open,openat', dirname(move.from)));
    expect([scene.read('inbox/a.txt'), scene.read('done/a.txt')]).toEqual([undefined, 'content of a.txt']);

    expect(succeededIn((await scene.start(['run', plan])).stdout)).toBe(1);
  });

  test('or rather lives and is stuck can be made to let go', async ({ scene }) => {
    const move = scene.move('a.txt');
    const stuck = await openHoldfast({ store: sqlite(scene.path('tidy.db')), workerName: 'stuck' });
    try {
      await stuck.enqueue('file_move', move, { key: keyOf(move) });
      await stuck.claim({ types: ['file_move'], leaseFor: '1h' });
      const plan = planOf(scene, [move]);
      expect(succeededIn((await scene.start(['run', plan])).stdout)).toBe(0);

      for (const { id } of await stuck.workers()) await stuck.endWorker(id);

      expect(succeededIn((await scene.start(['run', plan])).stdout)).toBe(1);
    } finally {
      await stuck.close();
    }
  });
});
