import { chmodSync, existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { Project, test } from './cli-process.ts';

interface Item {
  readonly id: number;
  readonly state: string;
}

interface Page {
  readonly items: readonly Item[];
  readonly next: string | null;
  readonly total: { readonly value: number | null };
}

describe.concurrent('where there is no store', () => {
  let project: Project;
  beforeAll(() => {
    project = new Project();
  });
  afterAll(() => project.remove());

  test.for([
    ['list'],
    ['status'],
    ['show', '1'],
    ['logs', '1'],
    ['sources'],
    ['sources', 'hold', 'x'],
    ['queues'],
    ['queues', 'resume', 'x'],
    ['workers'],
    ['workers', 'end', 'x'],
    ['wait'],
    ['resume'],
    ['retry', '1'],
    ['cancel', '1'],
    ['hold', '1'],
    ['release', '1'],
    ['resolve', '1', '--as', 'dead'],
  ])('%s says so, and makes none', async (args) => {
    const { exit, stdout, stderr } = await project.run(...args);
    expect([exit, stdout]).toEqual([7, '']);
    expect(stderr).toContain(`error: there is no store at ${project.store}\n`);
    expect(existsSync(project.store)).toBe(false);
  });

  test('programs are told too', async () => {
    const { exit, document } = await project.json('list');
    expect([exit, document]).toMatchObject([7, { code: 'store_unavailable', exit: 7, retryable: false }]);
  });

  test('the first task makes it, in a folder that is its owner’s alone', async () => {
    const state = project.path('state');
    const env = { XDG_STATE_HOME: state };
    const { exit, stderr } = await project.start(['run', '-v', '--', 'true'], { cwd: '/', env }).ended;
    expect(exit).toBe(0);
    expect(stderr).toContain(`store ${join(state, 'holdfast', 'holdfast.db')} (state)`);
    expect(readdirSync(join(state, 'holdfast'))).toContain('holdfast.db');
    const listed = await project.start(['list', '--ids'], { cwd: '/', env }).ended;
    expect(listed.stdout).toBe('1\n');
  });
});

describe.concurrent('a store that cannot be used', () => {
  test('because it may not be written is another matter than one that is broken', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    chmodSync(project.store, 0o444);
    chmodSync(project.path('.holdfast'), 0o555);
    chmodSync(project.folder, 0o755);
    // Nothing is read-only for root.
    const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const run = await project.start(['run', '--', 'true'], asNobody).ended;
    const state = await project.start(['run', '--exit-state', '--', 'true'], asNobody).ended;
    const retry = await project.start(['retry', '1', '--json'], asNobody).ended;
    chmodSync(project.path('.holdfast'), 0o755);
    expect([run.exit, state.exit, retry.exit]).toEqual([125, 9, 9]);
    expect(JSON.parse(retry.stdout)).toMatchObject({ code: 'store_read_only', exit: 9 });
    expect(run.stderr).toContain('cannot be written');
  });

  test('because its folder may not be written says that, and nothing else', async ({ project }) => {
    chmodSync(project.path('.holdfast'), 0o555);
    chmodSync(project.folder, 0o755);
    const asNobody = process.getuid?.() === 0 ? { uid: 65_534 } : {};
    const { exit, stderr } = await project.start(['enqueue', 'mail'], asNobody).ended;
    chmodSync(project.path('.holdfast'), 0o755);
    expect([exit, stderr]).toEqual([
      9,
      expect.stringContaining(
        `${project.store} cannot be opened: it does not exist, and this user must not make files in ${project.path('.holdfast')}.`,
      ),
    ]);
  });

  test('is told to programs in whole sentences', async ({ project }) => {
    const { document } = await project.json<{ detail: string }>('list', '-s', 'none.db');
    expect(document.detail).toMatch(/none\.db\. It is named by --store\.$/);
  });

  test('because it is no database', async ({ project }) => {
    project.write('notes.txt', 'dear diary, '.repeat(100));
    const { exit, document } = await project.json('list', '-s', 'notes.txt');
    expect([exit, document]).toMatchObject([7, { code: 'store_corrupt' }]);
    expect((await project.run('run', '-s', 'notes.txt', '--', 'true')).exit).toBe(125);
  });
});

