import { describe, expect } from 'vitest';
import { ON_TERMINAL, type Project, test } from './cli-process.ts';

/** Ten dead tasks of the type `sync` and five that wait, of two sources; one more needs a person. */
async function tasks(project: Project): Promise<void> {
  const dead = Array.from({ length: 10 }, (_, n) => ({
    type: 'sync',
    source: `imap:${n % 2 ? 'a' : 'b'}`,
    state: 'dead',
    reason: n < 4 ? 'net.timeout' : 'http.503',
    error: n < 4 ? 'The call timed out' : '503 Service Unavailable',
    executions: 1,
  }));
  const waiting = Array.from({ length: 5 }, () => ({ type: 'report', source: 'db' }));
  const manual = { type: 'pay', state: 'needs_manual', reason: 'net.reset', error: 'reset', executions: 1 };
  const lines = [...dead, ...waiting, manual].map((task, n) => JSON.stringify({ key: `k${n}`, payload: {}, ...task }));
  project.write('tasks.jsonl', `${lines.join('\n')}\n`);
  expect(await project.run('import', 'tasks.jsonl')).toMatchObject({ exit: 0 });
}

describe.concurrent('with a filter', () => {
  test('list shows what matches, in the words of the filter', async ({ project }) => {
    await tasks(project);
    const ids = async (...filter: string[]) =>
      (await project.run('list', '--ids', ...filter)).stdout.trim().split('\n');
    expect(await ids('state:dead', 'source:imap:*', 'error:timed out')).toEqual(['4', '3', '2', '1']);
    expect(await ids('reason:http.* -source:*:a')).toEqual(['9', '7', '5']);
    expect(await ids('-state:dead', '-type:report')).toEqual(['16']);
    expect(await project.run('list', 'state:dead resaon:x')).toEqual({
      exit: 2,
      stdout: '',
      stderr:
        'error: unknown filter key "resaon", at column 12\n       state:dead resaon:x\n                  ^^^^^^ did you mean "reason"?   (exit 2)\n',
    });
  });

  test('wait, resume, stats and failures are of what matches', async ({ project }) => {
    await tasks(project);
    await project.run('run', '--attempts', '1', '--key', 'a', '--', 'false');
    await project.run('run', '-b', '--queue', 'later', '--', 'true');
    await project.run('run', '-b', '--', 'true');
    expect((await project.run('wait', 'state:dead', 'reason:http.*')).stdout.split('\n')).toHaveLength(7);
    expect(await project.run('resume', 'queue:later')).toMatchObject({ exit: 0 });
    expect((await project.run('list', '--ids', 'state:ready', 'type:shell_command')).stdout).toBe('19\n');
    expect(await project.run('resume', 'type:report')).toMatchObject({
      exit: 0,
      stderr: expect.stringContaining('5 that match are of other types'),
    });
    expect(await project.run('wait', 'queue:later', 'stat:x')).toMatchObject({ exit: 2 });

    const { document } = await project.json<{ total: object }>('stats', 'reason:process.*');
    expect(document.total).toMatchObject({ executions: 1, failures: 1 });
    const groups = (...terms: string[]) => project.run('failures', ...terms);
    expect((await groups('reason:process.*', 'source:cmd:*')).stdout).toContain('process.exit');
    expect((await groups('-type:shell_command')).stderr).toContain('no open groups');
    expect(await groups('stat:x')).toMatchObject({ exit: 2 });
    expect((await groups('queue:x')).stderr).toContain(
      '"queue" cannot be used here, at column 1\n       queue:x\n       ^^^^^ keys: type, source, reason',
    );
  });

  test('Ctrl-C stops an action between two batches, and says how to go on', async ({ project }) => {
    const count = 20_000;
    const lines = Array.from({ length: count }, (_, n) =>
      JSON.stringify({ type: 'report', key: `k${n}`, payload: {} }),
    );
    project.write('many.jsonl', `${lines.join('\n')}\n`);
    expect(await project.run('import', 'many.jsonl', '-q')).toMatchObject({ exit: 0, stderr: '' });
    const holding = project.start(['hold', 'type:report', '--yes'], { under: ON_TERMINAL });
    await holding.says(` of ${count}`);
    holding.type('\u0003');
    const { exit, stdout } = await holding.ended;

    expect(exit).toBe(130);
    const held = Number(/stopped: (\d+) of 20000 tasks were held, the others are unchanged/.exec(stdout)?.[1]);
    expect(held % 100).toBe(0);
    expect(stdout).toContain('go on: holdfast hold type:report');
    const { document } = await project.json<{ by_state: { held: number; ready: number } }>('status');
    expect(document.by_state).toMatchObject({ held, ready: count - held });
    expect(await project.run('hold', 'type:report', '--yes', '-q')).toMatchObject({
      exit: 0,
      stdout: `${count - held} tasks held\n`,
      stderr: '',
    });
  });

  test('db prune removes what has ended and matches', async ({ project }) => {
    await tasks(project);
    expect(await project.run('db', 'prune', 'reason:http.*', '--dry-run')).toMatchObject({
      exit: 0,
      stdout: expect.stringContaining('Would remove 6 tasks; nothing was changed.'),
    });
    expect(await project.run('db', 'prune', 'reason:http.*')).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining('6 tasks match, and nobody can be asked, so nothing was removed'),
    });
    expect((await project.run('db', 'prune', 'reason:http.*', '--yes')).stdout).toMatch(
      /dead +http\.503 +6\nRemoved 6 tasks\.\n$/,
    );
    expect((await project.run('db', 'prune', '-type:x', '--older-than', '1h', '--yes')).stdout).toBe(
      'Removed no tasks.\n',
    );
    expect(await project.run('db', 'prune', 'state:ready', '--yes')).toMatchObject({ exit: 2 });
    expect(await project.run('db', 'prune', 'type:pay', '--state', 'dead')).toMatchObject({ exit: 2 });
    expect((await project.json('db', 'prune', 'type:pay', 'state:needs_manual', '--yes')).document).toEqual({
      schema: 'holdfast.db.prune/v1',
      exit: 0,
      dry_run: false,
      total: 1,
      items: [{ state: 'needs_manual', reason: 'net.reset', count: 1 }],
    });
    expect((await project.run('list', '--ids', '--all')).stdout.split('\n')).toHaveLength(10);
  });

  test('an action shows what matches, needs a yes, and then acts on all of it', async ({ project }) => {
    await tasks(project);
    const dry = await project.run('cancel', 'type:report', '--dry-run');
    expect(dry).toMatchObject({ exit: 0, stderr: 'Nothing was changed.\n' });
    expect(dry.stdout).toMatch(/^5 tasks match\n( {2}\S #1[1-5] report.*\n){5}$/);
    expect(await project.run('cancel', 'type:report')).toMatchObject({
      exit: 2,
      stderr: expect.stringContaining('5 tasks match, and nobody can be asked, so nothing was changed'),
    });

    expect(await project.run('hold', 'type:report', '--yes', '--note', 'lunch')).toMatchObject({
      exit: 0,
      stdout: '5 tasks held\n',
    });
    expect((await project.run('show', '11')).stdout).toMatch(/hold by \S+: lunch/);
    expect(await project.run('release', 'source:db', '--yes')).toMatchObject({ exit: 0, stdout: '5 tasks released\n' });
    expect((await project.json('cancel', 'type:report', '--yes')).document).toEqual({
      schema: 'holdfast.cancel.filter/v1',
      exit: 0,
      dry_run: false,
      matches: 5,
      sample: [],
      done: 5,
      requested: 0,
      skipped: {},
    });
    expect(await project.run('retry', 'reason:http.*', '--yes')).toMatchObject({
      exit: 0,
      stdout: '6 tasks made due\n',
    });
    expect(await project.run('resolve', 'reason:net.reset', '--as', 'dead', '--yes')).toMatchObject({
      exit: 0,
      stdout: '1 task resolved\n',
    });
    expect((await project.run('list', 'state:dead', '--ids')).stdout).toBe('16\n4\n3\n2\n1\n');
  });

  test('an action refuses what it cannot do', async ({ project }) => {
    await tasks(project);
    for (const [args, problem] of [
      ['hold state:dead --yes', 'hold cannot change what is dead'],
      ['retry state:succeeded --yes', 'a retry would do them a second time'],
      ['resolve type:pay --yes', '--as is missing'],
      ['resolve 1 2 --as dead', 'resolve takes one task, or a filter'],
    ] as const) {
      expect(await project.run(...args.split(' '))).toMatchObject({
        exit: 2,
        stderr: expect.stringContaining(problem),
      });
    }
  });

  test('inbox shows what needs a person, the oldest first, and how to answer', async ({ project }) => {
    await tasks(project);
    expect(await project.run('inbox', 'type:other')).toEqual({
      exit: 0,
      stdout: '',
      stderr: 'Nothing waits for a person.\n',
    });
    const [from, to] = [project.write('a', 'a'), project.write('b', 'b')];
    const move = (reason: string) => ({
      key: reason,
      type: 'file_move',
      state: 'needs_manual',
      reason,
      payload: { from, to },
      executions: 1,
    });
    project.write(
      'moves.jsonl',
      `${JSON.stringify(move('fs.dest_exists'))}\n${JSON.stringify(move('fs.permission'))}\n`,
    );
    expect(await project.run('import', 'moves.jsonl')).toMatchObject({ exit: 0 });

    const { stdout } = await project.run('inbox', 'type:file_move');
    expect(stdout).toContain(`keep both   holdfast resolve 17 --as keep-both   (what is there becomes ${to}.before-17`);
    expect(stdout).toMatch(new RegExp(`${to} {2}1 byte, changed \\d`));
    expect(stdout).toMatch(new RegExp(`${from}  owner \\d+, group \\d+, mode 0644`));
    const { document } = await project.json<{
      total: number;
      items: { task: { id: number }; since: string; choices: { as: string; command: string }[] }[];
    }>('inbox', '--limit', '2');
    expect(document.total).toBe(3);
    expect(document.items.map(({ task }) => task.id)).toEqual([16, 17]);
    expect(Number.isNaN(Date.parse(document.items[0]?.since ?? ''))).toBe(false);
    expect(document.items[1]?.choices.map(({ as }) => as)).toEqual(['keep-both', 'overwrite', 'skip', 'succeeded']);
    expect(document.items[1]?.choices[0]).toMatchObject({
      answer: 'retry',
      command: 'holdfast resolve 17 --as keep-both',
    });
    expect(await project.run('inbox', 'state:dead')).toMatchObject({ exit: 2 });
  });
});
