import { readFileSync } from 'node:fs';
import { describe, expect, vi } from 'vitest';
import { type HoldfastProcess, ON_TERMINAL, type Project, test } from './cli-process.ts';

const [ENTER, LEAVE] = ['\u001b[?1049h', '\u001b[?1049l'];

/** A terminal with a dead task and a waiting one, on which `top` has drawn its first screen. */
async function opened(project: Project, env: Record<string, string> = {}): Promise<HoldfastProcess> {
  await project.run('run', '--attempts', '1', '--', 'sh', '-c', 'echo went wrong >&2; exit 3');
  await project.run('run', '--detach', '--', 'true');
  const top = project.start(['top'], { under: ON_TERMINAL, env: { COLUMNS: '100', ...env } });
  await top.says('[1 Tasks]');
  await top.says('went wrong');
  return top;
}

/** The process that has the terminal: `script` starts it, perhaps by a shell. */
function inner({ pid }: HoldfastProcess): number {
  for (let found = pid as number; ; ) {
    const children = readFileSync(`/proc/${found}/task/${found}/children`, 'utf8').trim();
    if (children === '') return found;
    found = Number(children.split(' ')[0]);
  }
}

const read = (project: Project, name: string) => readFileSync(project.path(name), 'utf8');

function isRestored(stdout: string): boolean {
  return stdout.lastIndexOf(LEAVE) > stdout.lastIndexOf(ENTER) && stdout.includes(ENTER);
}

describe.runIf(process.platform === 'linux').concurrent('holdfast top', () => {
  test('shows lists and what is selected, asks before it acts, and ends with q', async ({ project }) => {
    const top = await opened(project);
    top.type('/');
    await top.says('filter: _');
    top.type('state:dead\r');
    top.type('\r');
    await top.says('tasks › 1');
    await top.says('exit 3');
    top.type('e');
    await top.says('is dead');
    top.type('r');
    await top.says('Retry #1 now?');
    top.type('n');
    await top.says('Nothing was changed.');
    top.type('r');
    top.type('y');
    await top.says('is due now, in a new round');
    top.type('q');
    top.type('2');
    await top.says('[2 Failures]');
    top.type('\t');
    await top.says('[3 Sources]');
    top.type('q');
    const { exit, stdout } = await top.ended;
    expect([exit, isRestored(stdout)]).toEqual([0, true]);
    expect((await project.json<{ task: { state: string } }>('show', '1')).document.task.state).toBe('ready');
  });

  test('asks about the state that a task has, and does nothing if it has changed before the answer', async ({
    project,
  }) => {
    const top = await opened(project);
    top.type('/');
    top.type('state:ready,held\r');
    top.type('h');
    await top.says('Hold #2?');
    top.type('y');
    await top.says('#2 is held');
    top.type('h');
    await top.says('Release #2?');
    await project.run('release', '2');
    top.type('y');
    await top.says('Task #2 has changed: it was held');
    top.type('2');
    await top.says('[2 Failures]');
    top.type('a');
    await top.says('Acknowledge');
    top.type('q');
    await top.says('Nothing was changed.');
    top.type('q');
    expect(await top.ended).toMatchObject({ exit: 0 });
    const { document } = await project.json<{ items: { state: string }[] }>('failures');
    expect(document.items.map(({ state }) => state)).toEqual(['open']);
  });

  test('says what is wrong with a filter, which can then be corrected', async ({ project }) => {
    const top = await opened(project);
    top.type('/');
    top.type('colour:red\r');
    await top.says('unknown filter key "colour"');
    await top.says('filter: colour:red_');
    top.type('\u007f'.repeat('colour:red'.length));
    await top.says('filter: _');
    top.type('state:held\r');
    await top.says('No task');
    top.type('\u001b[200~rq\u001b[201~');
    top.type('q');
    expect(await top.ended).toMatchObject({ exit: 0 });
  });

  test.for(['top', 'list --watch'])(
    'holdfast %s ends by itself, and not by a crash of Node, when its terminal is closed',
    async (words, { project }) => {
      await project.run('run', '--detach', '--', 'true');
      // The shell lives on, to write how it ended.
      const onTerminal = [
        'sh',
        '-c',
        'exec script -qec "trap : HUP; echo began; $*; echo \\$? > code" /dev/null',
        'sh',
      ];
      const started = project.start(words.split(' '), { under: onTerminal });
      await started.says('began');
      await started.says(words === 'top' ? '[1 Tasks]' : 'q: quit');
      // Who has the other end of the terminal is gone.
      started.kill('SIGKILL');
      await vi.waitFor(() => expect(read(project, 'code')).toMatch(/^\d+\n$/), { timeout: 15_000 });
      expect(read(project, 'code')).toBe('0\n');
    },
  );

  test.for(['SIGTERM', 'SIGHUP', 'SIGINT'] as const)('restores the terminal after %s', async (signal, { project }) => {
    const top = await opened(project);
    process.kill(inner(top), signal);
    expect(isRestored((await top.ended).stdout)).toBe(true);
  });

  test('restores the terminal before it reports a crash', async ({ project }) => {
    const crash = "process.on('SIGUSR2', () => { throw new Error('a planted crash'); });";
    const top = await opened(project, { NODE_OPTIONS: `--import=${project.write('crash.mjs', crash)}` });
    process.kill(inner(top), 'SIGUSR2');
    const { stdout } = await top.ended;
    expect(isRestored(stdout)).toBe(true);
    expect(stdout.slice(stdout.lastIndexOf(LEAVE))).toContain('a planted crash');
  });

  test('gives the terminal back while it is stopped, and draws again afterwards', async ({ project }) => {
    const top = await opened(project);
    const pid = inner(top);
    process.kill(pid, 'SIGTSTP');
    await top.says(LEAVE);
    while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await new Promise(setImmediate);
    process.kill(pid, 'SIGCONT');
    await top.says(/\[\?1049l[\s\S]*\[\?1049h[\s\S]*1 Tasks/);
    top.type('q');
    expect(isRestored((await top.ended).stdout)).toBe(true);
  });

  test('is not stopped by Ctrl-Z where no shell could continue it', async ({ project }) => {
    const top = await opened(project);
    top.type('\u001a');
    top.type('2');
    await top.says('[2 Failures]');
    top.type('q');
    const { exit, stdout } = await top.ended;
    expect([exit, stdout.split(LEAVE).length]).toEqual([0, 2]);
  });

  test('has no colours with NO_COLOR, and only ASCII in a locale without UTF-8', async ({ project }) => {
    const top = await opened(project, { NO_COLOR: '1', LC_ALL: 'C' });
    top.type('q');
    const { stdout } = await top.ended;
    // biome-ignore lint/suspicious/noControlCharactersInRegex: colours are control sequences
    expect(stdout).not.toMatch(/\u001b\[[0-9;]*m/);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: everything but ASCII
    expect(stdout).not.toMatch(/[^\x00-\x7f]/);
  });

  test('refuses a pipe and a dumb terminal, and says what to call instead', async ({ project }) => {
    await project.run('run', '--detach', '--', 'true');
    const piped = await project.run('top');
    expect([piped.exit, piped.stderr]).toEqual([2, expect.stringContaining('holdfast top --once')]);
    const dumb = project.start(['top'], { under: ON_TERMINAL, env: { TERM: 'dumb' } });
    expect(await dumb.ended).toMatchObject({ exit: 2, stdout: expect.stringContaining('holdfast status') });
  });
});