describe.concurrent('usage', () => {
  let project: Project;
  beforeAll(() => {
    project = new Project();
  });
  afterAll(() => project.remove());

  test('what is wrong with it is said on stderr, or in JSON on stdout', async () => {
    const args = ['run', '--backoff', 'sometimes'];
    const said = await project.run(...args, '--', 'true');
    expect(said).toMatchObject({ exit: 2, stdout: '' });
    expect(said.stderr.trimEnd()).toMatch(/^error: --backoff sometimes: .*\(exit 2\)$/s);
    const { exit, document } = await project.json('run', '--backoff', 'sometimes', '--', 'true');
    expect([exit, document]).toMatchObject([2, { code: 'invalid_input', exit: 2 }]);
    expect(await project.run('frobnicate')).toMatchObject({ exit: 2, stdout: '' });
    const unknown = await project.run('list', '--json', '--nope');
    expect([unknown.exit, JSON.parse(unknown.stdout)]).toMatchObject([2, { exit: 2 }]);
  });

  test('help and version are no problems', async () => {
    for (const args of [[], ['--help'], ['help'], ['help', 'run'], ['mv', '--help'], ['--version'], ['version']]) {
      const { exit, stdout, stderr } = await project.run(...args);
      expect([args, exit, stderr, stdout !== '']).toEqual([args, 0, '', true]);
    }
    expect((await project.run('help', 'ls')).stdout).toContain('--before <id>');
    expect((await project.json('version')).document).toMatchObject({ schema: 'holdfast.version/v1' });
  });

  test('a stack is shown to those who ask twice', async () => {
    const { stderr } = await project.run('list', '-vv', '-s', '/etc/hostname');
    expect(stderr).toMatch(/\n\s+at .*\nholdfast \d+\.\d+\.\d+, Node /s);
  });
});

test('a command that looks or acts ends by itself, in a process of its own', async ({ project }) => {
  await project.run('run', '-b', '--', 'true');
  for (const args of [['--version'], ['policies'], ['sources'], ['explain', '1'], ['db'], ['cancel', '1']]) {
    const { exit, stdout } = await project.start(args).ended;
    expect([args, exit, stdout !== '']).toEqual([args, 0, true]);
  }
});

