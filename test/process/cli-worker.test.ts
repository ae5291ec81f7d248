import { existsSync, readFileSync, rmSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { type HoldfastProcess, type Project, test } from './cli-process.ts';

interface Shown {
  readonly task: Record<string, unknown>;
}

type Line = Record<string, unknown>;

const lines = (stdout: string): Line[] =>
  stdout
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);

async function worker(project: Project, ...args: readonly string[]): Promise<HoldfastProcess> {
  const started = project.start(['worker', '--name', 'w1', ...args]);
  await started.says('"event":"up"');
  return started;
}

const WAITS_FOR_GO = [
  'echo started >> log',
  'while [ ! -e go ]; do sleep 0.05; done',
  'echo finished >> log',
  'echo out',
];
const STUBBORN = ['trap "" TERM', 'echo $$ > pid', 'while :; do sleep 0.05; done'];

const log = (project: Project) => readFileSync(project.path('log'), 'utf8');

describe.concurrent('holdfast worker', () => {
  test('does not take what it does not know, and status says that nobody does', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    const holdfast = await openHoldfast({ store: sqlite(project.store) });
    await holdfast.enqueue('typo_type', null);
    await holdfast.close();
    const running = await worker(project);
    await running.says('"state":"succeeded"');

    const { exit, stdout } = await project.run('status', '--check');
    expect([exit, stdout]).toEqual([
      8,
      '1 task is ready, but no running worker takes the type typo_type: start the program that defines it (no worker has taken it yet)\n',
    ]);
    running.kill('SIGTERM');
    expect((await running.ended).exit).toBe(0);
  });

  test('show and list say how far a running task is', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    const holdfast = await openHoldfast({ store: sqlite(project.store) });
    const claim = await holdfast.claim();
    claim?.progress({ done: 40, total: 100 });
    await claim?.saveCheckpoint(null);
    expect((await project.run('show', '1')).stdout).toMatch(/^progress 40 of 100, (just now|\d+s ago)$/m);
    expect((await project.run('list')).stdout).toMatch(/ since \S+: 40 of 100/);
    expect((await project.json<Shown>('show', '1')).document.task.progress).toEqual({ done: 40, total: 100 });
    await claim?.complete();
    await holdfast.close();
  });

  test('drains what is due, in JSON lines, and leaves what is not', async ({ project }) => {
    await project.run('run', '-b', '--', 'echo', 'hello');
    await project.run('run', '-b', '--attempts', '1', '--', 'sh', '-c', 'exit 4');
    await project.run('run', '-b', '--at', '+1h', '--', 'true');
    const { exit, stdout, stderr } = await project.run('worker', '--drain', '--name', 'w1', '--concurrency', '1');
    expect([exit, stderr]).toEqual([0, '']);
    const events = lines(stdout);
    expect(events.every(({ schema, worker }) => schema === 'holdfast.worker/v1' && worker === 'w1')).toBe(true);
    expect(events.map(({ event, task, state }) => [event, task, state].filter((part) => part !== undefined))).toEqual([
      ['up'],
      ['started', 1],
      ['settled', 1, 'succeeded'],
      ['started', 2],
      ['settled', 2, 'dead'],
      ['ended'],
    ]);
    expect((await project.json<Shown>('show', '1')).document.task.result).toEqual({ exit: 0, stdout: 'hello\n' });
    expect((await project.json<Shown>('show', '3')).document.task.state).toBe('scheduled');
  });

  test('takes only its queues, and only as many as it was told', async ({ project }) => {
    for (const queue of ['a', 'b', 'b', 'c']) await project.run('run', '-b', '--queue', queue, '--', 'true');
    expect((await project.run('worker', '--max-tasks', '2', '--queues', 'b, c')).exit).toBe(0);
    const left = (await project.run('list', '--ids', 'state:ready')).stdout.trim().split('\n');
    expect([left.length, left.at(-1)]).toEqual([2, '1']);
  });

  test('lets what runs finish when it is told to stop, and answers for its metrics until then', async ({ project }) => {
    project.script('waits', ...WAITS_FOR_GO);
    await project.run('run', '-b', '--', './waits');
    const started = await worker(project, '--metrics', '0');
    await started.says('"event":"started"');
    const metrics = lines(started.stdout).find(({ event }) => event === 'metrics')?.url as string;
    const get = async (path: string) => {
      const response = await fetch(new URL(path, metrics));
      return [response.status, await response.text()] as const;
    };
    expect(await get('/readyz')).toEqual([200, 'ok\n']);
    const [status, text] = await get('/metrics');
    expect([status, text]).toEqual([200, expect.stringContaining('holdfast_tasks{state="running"} 1\n')]);
    expect(text).toContain('holdfast_workers{alive="true"} 1\n');
    started.kill('SIGTERM');
    await started.says('"event":"stopping"');
    expect(await get('/healthz')).toEqual([200, 'ok\n']);
    expect(await get('/readyz')).toEqual([503, 'The worker is stopping.\n']);
    project.write('go', '');
    const { exit, stdout } = await started.ended;
    expect(exit).toBe(0);
    await expect(fetch(metrics)).rejects.toThrow('fetch failed');
    expect(lines(stdout).at(-2)).toMatchObject({ event: 'settled', state: 'succeeded' });
    expect(log(project)).toBe('started\nfinished\n');
  });

  test('told twice stops everything at once, and hands it back uncounted', async ({ project }) => {
    project.script('stubborn', ...STUBBORN);
    await project.run('run', '-b', '--kill-after', '1h', '--', './stubborn');
    const started = await worker(project, '--grace', '1h');
    await started.says('"event":"started"');
    started.kill('SIGTERM');
    await started.says('"grace_ms":3600000');
    started.kill('SIGINT');
    const { exit, stdout } = await started.ended;
    expect(exit).toBe(0);
    expect(lines(stdout).at(-2)).toMatchObject({ event: 'settled', outcome: 'interruption', state: 'ready' });
  });

  test('kills what did not end within the grace, so that no task is handed back beside its process', async ({
    project,
  }) => {
    project.script('stubborn', ...STUBBORN);
    await project.run('run', '-b', '--kill-after', '1h', '--', './stubborn');
    const started = await worker(project, '--grace', '500ms');
    await started.says('"event":"started"');
    started.kill('SIGINT');
    expect((await started.ended).exit).toBe(0);
    if (existsSync(project.path('pid'))) {
      expect(() => process.kill(Number(readFileSync(project.path('pid'), 'utf8')), 0)).toThrow('ESRCH');
    }
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('makes the store that it watches, for tasks that come later', async ({ project }) => {
    const started = await worker(project);
    await project.run('run', '-b', '--', 'true');
    await started.says('"state":"succeeded"');
    started.kill('SIGTERM');
    expect((await started.ended).exit).toBe(0);
  });

  test('notices that its store is gone', async ({ project }) => {
    const started = await worker(project);
    rmSync(project.path('.holdfast'), { recursive: true });
    const { exit, stderr } = await started.ended;
    expect(exit).toBe(7);
    expect(stderr).toContain('was removed or replaced while this process had it open');
  });

  test('stops, with what it runs, when nobody reads its lines any more', async ({ project }) => {
    project.script('patient', 'echo $$ > pid', 'exec sleep 1000');
    const started = await worker(project, '--grace', '200ms');
    started.child.stdout?.destroy();
    await project.run('run', '-b', '--', './patient');
    expect((await started.ended).exit).toBe(0);
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test.for<[string, readonly string[], number]>([
    ['a duration that is none', ['--grace', 'soon'], 78],
    ['a concurrency of none', ['--concurrency', '0'], 78],
    ['a lease that is too short', ['--lease', '10ms'], 78],
    ['a queue without a name', ['--queues', 'a,,b'], 78],
    ['a name with a line end', ['--name', 'a\nb'], 78],
    ['a flag that it does not know', ['--nope'], 2],
    ['an argument', ['now'], 2],
    ['a store that is a folder', ['-s', '/'], 7],
    ['a store that is no database', ['-s', '/etc/hostname'], 7],
  ])('refuses %s at the start', async ([_, args, exit], { project }) => {
    expect(await project.run('worker', '--drain', ...args)).toMatchObject({ exit, stdout: '' });
  });
});

describe.concurrent('a worker and others on one store', () => {
  test('a run beside a worker works its command itself, so that its output comes as it is said', async ({
    project,
  }) => {
    await project.run('run', '-b', '--', 'true');
    const started = await worker(project);
    await started.says('"event":"settled"');
    for (const _ of [1, 2, 3]) {
      const args = ['run', '-q', '--', 'sh', '-c', 'echo out; echo err >&2; exit 0'];
      expect(await project.run(...args)).toEqual({ exit: 0, stdout: 'out\n', stderr: 'err\n' });
    }
    started.kill('SIGTERM');
    const settled = lines((await started.ended).stdout).filter(({ event }) => event === 'settled');
    expect(settled.map(({ task }) => task)).toEqual([1]);
  });

  test('what the worker has taken is followed, to its output and its end', async ({ project }) => {
    project.script('waits', ...WAITS_FOR_GO, 'exit 24');
    await project.run('run', '-b', '--success-on', '24', '--key', 'k', '--', './waits');
    const started = await worker(project);
    await started.says('"event":"started"');
    const following = project.start(['run', '--key', 'k', '--success-on', '24', '--', './waits']);
    await following.says('w1 has taken it: following');
    project.write('go', '');
    expect(await following.ended).toMatchObject({ exit: 0, stdout: 'out\n' });
    expect(log(project)).toBe('started\nfinished\n');
    started.kill('SIGTERM');
    await started.ended;
  });

  test('a person who walks away from what the worker runs does not stop it', async ({ project }) => {
    project.script('waits', ...WAITS_FOR_GO);
    await project.run('run', '-b', '--', './waits');
    const started = await worker(project);
    await started.says('"event":"started"');
    const following = project.start(['resume', '1']);
    await following.says('following');
    following.kill('SIGINT');
    expect(await following.ended).toMatchObject({
      exit: 75,
      stderr: expect.stringContaining('detached. #1 goes on at w1.'),
    });
    const waiting = project.start(['wait', '1']);
    project.write('go', '');
    expect(await waiting.ended).toMatchObject({ exit: 0, stdout: '#1 ✓ succeeded\n', stderr: '' });
    started.kill('SIGTERM');
    await started.ended;
  });

  test('a task that is cancelled while it runs stops at the next renewal', async ({ project }) => {
    project.script('patient', 'echo started', 'exec sleep 1000');
    await project.run('run', '-b', '--', './patient');
    const started = await worker(project, '--lease', '1s');
    await started.says('"event":"started"');
    const cancelled = await project.run('cancel', '1');
    expect(cancelled.stdout).toBe('▶ #1 is asked to stop\n');
    await started.says('"state":"cancelled"');
    expect((await project.run('wait', '1')).exit).toBe(1);
    started.kill('SIGTERM');
    await started.ended;
  });
});
