import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Project } from './holdfast-process.ts';

let project: Project;
beforeEach(() => {
  project = new Project();
  for (const name of ['a', 'b', 'c']) project.write(name, name);
  mkdirSync(project.path('to'));
});
afterEach(() => project.remove());

interface Moves {
  readonly exit: number;
  readonly items: readonly Record<string, unknown>[];
}

const there = (name: string) => existsSync(project.path(name));

describe('holdfast mv', () => {
  test('moves one file to a new name', async () => {
    const { exit, stdout } = await project.run('mv', 'a', 'renamed');
    const paths = `${project.path('a')} ${project.path('renamed')}`;
    expect([exit, stdout]).toEqual([0, `✓ #1 succeeded   mv ${paths}\n`]);
    expect([there('a'), there('renamed')]).toEqual([false, true]);
  });

  test('moves several into a folder, and never onto something', async () => {
    project.write('to/b', 'was here before');
    const { exit, stdout, stderr } = await project.run('mv', 'a', 'b', 'c', 'to');
    expect(exit).toBe(4);
    expect(stdout.split('\n').map((line) => line.slice(0, 4))).toEqual(['✓ #1', '⚑ #2', '✓ #3', '']);
    expect(stderr).toContain('Something stands at the destination already.');
    expect(stderr).toContain('it is where it belongs  holdfast resolve 2 --as succeeded');
    expect([there('a'), there('b'), there('c'), there('to/a'), there('to/c')]).toEqual([
      false,
      true,
      false,
      true,
      true,
    ]);
    expect(readFileSync(project.path('to/b'), 'utf8')).toBe('was here before');
    const { document } = await project.json<Moves>('list', 'state:needs_manual');
    expect(document.items).toMatchObject([
      { id: 2, type: 'file_move', reason: 'fs.dest_exists', source: expect.stringMatching(/^fs:\//) },
    ]);
  });

  test('with --plain knows one end only', async () => {
    project.write('to/a', 'x');
    const { exit, document } = await project.json<Moves>('mv', '--plain', '--attempts', '1', 'a', 'to');
    expect([exit, document.exit]).toEqual([1, 1]);
    expect(document.items).toMatchObject([{ state: 'dead', reason: 'fs.dest_exists' }]);
  });

  test('is not finished while it may still succeed', async () => {
    const waiting = await project.run('mv', '--timeout', '1s', 'a', 'missing/a');
    expect(waiting.exit).toBe(75);
    expect(waiting.stderr).toContain('fs.not_found');
    mkdirSync(project.path('missing'));
    expect((await project.run('resume', '--now')).exit).toBe(0);
    expect(there('missing/a')).toBe(true);
  });

  test('only records with -b, in absolute paths, for a worker anywhere', async () => {
    const { exit, stdout } = await project.run('mv', '-b', 'a', 'b', 'to');
    expect([exit, stdout.split('\n').length]).toEqual([0, 3]);
    expect(there('a')).toBe(true);
    const worker = project.start(['worker', '--drain', '-s', project.store], { cwd: '/' });
    expect((await worker.ended).exit).toBe(0);
    expect([there('to/a'), there('to/b')]).toEqual([true, true]);
  });

  test('with a key knows a move that is done, although its source is gone', async () => {
    expect((await project.run('mv', '--key', 'k', 'a', 'to')).exit).toBe(0);
    const again = await project.run('mv', '--key', 'k', 'a', 'to');
    expect(again).toMatchObject({ exit: 0, stdout: '✓ #1 succeeded\n' });
    expect((await project.run('mv', '--key', 'other', 'a', 'to')).exit).toBe(2);
  });

  test.each<[string, readonly string[], string]>([
    ['no destination', ['a'], 'mv needs a source and a destination'],
    [
      'several sources without a folder',
      ['a', 'b', 'nowhere'],
      '2 sources need a folder to go to, and nowhere is none',
    ],
    ['a folder that is not there', ['a', 'nowhere/'], 'there is no folder nowhere/'],
    ['a source that is not there', ['a', 'x', 'to'], 'there is no '],
    ['one name for two', ['a', 'to/../a', 'to'], 'would both become'],
    ['nothing to do', ['a', '.'], 'is there already'],
    ['one key for two', ['--key', 'k', 'a', 'b', 'to'], '--key names one task, and there are 2 sources'],
    ['an empty path', ['', 'to'], 'an empty path was given'],
    ['two policies', ['--plain', '--policy', 'standard', 'a', 'to'], '--plain is a policy too'],
  ])('records nothing for %s', async (_, args, why) => {
    expect(await project.run('mv', ...args)).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(why),
    });
    expect((await project.json<Moves>('list', '-s', project.store)).document.items ?? []).toEqual([]);
    expect([there('a'), there('b')]).toEqual([true, true]);
  });
});
