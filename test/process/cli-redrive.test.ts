import { readFileSync } from 'node:fs';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

/** So many commands that died while the file `up` was missing. */
async function deadCommands(project: Project, count: number, more: object = {}): Promise<void> {
  project.script('call', 'echo "$1" >> calls', 'test -f up');
  const lines = Array.from({ length: count }, (_, i) =>
    JSON.stringify({
      type: 'shell_command',
      key: `old-${i}`,
      payload: { argv: ['./call', String(i + 1)], cwd: project.folder },
      state: 'dead',
      reason: 'process.exit',
      executions: 1,
      error: 'exit 1',
      ...more,
    }),
  );
  project.write('tasks.jsonl', `${lines.join('\n')}\n`);
  const imported = await project.run('import', 'tasks.jsonl');
  expect(imported).toMatchObject({ exit: 0 });
}

const tidy = (text: string) =>
  text
    .replaceAll(/\d\d\d\d-\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d/g, 'TIME')
    .replaceAll(/\S+ ago|just now/g, 'WHEN')
    .replaceAll(/running for \w+/g, 'running for LONG')
    .replaceAll(/ {2,}/g, ' ');

describe.concurrent('holdfast redrive', () => {
  test('says with --dry-run what it would do, and then does it', async ({ project }) => {
    await deadCommands(project, 12);
    const dry = await project.run('redrive', 'reason:process.*', '--rate', '4/s', '--dry-run');
    expect(dry).toEqual({
      exit: 0,
      stdout: '12 tasks match, which takes 2.8s at least\n',
      stderr: 'Nothing was changed.\n',
    });
    expect((await project.run('redrives')).stderr).toBe('There are no redrives.\n');

    const started = await project.run('redrive', 'reason:process.*', '--rate', '4/s', '--note', 'it is up again');
    expect(started).toMatchObject({ exit: 0, stdout: '↻ redrive 1 puts 12 tasks back\n' });
    expect(started.stderr).toContain(
      'Look at it: holdfast redrives show 1        stop it: holdfast redrives cancel 1\n',
    );
    expect(started.stderr).toContain('No worker is running');
    expect(tidy((await project.run('redrives')).stdout)).toContain(
      '1 running 1/12 0 0 11 state:dead reason:process.* it is up again',
    );
    expect(tidy((await project.run('redrives', 'show', '1')).stdout)).toContain(
      'filter state:dead reason:process.*\nrate 4/s\ntasks 1 of 12 put back, 11 left\n' +
        'went 0 succeeded, 0 failed again as before, 0 had another outcome, 1 without an outcome yet\n',
    );
    expect(tidy((await project.run('show', '2')).stdout)).toContain('redrive it waits in redrive 1 (by ');
    expect((await project.run('show', '1')).stdout).toMatch(/redrive by \S+: Redrive 1: it is up again +→ ready/);

    project.write('up', '');
    const worker = project.start(['worker']);
    const states = async () => (await project.json<{ redrive: { state: string } }>('redrives', 'show', '1')).document;
    while ((await states()).redrive.state === 'running');
    worker.kill('SIGTERM');
    await worker.ended;

    expect((await project.json('redrives')).document).toMatchObject({
      schema: 'holdfast.redrives/v1',
      items: [{ id: 1, state: 'done', selected: 12, put_back: 12, succeeded: 12, left: 0, per_second: 4 }],
    });
  });

  test('resume works what a redrive puts back until it ends', async ({ project }) => {
    await deadCommands(project, 12);
    project.write('up', '');
    await project.run('redrive', 'state:dead', '--note', 'it is up again', '--rate', '100/s', '--yes');
    const { exit, stderr } = await project.run('resume', '--concurrency', '4');
    expect(exit).toBe(0);
    expect(stderr).toContain('Redrive 1 puts 11 more tasks back: waiting for them.');
    expect(readFileSync(project.path('calls'), 'utf8').trimEnd().split('\n')).toHaveLength(12);
    expect((await project.json('redrives', 'show', '1')).document).toMatchObject({
      redrive: { state: 'done', succeeded: 12 },
    });
  });

  test('resume ends with a redrive that stops itself, and says why', async ({ project }) => {
    await deadCommands(project, 12, { retry: { max_attempts: 1 } });
    await project.run('redrive', 'state:dead', '--note', 'try', '--yes');
    const { exit, stderr } = await project.run('resume');
    expect(exit).toBe(1);
    expect(stderr).toContain('Redrive 1 is stopped: ');
    expect(stderr).toContain('holdfast redrives show 1');
  });

  test('resume leaves a redrive that is slow at an interrupt or after --timeout', async ({ project }) => {
    await deadCommands(project, 3);
    project.write('up', '');
    await project.run('redrive', 'state:dead', '--note', 'slowly', '--rate', '1/h', '--yes');
    const resuming = project.start(['resume']);
    await resuming.says('puts 2 more tasks back');
    resuming.kill('SIGINT');
    expect((await resuming.ended).exit).toBe(75);
    expect((await project.json('redrives', 'show', '1')).document).toMatchObject({ redrive: { state: 'running' } });
  });

  test('pauses, resumes and cancels', async ({ project }) => {
    await deadCommands(project, 3);
    await project.run('redrive', 'state:dead', '--note', 'x', '--yes');
    const paused = await project.run('redrives', 'pause', '1', '--note', 'lunch');
    expect(paused.exit).toBe(0);
    expect(tidy(paused.stdout)).toMatch(/^redrive 1: paused WHEN by \S+: lunch; 1 of 3 put back\n$/);
    expect((await project.json('status')).document).toMatchObject({
      attention: expect.arrayContaining([
        expect.objectContaining({ kind: 'redrive_paused', command: 'holdfast redrives show 1' }),
      ]),
    });
    const again = await project.run('redrives', 'pause', '1');
    expect([again.exit, again.stderr]).toEqual([
      5,
      expect.stringContaining('Redrive 1 is paused, so it cannot be paused.'),
    ]);
    expect((await project.json('redrives', 'resume', '1')).document).toMatchObject({
      schema: 'holdfast.redrives.resume/v1',
      exit: 0,
      redrive: { id: 1, state: 'running', by: { note: null } },
    });
    expect((await project.run('redrives', 'cancel', '#1')).exit).toBe(0);
    expect(tidy((await project.run('redrives', 'show', '1')).stdout)).toMatch(/state cancelled WHEN by /);
  });

  test('stops itself, and status says so', async ({ project }) => {
    await deadCommands(project, 3);
    await project.run('redrive', 'state:dead', '--note', 'x');
    const worker = project.start(['worker']);
    const states = async () => (await project.json<{ redrive: { state: string } }>('redrives', 'show', '1')).document;
    while ((await states()).redrive.state === 'running');
    worker.kill('SIGTERM');
    await worker.ended;

    const because = 'The first task failed again as before, so the 2 that are left stay as they are.';
    expect((await project.json('redrives', 'show', '1')).document).toMatchObject({
      schema: 'holdfast.redrives.show/v1',
      redrive: { state: 'stopped', because, put_back: 1, failed_again: 1, left: 2 },
      skipped_by: {},
    });
    expect(tidy((await project.run('status')).stdout)).toContain(`redrive 1 stopped itself WHEN: ${because}`);
  });

  test.for<[string, string[], number, string]>([
    ['without a filter', ['redrive', '--note', 'x'], 2, 'a filter is missing'],
    ['without a note', ['redrive', 'state:dead'], 2, '--note is missing'],
    ['for tasks that wait', ['redrive', 'state:ready', '--note', 'x'], 2, 'a redrive cannot put back what is ready'],
    ['for an unknown key', ['redrive', 'fingerprnt:1', '--note', 'x'], 2, 'did you mean "fingerprint"?'],
    ['at no rate', ['redrive', 'state:dead', '--note', 'x', '--rate', 'fast'], 2, 'rate must be a rate'],
    [
      'since no time',
      ['redrive', 'state:dead', '--note', 'x', '--ended-after', 'noon'],
      2,
      '--ended-after is not a time',
    ],
    ['that is not there', ['redrives', 'show', '7'], 3, 'There is no redrive 7'],
    ['that is no number', ['redrives', 'pause', 'x'], 2, 'the number of a redrive'],
  ])('is refused %s', async ([, args, exit, words], { project }) => {
    await deadCommands(project, 1);
    const refused = await project.run(...args);
    expect([refused.exit, refused.stderr]).toEqual([exit, expect.stringContaining(words)]);
  });

  test('of nothing starts nothing', async ({ project }) => {
    await deadCommands(project, 1);
    expect(await project.run('redrive', 'type:other', '--note', 'x')).toEqual({
      exit: 0,
      stdout: '',
      stderr: 'No task matches, so nothing was started.\n',
    });
    const { document } = await project.json('redrive', 'state:dead', '--ended-before', '1d', '--note', 'x');
    expect(document).toMatchObject({
      schema: 'holdfast.redrive/v1',
      exit: 0,
      dry_run: false,
      plan: { matches: 0 },
      redrive: null,
    });
    const dry = await project.json('redrive', 'state:dead', '--dry-run');
    expect(dry.document).toMatchObject({
      dry_run: true,
      plan: { matches: 1, may_run_twice: 0, must_not_run_twice: 0, takes_at_least_ms: 0 },
    });
  });
});
