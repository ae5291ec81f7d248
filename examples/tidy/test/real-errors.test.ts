import { chmodSync, chownSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { dirname } from 'node:path';
import { describe, expect } from 'vitest';
import { type Scene, test } from './scene.ts';

const NOBODY = 65_534;
/** Another user, who may read this program wherever it lies, and write nowhere but where he is let. */
const AS_NOBODY = [
  ...['setpriv', `--reuid=${NOBODY}`, `--regid=${NOBODY}`, '--clear-groups'],
  ...['--inh-caps=+dac_read_search', '--ambient-caps=+dac_read_search', '--'],
];

function planOf(scene: Scene, ...moves: readonly object[]): string {
  return scene.write('plan.json', JSON.stringify({ moves }));
}

function names(scene: Scene, folder: string): readonly string[] {
  return readdirSync(scene.path(folder));
}

describe('another user', () => {
  const scenery = (scene: Scene) => {
    const { from, to } = scene.move('report.txt');
    mkdirSync(dirname(to));
    for (const path of [scene.folder, dirname(from), dirname(to), from]) chownSync(path, NOBODY, NOBODY);
    return planOf(scene, { from, to });
  };

  test('moves what he may move', async ({ scene }) => {
    const { stdout } = await scene.start(['run', scenery(scene)], AS_NOBODY);
    expect(stdout).toContain('Succeeded: 1 in this run, 1 in all');
    expect(names(scene, 'done')).toEqual(['report.txt']);
  });

  test('EACCES where he may not write to the destination: permission, and a retry in a minute', async ({ scene }) => {
    const plan = scenery(scene);
    chmodSync(scene.path('done'), 0o555);
    const { stdout } = await scene.start(['run', plan], AS_NOBODY);
    expect(stdout).toContain('fs.permission: attempt 1 of 3 failed');
    expect(stdout).toContain('Pending (awaiting retry): 1');
    expect(names(scene, 'inbox')).toEqual(['report.txt']);
  });

  test('EACCES where he may not remove the old name: the new one is taken back', async ({ scene }) => {
    const plan = scenery(scene);
    chmodSync(scene.path('inbox'), 0o555);
    const { stdout } = await scene.start(['run', plan], AS_NOBODY);
    expect(stdout).toContain('fs.permission: attempt 1 of 3 failed');
    expect([names(scene, 'inbox'), names(scene, 'done')]).toEqual([['report.txt'], []]);
  });
});

describe('the system', () => {
  test('EBUSY for a file that is mounted on: locked, and nothing is left at the destination', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.lock('inbox/report.txt');
    const { stdout } = await scene.start(['run', planOf(scene, move)]);
    expect(stdout).toContain('fs.locked: attempt 1 of 10 failed');
    expect(names(scene, 'done')).toEqual([]);
  });

  test('EEXIST for a taken destination: a person is asked at once, with what to do', async ({ scene }) => {
    const move = scene.move('report.txt');
    scene.write('done/report.txt', 'theirs');
    const { stdout } = await scene.start(['run', planOf(scene, move)]);
    expect(stdout).toContain('fs.dest_exists: attempt 1 of 1 failed');
    expect(stdout).toContain('[ACTION REQUIRED] 1 move needs a person:');
    expect(stdout).toContain('fs.dest_exists (1): the destination exists: rename or remove one of the two files');
  });

  test('moves to another file system whole, with mode and time', async ({ scene }) => {
    const move = scene.move('report.txt');
    chmodSync(move.from, 0o440);
    const { mtimeMs } = statSync(move.from);
    mkdirSync(dirname(move.to));
    scene.mount(['-t', 'tmpfs', 'tmpfs', dirname(move.to)]);
    const { stdout } = await scene.start(['run', planOf(scene, move)]);
    expect(stdout).toContain('Succeeded: 1 in this run');
    expect(scene.read('done/report.txt')).toBe('content of report.txt');
    expect(statSync(move.to).mode & 0o777).toBe(0o440);
    expect(Math.abs(statSync(move.to).mtimeMs - mtimeMs)).toBeLessThan(1);
    expect([names(scene, 'inbox'), names(scene, 'done')]).toEqual([[], ['report.txt']]);
  });

  test('ENOSPC on a full disk: any other failure, and no part of the file is left there', async ({ scene }) => {
    const { from, to } = scene.move('report.txt');
    scene.write('inbox/report.txt', 'x'.repeat(300_000));
    mkdirSync(dirname(to));
    scene.mount(['-t', 'tmpfs', '-o', 'size=128k', 'tmpfs', dirname(to)]);
    const { stdout } = await scene.start(['run', planOf(scene, { from, to })]);
    expect(stdout).toContain('fs.no_space: attempt 1 of 5 failed');
    expect([names(scene, 'inbox'), names(scene, 'done')]).toEqual([['report.txt'], []]);
  });

  test('one file under two paths of the same folder is never removed', async ({ scene }) => {
    const { from } = scene.move('report.txt');
    symlinkSync(dirname(from), scene.path('alias'));
    const { stdout } = await scene.start(['run', planOf(scene, { from, to: 'alias/report.txt' })]);
    expect(stdout).toContain('Needs manual (escalated): 1');
    expect(scene.read('inbox/report.txt')).toBe('content of report.txt');
  });

  test('a folder is moved whole, and never onto another', async ({ scene }) => {
    scene.move('deep/report.txt');
    const plan = planOf(scene, { from: 'inbox/deep', to: 'done/deep' });
    expect((await scene.start(['run', plan])).stdout).toContain('Succeeded: 1 in this run');
    expect([names(scene, 'inbox'), scene.read('done/deep/report.txt')]).toEqual([[], 'content of deep/report.txt']);
    scene.move('deep/report.txt');
    expect((await scene.start(['run', plan])).stdout).toContain('fs.dest_exists: attempt 1 of 1 failed');
    expect(names(scene, 'inbox')).toEqual(['deep']);
  });
});
