import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect, onTestFinished } from 'vitest';
import { Project, test } from './cli-process.ts';

interface Shown {
  readonly task: Record<string, unknown>;
  readonly history: readonly Record<string, unknown>[];
}

/** Says its number, and ends when it is told to, as any program does. */
const PATIENT = ['echo $$ >> pids', 'echo started', '[ -e go ] && exit 0', 'exec sleep 1000'];

/** Hears of no SIGTERM. */
const STUBBORN = ['trap "" TERM', 'echo $$ >> pids', 'echo started', 'while :; do sleep 0.05; done'];

const pids = (project: Project) => readFileSync(project.path('pids'), 'utf8').trim().split('\n').map(Number);

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that nobody has waited for yet runs no more.
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe.concurrent('Ctrl-C', () => {
  test('between attempts exits at once; the task stays, and resume goes on with it', async ({ project }) => {
    project.script('once', '[ -e go ] && exit 0; touch go; exit 3');
    const run = project.start(['run', '--backoff', 'fixed:1h', '--', './once']);
    await run.says('next attempt in 1h');
    run.kill('SIGINT');
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(75);
    expect(stderr).toContain(
      'detached. #1 stays on disk (1 of 8 attempts used).\n' +
        '  continue here  holdfast resume 1        in the background  holdfast worker\n',
    );
    const resumed = await project.run('resume', '1', '--now');
    expect(resumed).toMatchObject({ exit: 0, stderr: expect.stringContaining('✓ #1 succeeded after 2 attempts') });
  });

  test.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
    'during an attempt stops its processes, uncounted: %s',
    async (signal, { project }) => {
      project.script('patient', ...PATIENT);
      const run = project.start(['run', '--', './patient']);
      await run.says('started');
      run.kill(signal);
      const { exit, stderr } = await run.ended;
      expect(exit).toBe(75);
      expect(stderr).toContain('interrupted, not counted\ndetached. #1 stays on disk (0 of 8 attempts used).');
      expect(pids(project).filter(lives)).toEqual([]);
      const { document } = await project.json<Shown>('show', '1');
      expect(document.task).toMatchObject({ state: 'ready', attempts: 0, executions: 1, running: null });
      expect(document.history).toMatchObject([{ outcome: 'interruption', charge: 'nobody' }]);
      project.write('go', '');
      expect(await project.run('resume')).toMatchObject({ exit: 0, stdout: 'started\n' });
    },
  );

  test('during an attempt whose end cannot be written says so, and another worker takes the task over', async ({
    project,
  }) => {
    project.script('patient', ...PATIENT);
    const run = project.start(['run', '--', './patient']);
    await run.says('started');
    const locked = new Database(project.store);
    locked.exec('BEGIN IMMEDIATE');
    run.kill('SIGINT');
    const { exit, stderr } = await run.ended;
    locked.close();
    expect(exit).toBe(75);
    expect(stderr).toContain('detached. #1 was stopped here, but that could not be recorded. A worker takes it over.');
    expect(pids(project).filter(lives)).toEqual([]);
    project.write('go', '');
    expect(await project.run('worker', '--drain')).toMatchObject({ exit: 0 });
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task).toMatchObject({ state: 'succeeded', attempts: 0, recoveries: 0 });
  });

  test('lets a command that ends well in its time succeed', async ({ project }) => {
    project.script('tidy', 'trap "echo tidied; exit 0" TERM', 'echo started', 'while :; do sleep 0.05; done');
    const run = project.start(['run', '--', './tidy']);
    await run.says('started');
    run.kill('SIGINT');
    expect(await run.ended).toMatchObject({ exit: 75, stdout: 'started\ntidied\n' });
  });

  test('twice kills at once', async ({ project }) => {
    project.script('stubborn', ...STUBBORN);
    const run = project.start(['run', '--kill-after', '1h', '--', './stubborn']);
    await run.says('started');
    run.kill('SIGINT');
    await run.says('stopping the running tasks. Ctrl-C again kills them at once');
    run.kill('SIGINT');
    expect((await run.ended).exit).toBe(75);
    expect(pids(project).filter(lives)).toEqual([]);
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('that npx passes on, although the terminal has sent it already, is one', async ({ project }) => {
    project.script(
      'tidy',
      'trap "sleep 0.3; echo tidied; exit 0" TERM',
      'echo started',
      'while :; do sleep 0.05; done',
    );
    const run = project.start(['run', '--', './tidy']);
    await run.says('started');
    run.kill('SIGINT');
    run.kill('SIGINT');
    expect(await run.ended).toMatchObject({ stdout: 'started\ntidied\n' });
  });

  test('kills after --kill-after', async ({ project }) => {
    project.script('stubborn', ...STUBBORN);
    const run = project.start(['run', '--kill-after', '100ms', '--', './stubborn']);
    await run.says('started');
    run.kill('SIGINT');
    expect((await run.ended).exit).toBe(75);
    expect(pids(project).filter(lives)).toEqual([]);
  });

  test('on what must not run twice asks a person, who is not let off with a retry', async ({ project }) => {
    project.script('patient', ...PATIENT);
    const run = project.start(['run', '--no-idempotent', '--', './patient']);
    await run.says('started');
    run.kill('SIGINT');
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(75);
    expect(stderr).toContain('⚑ #1 needs a person: It was interrupted while running, and it is not idempotent');
    expect(stderr).toContain('it did not   holdfast resolve 1 --as retry');

    const refused = await project.run('retry', '1');
    expect(refused).toMatchObject({ exit: 5, stdout: '' });
    expect(refused.stderr).toContain('may have happened already');
    expect((await project.run('resume', '1')).exit).toBe(4);
    project.write('go', '');
    expect((await project.run('retry', '1', '--accept-duplicate', '--note', 'looked')).exit).toBe(0);
    expect((await project.run('resume', '1')).exit).toBe(0);
    const { history } = (await project.json<Shown>('show', '1')).document;
    expect(history).toMatchObject([
      { outcome: 'interruption', next: 'needs_manual' },
      { kind: 'action', verb: 'retry', note: 'looked', from: 'needs_manual' },
      { outcome: 'success' },
    ]);
  });

  test('is what the end of --timeout is too', async ({ project }) => {
    const run = project.start(['run', '--timeout', '500ms', '--json', '--', 'sleep', '1000']);
    const { exit, stdout } = await run.ended;
    expect(exit).toBe(75);
    expect(JSON.parse(stdout)).toMatchObject({ detached: true, exit: 75, task: { state: 'ready', attempts: 0 } });
  });

  test('before anything was recorded ends as usual', async ({ project }) => {
    const run = project.start(['wait']);
    run.kill('SIGINT');
    expect((await run.ended).exit).toBe(130);
  });
});

