import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { test } from './cli-process.ts';

interface Shown {
  readonly task: Record<string, unknown>;
  readonly history: readonly Record<string, unknown>[];
}

describe.concurrent('holdfast run', () => {
  test('tries a command until it succeeds, and shows each attempt', async ({ project }) => {
    project.script(
      'flaky',
      'n=$(cat n 2>/dev/null || echo 0); n=$((n+1)); echo $n > n',
      'echo "this is try $n, attempt $HOLDFAST_ATTEMPT of $HOLDFAST_MAX_ATTEMPTS"',
      '[ $n -ge 3 ] && exit 0',
      'echo "ssh: connect to host nas port 22: No route to host" >&2; exit 255',
    );
    const { exit, stdout, stderr } = await project.run('run', '--backoff', 'fixed:50ms', '--', './flaky');
    expect(exit).toBe(0);
    expect(stdout).toBe(
      'this is try 1, attempt 1 of 8\nthis is try 2, attempt 2 of 8\nthis is try 3, attempt 3 of 8\n',
    );
    const lines = stderr.replaceAll(/\d+(\.\d+)?m?s\b/g, 'N').split('\n');
    expect(lines).toEqual([
      '▶ #1 ./flaky   up to 8 attempts, fixed N',
      'ssh: connect to host nas port 22: No route to host',
      '  attempt 1  ✕ N  exit 255  net.unreachable  "ssh: connect to host nas port 22: No route to host"',
      '  ↻ next attempt in N (fixed N, retry 1)      Ctrl-C detaches, the task stays',
      'ssh: connect to host nas port 22: No route to host',
      '  attempt 2  ✕ N  exit 255  net.unreachable  same error',
      '  ↻ next attempt in N (fixed N, retry 2)',
      '  attempt 3  ✓ N',
      '✓ #1 succeeded after 3 attempts',
      '',
    ]);
  });

  test.for<[string, readonly string[], number]>([
    ['0 when it succeeds', ['true'], 0],
    ['its own exit code', ['--attempts', '1', 'sh', '-c', 'exit 7'], 7],
    ['128 + n when a signal ended it', ['--attempts', '1', 'sh', '-c', 'kill -KILL $$'], 137],
    ['127 when there is no such program', ['no-such-program'], 127],
    ['126 when it may not be executed', ['./not-executable'], 126],
    ['124 when it was silent for too long', ['--attempts', '1', '--attempt-timeout', '100ms', 'sleep', '100'], 124],
    ['0 where its own was called a success', ['--success-on', '0,24', 'sh', '-c', 'exit 24'], 0],
    ['1 where 0 was no success', ['--attempts', '1', '--success-on', '3', 'true'], 1],
    ['by the state, if asked: dead', ['--exit-state', '--attempts', '1', 'sh', '-c', 'exit 7'], 1],
    ['by the state, if asked: succeeded', ['--exit-state', '--success-on', '24', 'sh', '-c', 'exit 24'], 0],
    ['75 when its time is not yet', ['--at', '+1h', '--timeout', '50ms', 'true'], 75],
    ['75 when nobody waits for the next attempt', ['--backoff', 'fixed:1h', '--timeout', '1s', 'false'], 75],
    ['its own when its deadline passed', ['--backoff', 'fixed:1h', '--within', '30m', 'sh', '-c', 'exit 9'], 9],
  ])('ends with %s', async ([_, args, exit], { project }) => {
    project.write('not-executable', 'x');
    expect(await project.run('run', ...args)).toMatchObject({ exit });
  });

  test('hands the arguments on byte for byte, and to a shell only when asked', async ({ project }) => {
    const print = ['run', '--', 'printf', '%s|', 'a b', '*', '$HOME', '', '-n', '--json'];
    expect((await project.run(...print)).stdout).toBe('a b|*|$HOME||-n|--json|');
    expect((await project.run('run', '--shell', '--', 'echo "$0" | tr a-z A-Z')).stdout).toBe('/BIN/SH\n');
    expect(await project.run('run', '--shell', 'echo', 'a')).toMatchObject({ exit: 2, stdout: '' });
  });

  test('takes flags before the command only', async ({ project }) => {
    expect((await project.run('run', 'echo', '--attempts', '0', '-b')).stdout).toBe('--attempts 0 -b\n');
  });

  test('records the variables that were named, a file as input, and the folder', async ({ project }) => {
    project.write('input.txt', 'from a file\n');
    project.script('report', 'cat; pwd; echo "$GIVEN,$NAMED,$OTHER,$HOLDFAST_TASK_ID"');
    const args = ['run', '-b', '--env', 'GIVEN=1', '--env', 'NAMED', '--stdin', 'input.txt', '--', './report'];
    await project.start(args, { env: { NAMED: '2', OTHER: '3' } }).ended;
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task.input).toMatchObject({ env: { GIVEN: '1', NAMED: '2' }, cwd: project.folder });
    expect((await project.run('resume', '1')).stdout).toBe(`from a file\n${project.folder}\n1,2,,1\n`);
  });

  test('only records with -b, and says who could work it', async ({ project }) => {
    const { exit, stdout, stderr } = await project.run(
      'run',
      '-b',
      '--queue',
      'slow',
      '--priority',
      '7',
      '--',
      'touch',
      'x',
    );
    expect([exit, stdout]).toEqual([0, '○ #1 queued (cmd:touch)\n']);
    expect(stderr.split('\n')).toEqual([
      expect.stringContaining("A priority has no effect in the queue 'slow', whose order is fifo"),
      'No worker is running: start holdfast worker, or use holdfast resume 1',
      '',
    ]);
    expect(existsSync(project.path('x'))).toBe(false);
    expect(await project.run('run', '-qb', '--', 'true')).toMatchObject({ exit: 0, stdout: '2\n', stderr: '' });
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task).toMatchObject({ queue: 'slow', priority: 7, state: 'ready', source: 'cmd:touch' });
    expect((await project.run('resume')).exit).toBe(0);
    expect(existsSync(project.path('x'))).toBe(true);
  });

  test('with a key answers the first task, and runs it no second time', async ({ project }) => {
    const args = ['run', '--key', 'nightly', '--', 'sh', '-c', 'echo ran >> log'];
    expect((await project.run(...args)).exit).toBe(0);
    const second = await project.run(...args);
    expect(second).toMatchObject({ exit: 0, stdout: '✓ #1 succeeded\n' });
    expect(second.stderr).toBe('#1 has the key nightly already, so nothing new was recorded.\n');
    const other = await project.run('run', '--key', 'nightly', '--', 'echo', 'something else');
    expect(other.stderr).toContain("its input is different: sh -c 'echo ran >> log'");
    expect(readFileSync(project.path('log'), 'utf8')).toBe('ran\n');
    const { document } = await project.json<Record<string, unknown>>('run', ...args.slice(1));
    expect(document).toMatchObject({ schema: 'holdfast.run/v1', created: false, exit: 0, task: { id: 1 } });
  });

  test('with a unique key does not run twice at the same time', async ({ project }) => {
    const args = ['run', '--unique', 'backup', '--no-idempotent', '--', 'sh', '-c', 'echo ran >> log; read line < go'];
    execFileSync('mkfifo', [project.path('go')]);
    const first = project.start(args);
    await first.says('▶ #1');
    const second = project.start(args);
    await second.says('#1 has the unique key backup already, so nothing new was recorded.');
    const detached = await project.run('run', '-b', ...args.slice(1));
    expect(detached).toMatchObject({ exit: 0, stdout: expect.stringContaining('#1 running') });
    writeFileSync(project.path('go'), 'go\n');
    expect((await first.ended).exit).toBe(0);
    expect((await second.ended).exit).toBe(0);
    expect(readFileSync(project.path('log'), 'utf8')).toBe('ran\n');
    // The task has ended, so the key is free.
    const next = await project.run('run', '-bq', ...args.slice(1));
    expect(next).toMatchObject({ exit: 0, stdout: '2\n' });
  });

  test('with the key of a task that is dead says so, and ends as that task did', async ({ project }) => {
    const args = ['--key', 'k', '--attempts', '1', '--', 'sh', '-c', 'exit 7'];
    expect((await project.run('run', ...args)).exit).toBe(7);
    expect(await project.run('run', ...args)).toMatchObject({ exit: 7, stdout: expect.stringContaining('✕ #1 dead') });
    expect((await project.run('run', '--exit-state', ...args)).exit).toBe(1);
  });

  test('with the key of a task that is not finished goes on with it', async ({ project }) => {
    await project.run('run', '-b', '--key', 'k', '--', 'echo', 'done');
    expect(await project.run('run', '--key', 'k', '--', 'echo', 'done')).toMatchObject({ exit: 0, stdout: 'done\n' });
  });

  test.for<[string, readonly string[], number]>([
    ['--no-retry-on ends at once', ['--retry-on', '1-9', '--no-retry-on', '3', '--', 'sh', '-c', 'exit 3'], 1],
    ['--retry-on tries again', ['--retry-on', '127', '--', 'sh', '-c', 'exit 127'], 2],
    [
      '--permanent-if-stderr ends at once',
      ['--permanent-if-stderr', '^fatal', '--', 'sh', '-c', 'echo fatal >&2; exit 1'],
      1,
    ],
    ['--retry-if-stderr tries again', ['--retry-if-stderr', 'busy', '--', 'sh', '-c', 'echo busy >&2; exit 127'], 2],
  ])('%s', async ([_, args, executions], { project }) => {
    await project.run('run', '--attempts', '2', '--backoff', 'fixed:10ms', ...args);
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'dead', executions });
  });

  test('with --json prints one document, and what the command says on stderr', async ({ project }) => {
    const args = ['run', '--json', '--attempts', '1', '--', 'sh', '-c', 'echo out; echo err >&2; exit 5'];
    const { exit, stdout, stderr } = await project.run(...args);
    expect(exit).toBe(5);
    expect(JSON.parse(stdout)).toMatchObject({
      schema: 'holdfast.run/v1',
      created: true,
      detached: false,
      exit: 5,
      task: { id: 1, state: 'dead', reason: 'process.exit', attempts: 1 },
      history: [{ kind: 'execution', outcome: 'failure', failure: { code: '5' }, because: { step: 'max_attempts' } }],
    });
    expect(stderr).toContain('out\nerr\n');
  });

  test('keeps what a command said from the terminal of whoever looks later', async ({ project }) => {
    const evil = String.raw`printf '\033]0;owned\007\033[2J\n' >&2; exit 1`;
    await project.run('run', '--attempts', '1', '--key', 'k', '--', 'sh', '-c', evil);
    for (const args of [['list'], ['show', '1'], ['status'], ['wait'], ['run', '--key', 'k', '--', 'x']]) {
      const { stdout, stderr } = await project.run(...args);
      expect(`${stdout}${stderr}`.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
    }
    expect((await project.run('show', '1')).stdout).toContain(String.raw`\x1b`);
  });

  test('speaks ASCII where the locale does, and in colours where they are wanted', async ({ project }) => {
    const ascii = await project.start(['run', '--', 'true'], { env: { LANG: 'C' } }).ended;
    expect(ascii.stderr).toMatch(/^> #1 true {3}up to 8 attempts, exponential 5s x2 <= 1h, full jitter\n/);
    expect(ascii.stderr).toContain('+ #1 succeeded');
    const coloured = await project.start(['list'], { env: { FORCE_COLOR: '1' } }).ended;
    expect(coloured.stdout).toContain('\u001b[32m✓\u001b[0m');
    const plain = await project.start(['list', '--no-color'], { env: { FORCE_COLOR: '1' } }).ended;
    expect(plain.stdout).not.toContain('\u001b');
  });
});
