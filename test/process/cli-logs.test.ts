import { rmSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { type HoldfastProcess, ON_TERMINAL, type Project, test } from './cli-process.ts';

/** Says something, waits to be told, and says something else. */
const TWO_PARTS = ['echo one', 'echo trouble >&2', 'while [ ! -e go ]; do sleep 0.05; done', 'echo two'];

async function worker(project: Project): Promise<HoldfastProcess> {
  const started = project.start(['worker', '--name', 'w1']);
  await started.says('"event":"up"');
  return started;
}

describe.concurrent('holdfast logs', () => {
  test('follows a command that a worker runs in another process, stream by stream, to its end', async ({ project }) => {
    project.script('parts', ...TWO_PARTS);
    await project.run('run', '-b', '--', './parts');
    const following = project.start(['logs', '1', '-f']);
    await following.says('No worker is running');
    const started = await worker(project);
    await following.says('one');
    await following.says('trouble');
    const sofar = await project.run('logs', '1');
    expect(sofar).toMatchObject({ exit: 0, stdout: 'one\n' });
    expect(sofar.stderr).toBe('trouble\n#1 runs. Follow it: holdfast logs 1 -f\n');
    project.write('go', '');
    const { exit, stdout, stderr } = await following.ended;
    expect([exit, stdout]).toEqual([0, 'one\ntwo\n']);
    expect(stderr).toMatch(/trouble\n✓ #1 succeeded\n$/);
    started.kill('SIGTERM');
    await started.ended;
  });

  test('shows what each execution said, and exits as wait does when it follows', async ({ project }) => {
    const failing = ['sh', '-c', 'echo "try $HOLDFAST_EXECUTION"; echo "went wrong" >&2; exit 3'];
    await project.run('run', '--attempts', '2', '--backoff', 'fixed:1ms', '--key', 'k', '--', ...failing);
    const { exit, stdout, stderr } = await project.run('logs', 'k');
    expect([exit, stdout]).toEqual([0, 'try 1\ntry 2\n']);
    expect(stderr.replaceAll(/\d\d:\d\d:\d\d {2}on \S+/g, 'WHEN')).toBe(
      '▶ execution 1  WHEN  exit 3: went wrong\nwent wrong\n▶ execution 2  WHEN  exit 3: went wrong\nwent wrong\n',
    );
    expect((await project.run('logs', '#1', '--execution', '2', '-q')).stdout).toBe('try 2\n');
    const followed = await project.run('logs', '1', '-f', '-q');
    expect([followed.exit, followed.stdout, followed.stderr]).toEqual([
      1,
      'try 1\ntry 2\n',
      'went wrong\nwent wrong\n',
    ]);
    expect((await project.run('logs', '99')).exit).toBe(3);
  });

  test('shows a terminal nothing that it would obey, and passes the bytes as they are elsewhere', async ({
    project,
  }) => {
    project.script('lively', String.raw`printf '\033]0;owned\007\033[2J\033[31mred\033[0m\302\233\n'`);
    await project.run('run', '--', './lively');
    expect((await project.run('logs', '1')).stdout).toBe('\u001b]0;owned\u0007\u001b[2J\u001b[31mred\u001b[0m\u009b\n');
    for (const command of ['logs', 'wait']) {
      const { stdout } = await project.start([command, '1'], { under: ON_TERMINAL }).ended;
      for (const lively of ['\u001b]', '\u001b[2J', '\u0007', '\u009b']) expect(stdout).not.toContain(lively);
      if (command === 'logs') expect(stdout).toContain('\\x1b]0;owned\\x07\\x1b[2J\u001b[31mred\u001b[0m\\x9b');
    }
  });

  test('says all of it in one JSON document, at the end', async ({ project }) => {
    project.script('parts', ...TWO_PARTS);
    const running = project.start(['run', '--', './parts']);
    await running.says('trouble');
    const following = project.start(['logs', '1', '-f', '--json']);
    project.write('go', '');
    expect((await running.ended).exit).toBe(0);
    const { exit, stdout } = await following.ended;
    const at = expect.stringMatching(/Z$/);
    const piece = (stream: string, text: string) => ({ execution: 1, stream, at, text });
    const { items, ...document } = JSON.parse(stdout) as { items: { stream: string }[] };
    expect([exit, document]).toEqual([
      0,
      { schema: 'holdfast.logs/v1', exit: 0, task: 1, state: 'succeeded', complete: true },
    ]);
    expect(items.filter(({ stream }) => stream === 'stdout')).toEqual([
      piece('stdout', 'one\n'),
      piece('stdout', 'two\n'),
    ]);
    expect(items.filter(({ stream }) => stream === 'stderr')).toEqual([piece('stderr', 'trouble\n')]);
  });

  test('ends quietly when its reader goes away, and the command goes on', async ({ project }) => {
    project.script('chatty', 'while [ ! -e go ]; do echo y; sleep 0.02; done');
    await project.run('run', '-b', '--', './chatty');
    const started = await worker(project);
    const following = project.start(['logs', '1', '-f']);
    await following.says('y\n');
    following.child.stdout?.destroy();
    expect(await following.ended).toMatchObject({ exit: 0, stderr: '' });
    project.write('go', '');
    expect((await project.run('wait', '1')).exit).toBe(0);
    started.kill('SIGTERM');
    await started.ended;
  });

  test('keeps the end of what is printed without end', async ({ project }) => {
    await project.run('run', '-q', '--', 'sh', '-c', 'seq 1 400000; echo end');
    const { exit, stdout, stderr } = await project.start(['logs', '1']).ended;
    expect([exit, stderr]).toEqual([0, 'Earlier output is no longer kept.\n']);
    expect(stdout.length).toBeGreaterThan(200_000);
    expect(stdout.length).toBeLessThan(700_000);
    expect(stdout).toMatch(/\n399999\n400000\nend\n$/);
  });

  test('falls back on the end that a worker left in the result', async ({ project }) => {
    await project.run('run', '-b', '--', 'echo', 'hello');
    await project.run('worker', '--drain');
    rmSync(project.path('.holdfast/holdfast.db.logs'), { recursive: true });
    expect(await project.run('logs', '1')).toMatchObject({
      exit: 0,
      stdout: 'hello\n',
      stderr: 'Only the end of what it wrote to stdout was kept.\n',
    });
    expect((await project.json('logs', '1')).document).toMatchObject({ complete: false, items: [{ text: 'hello\n' }] });
  });

  test('says where there is nothing to show', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    expect(await project.run('logs', '1')).toMatchObject({ exit: 0, stdout: '', stderr: '#1 has printed nothing.\n' });
    project.write('a', '');
    await project.run('mv', 'a', 'b');
    const { stderr } = await project.run('logs', '2');
    expect(stderr).toBe('#2 is no command, so it prints nothing. How it went: holdfast show 2\n');
  });

  test('is no reason for a task to fail: what cannot be kept is said once', async ({ project }) => {
    await project.run('run', '-b', '--at', '+1h', '--', 'true');
    project.write('.holdfast/holdfast.db.logs', 'a file where the folder should be');
    const { exit, stdout, stderr } = await project.run('run', '--', 'sh', '-c', 'echo out; sleep 0.1; echo more');
    expect([exit, stdout]).toEqual([0, 'out\nmore\n']);
    expect(stderr.match(/What commands print is not kept for `holdfast logs`: E/g)).toHaveLength(1);
    await project.run('run', '-b', '--', 'echo', 'hello');
    const drained = await project.run('worker', '--drain');
    expect(drained.exit).toBe(0);
    expect(drained.stdout).toContain('"event":"trouble","worker"');
    expect((await project.run('logs', '3')).stdout).toBe('hello\n');
  });
});
