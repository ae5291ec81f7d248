import { describe, expect } from 'vitest';
import { ON_TERMINAL, type Project, test } from './cli-process.ts';

interface Events {
  readonly items: readonly {
    readonly at: string;
    readonly task: number;
    readonly type: string;
    readonly event: { readonly kind: string };
  }[];
  readonly searched_to: string | null;
}

/** One that is dead, one that succeeded at once, and one that a person held. */
async function tasks(project: Project): Promise<void> {
  await project.run('run', '--attempts', '1', '--', 'sh', '-c', 'echo broken >&2; exit 3');
  await project.run('run', '--', 'true');
  await project.run('run', '-b', '--', 'true');
  await project.run('hold', '3', '--note', 'not today');
}

describe.concurrent('holdfast events', () => {
  test('lists what happened to tasks, the newest last', async ({ project }) => {
    expect(await project.run('events')).toMatchObject({ exit: 7 });
    await tasks(project);
    const { stdout } = await project.run('events');
    expect(stdout).toMatch(
      /^\d\d:\d\d:\d\d {2}✕ #1 shell_command {2}cmd:sh {2}process.exit: exit 3: broken {2}→ dead\n\d\d:\d\d:\d\d {2}⏸ #3 shell_command {2}\S+ {2}hold by \S+: not today {2}→ held\n$/,
    );
    const { document } = await project.json<Events>('events');
    expect(document).toMatchObject({
      schema: 'holdfast.events/v1',
      items: [
        { task: 1, type: 'shell_command', source: 'cmd:sh', event: { kind: 'execution', next: 'dead' } },
        { task: 3, event: { kind: 'action', verb: 'hold', note: 'not today' } },
      ],
      searched_to: null,
    });
    const lines = (await project.run('events', '--jsonl')).stdout.trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(document.items);
  });

  test('lists what fits a filter', async ({ project }) => {
    await tasks(project);
    const found = async (...terms: string[]) =>
      (await project.json<Events>('events', ...terms)).document.items.map(({ task }) => task);
    expect(await found('state:dead')).toEqual([1]);
    expect(await found('source:cmd:sh', 'error:BROKEN', 'executions:1')).toEqual([1]);
    expect(await found('-reason:process.*')).toEqual([3]);
    expect(await found('until:1h')).toEqual([]);
    expect(await found('--limit', '1')).toEqual([3]);
    expect((await project.run('events', 'priority:3..')).stderr).toContain(
      '"priority" cannot be used here, at column 1',
    );
  });

  test('lists what happens to sources and queues too', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    const follow = project.start(['events', '-f', '--jsonl', 'source:cmd:*']);
    await project.run('sources', 'hold', 'cmd:true', '--for', '2h', '--note', 'the host moves');
    await project.run('queues', 'pause', 'default', '--note', 'too much');
    await project.run('hold', '1');
    const { stdout } = await project.run('events');
    expect(stdout.split('\n').map((line) => line.slice(10))).toEqual([
      expect.stringMatching(/^⏸ source cmd:true {2}held for 2h by \S+: the host moves$/),
      expect.stringMatching(/^⏸ queue default {2}paused by \S+: too much$/),
      expect.stringMatching(/^⏸ #1 shell_command {2}cmd:true {2}hold by \S+ {2}→ held$/),
      '',
    ]);
    const { document } = await project.json<Events>('events', '-source:cmd:*');
    expect(document.items).toMatchObject([
      { task: null, type: null, queue: 'default', event: { kind: 'change', change: 'pause', note: 'too much' } },
    ]);
    expect((await project.run('events', 'type:shell_command', '--limit', '5')).stdout).not.toContain('source ');
    await follow.says('"verb":"hold"');
    expect(follow.stdout.split('\n').map((line) => /"change":"\w+"|"verb":"\w+"/.exec(line)?.[0])).toEqual([
      '"change":"hold"',
      '"verb":"hold"',
      undefined,
    ]);
    follow.kill('SIGINT');
    expect((await follow.ended).exit).toBe(0);
  });

  test('goes on with what happens until Ctrl-C', async ({ project }) => {
    await tasks(project);
    const follow = project.start(['events', '-f', '--limit', '1', 'state:dead']);
    const lines = project.start(['events', '-f', '--limit', '1', '--jsonl']);
    await follow.says('#1 shell_command');
    await lines.says('"verb":"hold"');
    await project.run('run', '--attempts', '1', '--', 'false');
    await follow.says('#4 shell_command');
    await lines.says('"task":4');
    follow.kill('SIGINT');
    lines.kill('SIGTERM');
    expect(await follow.ended).toMatchObject({ exit: 0, stdout: expect.not.stringContaining('#3') });
    expect(await lines.ended).toMatchObject({ exit: 0 });
    expect(await project.run('events', '-f', '--json')).toMatchObject({ exit: 2 });
  });
});

describe.concurrent('holdfast list --watch', () => {
  test('draws the list again until q, and needs a terminal', async ({ project }) => {
    await tasks(project);
    const piped = await project.run('list', '--watch');
    expect(piped).toMatchObject({ exit: 2, stdout: '' });
    expect(piped.stderr).toContain('needs a terminal');
    expect(piped.stderr).toContain('holdfast events -f');

    const watch = project.start(['list', '--watch', 'state:held,cancelled'], { under: ON_TERMINAL });
    await watch.says('⏸');
    await project.run('cancel', '3');
    await watch.says('⊘');
    watch.type('q');
    const { exit, stdout } = await watch.ended;
    expect([exit, stdout.endsWith('\u001b[?1049l')]).toEqual([0, true]);
  });
});