describe.concurrent('a reader that goes away', () => {
  test('detaches a run quietly', async ({ project }) => {
    const run = project.start(['run', '--', 'sh', '-c', 'echo $$ >> pids; while :; do echo y; done']);
    await run.says('y\ny\n');
    run.child.stdout?.destroy();
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(75);
    expect(stderr).not.toContain('EPIPE');
    expect(pids(project).filter(lives)).toEqual([]);
  });

  test('ends a list quietly', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    const list = project.start(['list']);
    list.child.stdout?.destroy();
    expect(await list.ended).toMatchObject({ exit: 0, stderr: '' });
  });
});

describe.concurrent('a full disk under stdout', () => {
  const intoFull = { under: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] };

  test.each([
    ['a result', ['list'], 1],
    ['a document', ['list', '--json'], 1],
    ['the refusal of a document', ['show', '99', '--json'], 1],
    ['help', ['--help'], 1],
    ['what a run says of its task', ['run', '-b', '--', 'true'], 125],
    ['the document of a run', ['run', '--json', '--', 'true'], 125],
  ])('is told of, for %s', async (_, args, code) => {
    const project = new Project();
    onTestFinished(() => project.remove());
    await project.run('run', '-b', '--', 'true');
    const { exit, stderr } = await project.start(args, intoFull).ended;
    expect(exit).toBe(code);
    expect(stderr).toMatch(/^error: the output cannot be written: no space left on device \(ENOSPC\)$/m);
    expect(stderr).not.toContain('foresee');
  });

  test('detaches a run whose output is lost, and is told of once', async ({ project }) => {
    const run = project.start(['run', '--', 'sh', '-c', 'while :; do echo y; done'], intoFull);
    const { exit, stderr } = await run.ended;
    expect(exit).toBe(75);
    expect(stderr.match(/the output cannot be written: no space left on device \(ENOSPC\)/g)).toHaveLength(1);
  });
});

describe.concurrent('kill -9', () => {
  test('of a foreground run loses nothing: resume recovers the task, uncharged, and runs it', async ({ project }) => {
    project.script('patient', ...PATIENT);
    const run = project.start(['run', '--', './patient']);
    await run.says('started');
    run.kill('SIGKILL');
    await run.ended;
    // What the run had started lives on without it, in a session of its own.
    for (const pid of pids(project)) process.kill(pid, 'SIGKILL');
    project.write('go', '');

    const resumed = await project.run('resume', '1');
    expect(resumed).toMatchObject({ exit: 0, stdout: 'started\n' });
    expect(resumed.stderr).toMatch(/attempt 1 {2}⊘ \S+ {2}lost with foreground-\d+\n {2}↻ next attempt at once\n/);
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task).toMatchObject({ state: 'succeeded', executions: 2, attempts: 0 });
    expect(document.history).toMatchObject([{ outcome: 'loss', charge: 'nobody' }, { outcome: 'success' }]);
  });

  test('of a run whose command must not run twice leaves it to a person', async ({ project }) => {
    project.script('patient', ...PATIENT);
    const run = project.start(['run', '--no-idempotent', '--', './patient']);
    await run.says('started');
    run.kill('SIGKILL');
    await run.ended;
    for (const pid of pids(project)) process.kill(pid, 'SIGKILL');
    const resumed = await project.run('resume');
    expect(resumed.exit).toBe(4);
    expect(resumed.stderr).toContain('its effect may have happened');
  });
});