describe.concurrent('looking at tasks', () => {
  let project: Project;
  beforeAll(async () => {
    project = new Project();
    await project.run('run', '--', 'true');
    await project.run('run', '--attempts', '1', '--key', 'broken', '--', 'sh', '-c', 'echo "went wrong" >&2; exit 3');
    await project.run('run', '-b', '--queue', 'slow', '--at', '+1h', '--', 'sleep', '1');
    await project.run('run', '-b', '--', 'echo', 'hi');
    const retrying = project.start(['run', '--backoff', 'fixed:1h', '--', 'false']);
    await retrying.says('next attempt in 1h');
    retrying.kill('SIGINT');
    await retrying.ended;
    for (const name of ['a', 'b']) project.write(name, name);
    await project.run('mv', 'a', 'b');
  });
  afterAll(() => project.remove());

  test('list shows a table, the newest first', async () => {
    const { stdout } = await project.run('list');
    const lines = stdout.replaceAll(/\S+ ago|just now|in \S+|since \S+/g, 'WHEN').split('\n');
    expect(lines.map((line) => line.replaceAll(project.folder, '').replaceAll(/\s+/g, ' ').trim())).toEqual([
      '# TASK SOURCE REASON ATTEMPTS WHEN ERROR',
      expect.stringMatching(/^⚑ 6 mv \/a \/b fs:\S+ fs\.dest_exists 1\/1 WHEN EEXIST: /),
      '↻ 5 false cmd:false process.exit 1/8 WHEN exit 1',
      '○ 4 echo hi cmd:echo 0/8 due',
      '◷ 3 sleep 1 cmd:sleep 0/8 WHEN',
      `✕ 2 sh -c 'echo "went wrong" >&2; exit 3' cmd:sh process.exit 1/1 WHEN exit 3: went wrong`,
      '✓ 1 true cmd:true 0/8 WHEN',
      '',
    ]);
  });

  test.for<[string, readonly string[], string]>([
    ['a state', ['state:scheduled'], '5 3'],
    ['several states', ['state:dead,succeeded'], '2 1'],
    ['a queue', ['queue:slow'], '3'],
    ['a type and a state', ['type:file_move state:needs_manual'], '6'],
    ['terms apart', ['type:shell_command', 'state:ready'], '4'],
    ['a source', ['source:cmd:sh,cmd:true'], '2 1'],
    ['a reason', ['reason:process.exit'], '5 2'],
    ['nothing that there is', ['queue:none'], ''],
    ['a page', ['--limit', '2'], '6 5'],
    ['the page after it', ['--limit', '2', '--before', '#5'], '4 3'],
    ['everything', ['--all'], '6 5 4 3 2 1'],
  ])('list is narrowed to %s', async ([_, args, ids]) => {
    const { exit, stdout } = await project.run('list', '--ids', ...args);
    expect([exit, stdout.trim().replaceAll('\n', ' ')]).toEqual([0, ids]);
  });

  test('list says in JSON how it goes on, and how many there are', async () => {
    const first = (await project.json<Page>('ls', '--limit', '4')).document;
    expect(first).toMatchObject({ schema: 'holdfast.list/v1', next: '3', total: { value: 6, exact: true } });
    const second = (await project.json<Page>('ls', '--limit', '4', '--before', '3')).document;
    expect([second.items.map(({ id }) => id), second.next]).toEqual([[2, 1], null]);
    const dead = (await project.json<Page>('ls', 'state:scheduled', '--limit', '1')).document;
    expect(dead.total).toEqual({ value: 2, exact: true });
  });

  test('list has the last error of each task in JSON', async () => {
    const { document } = await project.json<{ items: readonly { error: unknown }[] }>('list');
    expect(document.items.map(({ error }) => error)).toEqual([
      { reason: 'fs.dest_exists', message: expect.stringContaining('EEXIST') },
      { reason: 'process.exit', message: 'exit 1' },
      null,
      null,
      { reason: 'process.exit', message: 'exit 3: went wrong' },
      null,
    ]);
  });

  test('explain says what other options would have decided, and what a task did at a time', async () => {
    const assumed = await project.run('explain', 'broken', '--if', 'maxAttempts: 3, backoff: { fixed: 30s }');
    expect(assumed).toMatchObject({ exit: 0, stderr: '' });
    expect(assumed.stdout).toMatch(
      /^#2 shell_command: with these options, its last failure .*\n.*\n {2}rule {5}the policy itself \(assumed\)\n {2}count {4}1 of 3\n {2}then {5}again after 30s /,
    );
    expect((await project.json('explain', '2', '--if', '{"extends": "http_delivery"}')).document).toMatchObject({
      schema: 'holdfast.explain.if/v1',
      last_failure: { next: 'scheduled' },
    });
    const past = await project.json('explain', '2', '--at', '1ms');
    expect(past.document).toMatchObject({ schema: 'holdfast.explain.at/v1', state: 'dead', before: { execution: 1 } });
    expect((await project.run('explain', '2', '--at', '2h')).stdout).toContain('it was not recorded yet');
    for (const [args, words] of [
      [['2', '--if', 'maxAtempts: 3'], "Did you mean 'maxAttempts'?"],
      [['2', '--at', '2999-01-01'], '--at is in the future'],
      [['2', '--at', '1h', '--if', 'maxAttempts: 3'], 'are three questions: ask one'],
      [['--if', 'maxAttempts: 3'], '--if is about a task'],
    ] as const) {
      const refused = await project.run('explain', ...args);
      expect([args, refused.exit]).toEqual([args, 2]);
      expect(refused.stderr).toContain(words);
    }
  });

  test('show tells what happened, why, and what to do next', async () => {
    const { stdout } = await project.run('show', 'broken');
    const text = stdout
      .replaceAll(/\d\d:\d\d:\d\d/g, 'TIME')
      .replaceAll(/\d+ms|foreground-\d+/g, 'X')
      .replace(/"program":"[^"]*\/sh"/, '"program":"PATH"');
    expect(text).toBe(
      [
        `#2 sh -c 'echo "went wrong" >&2; exit 3'  ✕ dead at TIME`,
        'type shell_command   queue default   source cmd:sh   key broken',
        'recorded TIME   one attempt',
        'attempts',
        '  1  TIME  X  X  ✕  process.exit  exit 3  → dead',
        '       went wrong',
        'why    process.exit: attempt 1 of 1 failed.',
        'next   retry it  holdfast retry 2',
        'output holdfast logs 2',
        `input  {"argv":["sh","-c","echo \\"went wrong\\" >&2; exit 3"],"program":"PATH","cwd":"${project.folder}"}`,
        '',
      ].join('\n'),
    );
    expect((await project.run('show', '#6')).stdout).toContain('holdfast resolve 6 --as succeeded');
    expect((await project.run('show', '4')).stdout).toContain('no worker is running to take it: holdfast worker');
  });

  test('status says what to do first', async () => {
    const { stdout } = await project.run('status');
    expect(stdout).toContain('Attention\n  ⚑ 1 task needs a person: fs.dest_exists.');
    expect(stdout).toContain('      holdfast list state:dead reason:process.exit\n');
    expect(stdout).toContain('1 task is due, and no worker is running');
    expect(stdout).toContain(
      'Tasks    ○ 1 ready   ↻ 1 retrying   ◷ 1 scheduled   ⚑ 1 needs a person   ✕ 1 dead   ✓ 1 succeeded',
    );
    expect(stdout).toMatch(/Due {6}1 now, next in \S+\n/);
    expect(stdout).toContain('Workers  none\n');
  });

  test('show has the budget of a task in JSON', async () => {
    const { document } = await project.json('show', '5');
    const budget = { attempts: 1, max_attempts: 8, failure_type: 'unknown', total_delay_ms: 3_600_000 };
    expect(document).toMatchObject({ budget });
    expect((await project.run('show', '5')).stdout).toContain('1 of 8 attempts charged since ');
  });

  test('quarantine lists, shows and retries what is dead or needs a person, by type and reason', async () => {
    const states = async (...args: string[]) => {
      const { document } = await project.json<Page>('quarantine', ...args);
      return document.items.map(({ state }) => state);
    };
    expect((await states()).toSorted()).toEqual(['dead', 'needs_manual']);
    expect(await states('list', 'reason:fs.dest_exists', 'type:file_move')).toEqual(['needs_manual']);
    expect(await states('list', 'state:dead')).toEqual(['dead']);
    const { document } = await project.json<Page>('quarantine', 'list', 'reason:process.exit');
    const id = String(document.items[0]?.id);
    expect((await project.json('quarantine', 'show', id)).document).toMatchObject({ task: { state: 'dead' } });
    expect((await project.run('quarantine', 'retry', '--note', 'mended')).exit).toBe(2);
    const dry = await project.run('quarantine', 'retry', 'type:file_move,shell_command', '--dry-run');
    expect(dry).toMatchObject({ exit: 0, stdout: expect.stringContaining('2 tasks match') });
  });

  test('stats says how executions went, as a table and as JSON', async () => {
    const { stdout } = await project.run('stats', '--since', '2h');
    expect(stdout).toMatch(/^Counted since \S+\n\nTYPE/);
    expect(stdout.replaceAll(/ +/g, ' ')).toContain('\nshell_command 3 1 2 33 % 0 1.0 1 0 1 22 %\n');
    const all = await project.json('stats', '--type', 'shell_command');
    expect(all.document).toMatchObject({
      schema: 'holdfast.stats/v1',
      since: expect.any(String),
      total: { executions: 3 },
    });
    const { stdout: metrics } = await project.run('stats', '--json=retry_metrics', '--type', 'file_move');
    const byType = { transient: 0, rate_limited: 0, permanent: 0, unknown: 0 };
    const none = { total_retries: 0, successful_retries: 0, failed_retries: 0, avg_attempts_until_success: null };
    expect(JSON.parse(metrics)).toEqual({ retry_metrics: { file_move: { ...none, by_failure_type: byType } } });
  });

  test('status --check ends with 8, and a line for each thing', async () => {
    const { exit, stdout } = await project.run('status', '--check');
    expect([exit, stdout.trimEnd().split('\n').length]).toEqual([8, 3]);
    expect((await project.json('status', '--check')).document).toMatchObject({
      schema: 'holdfast.status/v1',
      exit: 8,
      attention: [
        { kind: 'needs_manual', count: 1 },
        { kind: 'dead', count: 1 },
        { kind: 'no_worker', count: 1 },
      ],
      by_state: { dead: 1 },
      workers: [],
    });
    const fresh = new Project();
    await fresh.run('run', '--', 'true');
    expect(await fresh.run('status', '--check')).toMatchObject({ exit: 0, stdout: '' });
    expect((await fresh.run('status')).stdout).toContain('Nothing needs attention.');
    await fresh.remove();
  });

  test('wait answers for each task, and ends by the worst', async () => {
    expect(await project.run('wait', '1')).toMatchObject({ exit: 0, stdout: '#1 ✓ succeeded\n' });
    expect(await project.run('wait', '1', 'broken')).toMatchObject({
      exit: 1,
      stdout: '#1 ✓ succeeded\n#2 ✕ dead: process.exit: attempt 1 of 1 failed.\n',
    });
    expect((await project.run('wait', '2', '6')).exit).toBe(4);
    const { exit, stderr } = await project.run('wait', '1', '3', '6', '--timeout', '50ms');
    expect(exit).toBe(75);
    expect(stderr).toContain('1 not finished: #3');
    expect((await project.json('wait', '1')).document).toMatchObject({ schema: 'holdfast.wait/v1', exit: 0 });
  });

  test('a task that is not there is not found', async () => {
    for (const id of ['99', '#99', 'no-such-key', '0']) {
      const { exit, stderr } = await project.run('show', id);
      expect([id, exit]).toEqual([id, 3]);
      expect(stderr).toContain('The newest number is 6.');
    }
    expect((await project.json('show', '99')).document).toMatchObject({ code: 'task_not_found', exit: 3 });
  });
});

