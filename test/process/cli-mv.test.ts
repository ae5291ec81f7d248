import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, unlinkSync, utimesSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { test as base, type Project } from './cli-process.ts';

/** In a project with three files and a folder. */
const test = base.extend<{ readonly project: Project }>({
  project: async ({ project }, use) => {
    for (const name of ['a', 'b', 'c']) project.write(name, name);
    mkdirSync(project.path('to'));
    await use(project);
  },
});

interface Moves {
  readonly exit: number;
  readonly items: readonly Record<string, unknown>[];
}

const there = (project: Project, name: string) => existsSync(project.path(name));

describe.concurrent('holdfast mv', () => {
  test('moves one file to a new name', async ({ project }) => {
    const { exit, stdout } = await project.run('mv', 'a', 'renamed');
    const paths = `${project.path('a')} ${project.path('renamed')}`;
    expect([exit, stdout]).toEqual([0, `✓ #1 succeeded   mv ${paths}\n`]);
    expect([there(project, 'a'), there(project, 'renamed')]).toEqual([false, true]);
  });

  test('does not say that it moved what was never there, although another file has the name', async ({ project }) => {
    await project.run('mv', '-b', 'a', 'renamed');
    unlinkSync(project.path('a'));
    project.write('renamed', 'another');
    for (const _ of [1, 2]) {
      await project.run('worker', '--drain');
      await project.run('retry', '1');
    }
    await project.run('worker', '--drain');
    const { document } = await project.json<{ task: Record<string, unknown> }>('show', '1');
    expect(document.task).toMatchObject({ state: 'scheduled', reason: 'fs.not_found', executions: 3 });
    expect(readFileSync(project.path('renamed'), 'utf8')).toBe('another');
  });

  test('says what the destination did not keep', async ({ project }) => {
    const other = mkdtempSync('/dev/shm/holdfast-mv-');
    try {
      utimesSync(project.path('a'), 1, 1);
      const under = [
        'strace',
        '-f',
        '-qq',
        '-o',
        '/dev/null',
        '-e',
        'trace=utimensat',
        '-e',
        'inject=utimensat:error=EPERM',
      ];
      const { exit, stderr } = await project.start(['mv', 'a', `${other}/`], { under }).ended;
      expect([exit, stderr]).toEqual([0, expect.stringContaining('Not kept at the destination: its times.')]);
      expect([there(project, 'a'), readFileSync(`${other}/a`, 'utf8')]).toEqual([false, 'a']);
    } finally {
      rmSync(other, { recursive: true });
    }
  });

  test('moves several into a folder, and never onto something', async ({ project }) => {
    project.write('to/b', 'was here before');
    const { exit, stdout, stderr } = await project.run('mv', 'a', 'b', 'c', 'to');
    expect(exit).toBe(4);
    expect(stdout.split('\n').map((line) => line.slice(0, 4))).toEqual(['✓ #1', '⚑ #2', '✓ #3', '']);
    expect(stderr).toContain('Something stands at the destination already.');
    expect(stderr).toContain('it is done  holdfast resolve 2 --as succeeded');
    expect([
      there(project, 'a'),
      there(project, 'b'),
      there(project, 'c'),
      there(project, 'to/a'),
      there(project, 'to/c'),
    ]).toEqual([false, true, false, true, true]);
    expect(readFileSync(project.path('to/b'), 'utf8')).toBe('was here before');
    const { document } = await project.json<Moves>('list', 'state:needs_manual');
    expect(document.items).toMatchObject([
      { id: 2, type: 'file_move', reason: 'fs.dest_exists', source: expect.stringMatching(/^fs:\//) },
    ]);
  });

  test('refuses to put a folder into itself, and a name whose bytes were lost', async ({ project }) => {
    const inside = await project.run('mv', 'to', 'to/deeper');
    expect([inside.exit, inside.stderr]).toEqual([2, expect.stringContaining('cannot go into itself')]);
    const broken = await project.run('mv', 'bad\ufffdname', 'to');
    expect([broken.exit, broken.stderr]).toEqual([2, expect.stringContaining('is not valid UTF-8')]);
  });

  test('does not move a second time what has succeeded, unless that is said', async ({ project }) => {
    await project.run('mv', 'a', 'to');
    const again = await project.run('retry', '1');
    expect([again.exit, again.stderr]).toEqual([5, expect.stringContaining('--accept-duplicate')]);
    expect((await project.run('retry', '1', '--accept-duplicate')).exit).toBe(0);
  });

  test('with --plain knows one end only', async ({ project }) => {
    project.write('to/a', 'x');
    const { exit, document } = await project.json<Moves>('mv', '--plain', '--attempts', '1', 'a', 'to');
    expect([exit, document.exit]).toEqual([1, 1]);
    expect(document.items).toMatchObject([{ state: 'dead', reason: 'fs.dest_exists' }]);
  });

  test('is not finished while it may still succeed', async ({ project }) => {
    const waiting = project.start(['mv', 'a', 'missing/a']);
    await waiting.says(/fs\.not_found.*next attempt in 10m/s);
    waiting.kill('SIGINT');
    expect((await waiting.ended).exit).toBe(75);
    mkdirSync(project.path('missing'));
    expect((await project.run('resume', '--now')).exit).toBe(0);
    expect(there(project, 'missing/a')).toBe(true);
  });

  test('only records with -b, in absolute paths, for a worker anywhere', async ({ project }) => {
    const { exit, stdout } = await project.run('mv', '-b', 'a', 'b', 'to');
    expect([exit, stdout.split('\n').length]).toEqual([0, 3]);
    expect(there(project, 'a')).toBe(true);
    const worker = project.start(['worker', '--drain', '-s', project.store], { cwd: '/' });
    expect((await worker.ended).exit).toBe(0);
    expect([there(project, 'to/a'), there(project, 'to/b')]).toEqual([true, true]);
  });

  test('with a key knows a move that is done, although its source is gone', async ({ project }) => {
    expect((await project.run('mv', '--key', 'k', 'a', 'to')).exit).toBe(0);
    const again = await project.run('mv', '--key', 'k', 'a', 'to');
    expect(again).toMatchObject({ exit: 0, stdout: '✓ #1 succeeded\n' });
    expect((await project.run('mv', '--key', 'other', 'a', 'to')).exit).toBe(2);
  });

  test.for<[string, readonly string[], string]>([
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
    ['one unique key for two', ['--unique', 'k', 'a', 'b', 'to'], '--unique names one task, and there are 2 sources'],
    ['an empty path', ['', 'to'], 'an empty path was given'],
    ['two policies', ['--plain', '--policy', 'standard', 'a', 'to'], '--plain and --policy contradict'],
  ])('records nothing for %s', async ([_, args, why], { project }) => {
    expect(await project.run('mv', ...args)).toMatchObject({
      exit: 2,
      stdout: '',
      stderr: expect.stringContaining(why),
    });
    expect((await project.json<Moves>('list', '-s', project.store)).document.items ?? []).toEqual([]);
    expect([there(project, 'a'), there(project, 'b')]).toEqual([true, true]);
  });
});