describe.concurrent('acting on tasks', () => {
  const states = async (project: Project) => {
    const { document } = await project.json<Page>('list', '--all');
    return document.items.map(({ state }) => state).reverse();
  };

  test('hold, release and cancel, several at a time', async ({ project }) => {
    for (const _ of [1, 2, 3]) await project.run('run', '-b', '--', 'true');
    expect(await project.run('hold', '1', '2', '--note', 'not today')).toMatchObject({
      exit: 0,
      stdout: '⏸ #1 held\n⏸ #2 held\n',
    });
    expect((await project.run('resume', '1')).exit).toBe(75);
    expect((await project.run('release', '#1')).stdout).toBe('○ #1 due now\n');
    expect((await project.run('cancel', '2', '3')).stdout).toBe('⊘ #2 cancelled\n⊘ #3 cancelled\n');
    expect(await states(project)).toEqual(['ready', 'cancelled', 'cancelled']);
    expect((await project.run('show', '1')).stdout).toContain('hold by ');
    expect((await project.run('show', '1')).stdout).toContain(': not today');
  });

  test('one that cannot be held does not keep the others from it', async ({ project }) => {
    for (const _ of [1, 2]) await project.run('run', '-b', '--', 'true');
    await project.run('cancel', '1');
    const { exit, stdout, stderr } = await project.run('hold', '1', '99', '2');
    expect([exit, stdout]).toEqual([5, '⏸ #2 held\n']);
    expect(stderr).toContain('Task #1 is cancelled');
    expect(stderr).toContain('no task #99');
    const { document } = await project.json('release', '99', '2');
    expect(document).toMatchObject({
      schema: 'holdfast.release/v1',
      exit: 3,
      items: [{ id: 2, from: 'held', to: 'ready', task: { id: 2 } }],
      problems: [{ code: 'task_not_found', exit: 3 }],
    });
    expect((await project.json('release', '2')).document).toMatchObject({ code: 'state_conflict', exit: 5 });
  });

  test('retry makes due now, or starts a new round', async ({ project }) => {
    await project.run('run', '-b', '--at', '+1h', '--', 'true');
    expect((await project.run('retry', '1', '--new-key')).stdout).toBe('○ #1 due now\n');
    expect((await project.run('retry', '1')).exit).toBe(5);
    await project.run('run', '--attempts', '1', '--', 'sh', '-c', '[ -e go ]');
    project.write('go', '');
    expect((await project.run('retry', '2')).stdout).toBe('○ #2 due now, in a new round\n');
    expect((await project.run('resume')).exit).toBe(0);
    expect(await states(project)).toEqual(['succeeded', 'succeeded']);
  });

  test('resolve answers what needs a person, and nothing else', async ({ project }) => {
    for (const name of ['a', 'b', 'c']) project.write(name, name);
    for (const _ of [1, 2, 3]) await project.run('mv', 'a', 'b');
    const happened = await project.run(
      'resolve',
      '1',
      '--as',
      'succeeded',
      '--result',
      '{"by":"hand"}',
      '--note',
      'seen',
    );
    expect(happened).toMatchObject({ exit: 0, stdout: expect.stringMatching(/^✓ #1 succeeded \(decided by .+\)\n$/) });
    expect(happened.stderr).toContain('2 more need a decision: holdfast inbox');
    expect((await project.run('resolve', '2', '--as', 'dead')).exit).toBe(0);
    expect((await project.run('resolve', '3', '--as', 'retry')).stdout).toContain('○ #3 due now, in a new round');
    expect(await states(project)).toEqual(['succeeded', 'dead', 'ready']);
    expect((await project.json('show', '1')).document).toMatchObject({
      task: { result: { by: 'hand' } },
      history: [{}, { kind: 'action', verb: 'resolve', note: 'seen', to: 'succeeded' }],
    });
    const { exit, document } = await project.json('resolve', '1', '--as', 'dead');
    expect([exit, document]).toMatchObject([5, { code: 'state_conflict' }]);
  });

  test('the flag of the store is part of every hint', async ({ project }) => {
    const { stderr } = await project.run('run', '-b', '-s', 'my.db', '--', 'true');
    expect(stderr).toContain('start holdfast -s my.db worker, or use holdfast -s my.db resume 1');
  });
});
