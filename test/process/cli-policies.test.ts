import { describe, expect } from 'vitest';
import { test } from './cli-process.ts';

const CONFIG = `version: 1
defaults: { retry: { timeout: 30m } }
policies:
  patient: { giveUpAfter: 48h, onExhausted: needs_manual }
types:
  order.push:
    retry: { maxAttempts: 8, backoff: { exponential: { base: 5s, cap: 5m } }, jitter: full, giveUpAfter: 24h }
  shell_command:
    retry: { maxAttempts: 2, backoff: immediate }
`;
const BROKEN = 'types:\n  shell_command: { retry: { maxAtempts: 3, backoff: { fixed: 90 } } }\n';

describe.concurrent('a configuration', () => {
  test('answers what a command does here, and says so', async ({ project }) => {
    project.write('holdfast.yaml', CONFIG);
    const { exit, stderr } = await project.run('run', '--exit-state', '--', 'false');
    expect(exit).toBe(1);
    expect(stderr).toContain('▶ #1 false   up to 2 attempts, immediate');
    expect(stderr).toContain('#1 dead: process.exit: attempt 2 of 2 failed.');
    expect((await project.run('list')).stdout).toContain('2/2');
    expect((await project.run('show', '1')).stdout).toContain('up to 2 attempts, immediate');
    const { stderr: told } = await project.run('list', '-v');
    expect(told).toContain(`config ${project.path('holdfast.yaml')} (folder)`);
  });

  test('in a home into which this user may not look is none', async ({ project }) => {
    const under = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--'];
    const started = project.start(['classify', 'boom'], { under, env: { HOME: '/root' } });
    const { exit, stderr } = await started.ended;
    expect([exit, stderr]).toEqual([0, '']);
  });

  test('is the one that --config names, wherever that stands among the words', async ({ project }) => {
    project.write('holdfast.yaml', BROKEN);
    const other = project.write('other.json', '{"types": {"shell_command": {"retry": {"maxAttempts": 1}}}}');
    const before = await project.run('-c', other, 'run', '--exit-state', '--', 'false');
    const after = await project.run('run', '--exit-state', '--config', other, '--', 'false');
    for (const { exit, stderr } of [before, after]) {
      expect(exit).toBe(1);
      expect(stderr).toContain('one attempt');
    }
  });

  test('reaches into the flags of a command: --attempts holds for the rules that a file gives', async ({ project }) => {
    project.write(
      'holdfast.yaml',
      'types: { shell_command: { retry: { backoff: immediate, rules: { process.exit: { maxAttempts: 5, backoff: immediate } } } } }',
    );
    const { stderr } = await project.run('run', '--exit-state', '--attempts', '2', '--', 'false');
    expect(stderr).toContain('dead: process.exit: attempt 2 of 2 failed.');
  });

  test('that is refused ends what works or explains, with all that is wrong, and records nothing', async ({
    project,
  }) => {
    await project.run('run', '-b', '--', 'true');
    project.write('holdfast.yaml', BROKEN);
    const lines = [
      "holdfast.yaml:2:29  error    types.shell_command.retry.maxAtempts: A policy has no 'maxAtempts'. Did you mean 'maxAttempts'?",
      'holdfast.yaml:2:62  error    types.shell_command.retry.backoff.fixed: 90 has no unit. Write 90s for seconds, or 90ms.',
    ];
    for (const [words, exit] of [
      [['resume'], 6],
      [['run', '--exit-state', '--', 'true'], 6],
      [['run', '--', 'true'], 125],
      [['mv', 'holdfast.yaml', 'x'], 6],
      [['http', '--allow-private', 'GET', 'http://127.0.0.1:1/'], 6],
      [['explain', '1'], 6],
      [['policies'], 6],
      [['policies', 'schedule', 'standard'], 6],
      [['worker', '--drain'], 78],
    ] as const) {
      const ended = await project.run(...words);
      expect([words, ended.exit]).toEqual([words, exit]);
      expect(ended.stderr).toContain('error: holdfast.yaml is refused: 2 errors');
      for (const line of lines) expect(ended.stderr).toContain(line);
    }
    const { exit, document } = await project.json('explain', '1');
    expect([exit, document]).toMatchObject([
      6,
      {
        code: 'invalid_config',
        file: 'holdfast.yaml',
        problems: [{ line: 2, column: 29, suggestion: "Did you mean 'maxAttempts'?" }, {}],
      },
    ]);
    expect((await project.run('list', '--ids')).stdout).toBe('1\n');
  });

  test('that is refused blinds nobody: what only looks goes on without it, and status tells of it', async ({
    project,
  }) => {
    await project.run('run', '-b', '--', 'true');
    project.write('holdfast.yaml', BROKEN);
    expect(await project.run('list', '--ids')).toMatchObject({ exit: 0, stdout: '1\n', stderr: '' });
    const listed = await project.run('list');
    expect(listed.exit).toBe(0);
    expect(listed.stderr).toContain('holdfast.yaml has errors, so it is not used here: holdfast policies validate');
    expect((await project.run('cancel', '1')).exit).toBe(0);
    const status = await project.run('status');
    expect(status.stdout).toContain(
      '✕ holdfast.yaml is refused (2 errors): running workers keep the one before, and no new worker starts',
    );
    expect((await project.run('status', '--check')).exit).toBe(8);
    expect((await project.json('status')).document).toMatchObject({
      attention: [{ kind: 'config_refused', count: 2 }],
    });
  });

  test('puts queues in order only where somebody works', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    project.write('holdfast.yaml', 'queues: { default: { order: lifo } }\n');
    expect((await project.run('queues')).stdout).toContain('fifo');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect((await project.run('queues')).stdout).toContain('lifo');
  });

  test('of workers is not for a command that works its own task', async ({ project }) => {
    project.write('holdfast.yaml', 'worker: { queues: [elsewhere], types: [shell_command], concurrency: 2 }\n');
    expect((await project.run('run', '--', 'true')).exit).toBe(0);
    await project.run('run', '-b', '--', 'true');
    await project.run('run', '-b', '--queue', 'elsewhere', '--', 'true');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect((await project.run('list', '--ids', 'state:ready')).stdout).toBe('2\n');
  });
});

describe.concurrent('a worker', () => {
  test('follows its file, reads it at once on SIGHUP, and keeps the one before where a new one is refused', async ({
    project,
  }) => {
    project.write('holdfast.yaml', CONFIG);
    const worker = project.start(['worker', '--name', 'w1']);
    await worker.says('"event":"config"');
    project.write('holdfast.yaml', BROKEN);
    worker.kill('SIGHUP');
    await worker.says('"event":"config_refused"');
    await worker.says("Did you mean 'maxAttempts'?");
    // It still answers by the policy from before.
    await project.run('run', '-c', project.write('none.yaml', 'version: 1'), '-b', '--', 'false');
    await worker.says('attempt 2 of 2 failed');
    project.write('holdfast.yaml', CONFIG.replace('maxAttempts: 2', 'maxAttempts: 1'));
    await worker.says(/("event":"config",[^\n]*\n(.|\n)*){2}/);
    await project.run('run', '-c', project.path('none.yaml'), '-b', '--', 'false');
    await worker.says('attempt 1 of 1 failed');
    worker.kill('SIGTERM');
    expect((await worker.ended).exit).toBe(0);
  });

  test('that has no file to read again goes on when it hears SIGHUP, as nobody has closed a terminal', async ({
    project,
  }) => {
    const worker = project.start(['worker', '--name', 'w1']);
    await worker.says('"event":"up"');
    worker.kill('SIGHUP');
    await worker.says('"event":"config"');
    worker.kill('SIGTERM');
    expect((await worker.ended).stdout).toContain('"signal":"SIGTERM"');
  });
});

describe.concurrent('holdfast policies', () => {
  test('lists what the configuration speaks of, and the presets, before there is any store', async ({ project }) => {
    project.write('holdfast.yaml', CONFIG);
    const { exit, stdout, stderr } = await project.run('policies');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/patient +policy +up to 5 attempts, exponential 1s ×2 ≤ 5m ±10% +needs_manual/);
    expect(stdout).toMatch(/order.push +type +up to 8 attempts/);
    expect(stdout).toMatch(
      /imap_mailbox +preset +up to 5 attempts, exponential 2m ×2 ≤ 30m ±30% +dead\n +transient +rule +up to 7 attempts, exponential 2m ×2 ≤ 30m ±30% +dead\n +rate_limited +rule +up to 5 attempts, exponential 10m/,
    );
    const { document } = await project.json<{ items: object[] }>('policies');
    expect(document.items).toContainEqual(
      expect.objectContaining({
        name: 'imap_mailbox',
        max_attempts: 5,
        backoff: { kind: 'exponential', base: 120_000, factor: 2, cap: 1_800_000 },
        jitter: { kind: 'proportional', factor: 0.3 },
        on_exhausted: 'dead',
        permanent: 'stop',
        rules: [
          expect.objectContaining({ name: 'transient', max_attempts: 7 }),
          expect.objectContaining({ name: 'rate_limited', backoff: expect.objectContaining({ base: 600_000 }) }),
        ],
      }),
    );
    expect(stderr).toMatch(/^By holdfast.yaml \([0-9a-f]{12}\)$/m);
  });

  test('shows each value of a policy, a type or a task, and who said it', async ({ project }) => {
    project.write('holdfast.yaml', CONFIG);
    expect((await project.run('policies', 'show', 'patient')).stdout).toMatch(/giveUpAfter +2d +holdfast.yaml:4\n/);
    const ofType = await project.run('policies', 'show', '--effective', 'imap_mailbox');
    expect(ofType.stdout).toMatch(/timeout +30m +holdfast.yaml:2\n/);
    expect(ofType.stdout).toMatch(/maxAttempts +5 +preset imap_mailbox\n/);
    await project.run('run', '-b', '--attempts', '4', '--', 'true');
    expect((await project.run('policies', 'show', '--effective', '1')).stdout).toMatch(
      /maxAttempts +4 +the task itself\n/,
    );
    const { document } = await project.json<{ values: object[] }>('policies', 'show', 'order.push');
    expect(document).toMatchObject({ schema: 'holdfast.policies.show/v1', name: 'order.push', kind: 'type' });
    expect(document.values).toContainEqual({
      path: ['maxAttempts'],
      value: 8,
      from: expect.objectContaining({ text: 'holdfast.yaml:7', by: 'file', file: 'holdfast.yaml', line: 7 }),
    });
  });

  test('takes a name that nothing has for a slip', async ({ project }) => {
    const { exit, stderr } = await project.run('policies', 'schedule', 'imap_mailbx');
    expect([exit, stderr]).toEqual([3, expect.stringContaining('did you mean imap_mailbox?')]);
    expect((await project.run('policies', 'check')).stderr).toContain('did you mean: holdfast policies validate?');
    expect((await project.run('policies', 'show', 'a', '--effective', 'b')).exit).toBe(2);
  });

  test('validates the file that holds here, or another one', async ({ project }) => {
    expect((await project.run('policies', 'validate')).exit).toBe(3);
    project.write('holdfast.yaml', CONFIG);
    expect(await project.run('policies', 'validate')).toMatchObject({ exit: 0, stdout: '✓ holdfast.yaml is good\n' });
    project.write('b.yaml', BROKEN);
    const { exit, stdout } = await project.run('policies', 'validate', 'b.yaml');
    expect(exit).toBe(6);
    expect(stdout).toMatch(
      /^b.yaml:2:29 {2}error .*Did you mean 'maxAttempts'\?\nb.yaml:2:62 .*\n✕ b.yaml: 2 errors. The file is not used. {3}\(exit 6\)\n$/,
    );
    expect((await project.json('policies', 'validate')).document).toMatchObject({ valid: true, errors: 0 });
    expect((await project.run('policies', 'validate', 'nowhere.yaml')).exit).toBe(6);
  });

  test('tells what two files, or one and the one that holds here, say differently', async ({ project }) => {
    project.write('holdfast.yaml', CONFIG);
    project.write('b.yaml', CONFIG.replace('maxAttempts: 8', 'maxAttempts: 9'));
    const words = 'type order.push\n  maxAttempts  8 (holdfast.yaml:7) → 9 (b.yaml:7)\n';
    expect(await project.run('policies', 'diff', 'b.yaml')).toMatchObject({ exit: 0, stdout: words });
    expect((await project.run('policies', 'diff', 'holdfast.yaml', 'b.yaml')).stdout).toBe(words);
    expect((await project.run('policies', 'diff', 'b.yaml', 'b.yaml')).stdout).toBe(
      'Tasks are answered alike by b.yaml and b.yaml.\n',
    );
    expect((await project.json('policies', 'diff', 'b.yaml')).document).toMatchObject({
      schema: 'holdfast.policies.diff/v1',
      same: false,
      items: [{ what: 'type', name: 'order.push', changes: [{ path: ['maxAttempts'], before: 8, after: 9 }] }],
    });
  });

  test('prints a schedule: each delay with its jitter, what it adds up to, and when it gives up', async ({
    project,
  }) => {
    const { stdout } = await project.run('policies', 'schedule', 'file_move', '--reason', 'fs.permission');
    expect(stdout).toBe(
      [
        'file_move (preset), fs.permission (permanent) by the rule fs.permission',
        'RETRY  AFTER  WITH JITTER  IN ALL',
        '1      1m                  1m',
        '2      2m                  3m',
        'then needs_manual: fs.permission: attempt 3 of 3 failed.',
        '',
      ].join('\n'),
    );
    const { document } = await project.json('policies', 'schedule', 'local_files');
    expect(document).toMatchObject({
      policy: 'local_files',
      max_attempts: 3,
      // biome-ignore lint/suspicious/noThenProperty: a word of the contract
      then: 'dead',
      delays: [
        { retry: 1, delay_ms: 30_000, min_ms: 24_000, max_ms: 36_000, cumulative_ms: 30_000 },
        { retry: 2, delay_ms: 60_000, min_ms: 48_000, max_ms: 72_000, cumulative_ms: 90_000 },
      ],
    });
    expect((await project.run('policies', 'schedule', 'imap_mailbox')).stderr).toContain(
      'rule transient: up to 7 attempts',
    );
    expect((await project.run('policies', 'schedule', 'standard', '--reason', 'Not A Reason')).exit).toBe(2);
    project.write('holdfast.yaml', 'retry_policies: { imap_mailbox: { max_attempts: 5, jitter_factor: 0 } }');
    const both = await project.json('policies', 'schedule', 'imap_mailbox');
    expect(both.document).toMatchObject({
      readings: [
        { counts: 'executions', in_use: true, executions: 5, total_ms: 900_000 },
        { counts: 'retries', in_use: false, executions: 6, total_ms: 1_860_000 },
      ],
    });
  });

  test('runs examples, and ends with 6 where one is answered otherwise', async ({ project }) => {
    project.write('holdfast.yaml', CONFIG);
    const example = (expected: string) =>
      `tests:\n  - name: an order is tried eight times\n    type: order.push\n    error: { code: ECONNREFUSED, syscall: connect }\n    given: { charged: { net.refused: 6 } }\n    expect: { ${expected} }\n`;
    project.write('good.yaml', example('next: scheduled, after: 5m, count: 7, limit: 8'));
    const good = await project.run('policies', 'test', 'good.yaml');
    expect(good).toMatchObject({ exit: 0, stdout: '1 example holds by holdfast.yaml\n' });
    expect(good.stderr).toContain('✓ an order is tried eight times');
    project.write('bad.yaml', example('after: 10m'));
    const bad = await project.run('policies', 'test', 'bad.yaml');
    expect(bad.exit).toBe(6);
    expect(bad.stdout).toContain(
      '✕ bad.yaml:2  an order is tried eight times\n    after: expected 10m, got 5m\n    because: net.refused: attempt 7 of 8',
    );
    expect((await project.json('policies', 'test', 'bad.yaml')).document).toMatchObject({
      exit: 6,
      passed: 0,
      failed: 1,
    });
    expect((await project.run('policies', 'test', 'holdfast.yaml')).exit).toBe(6);
    expect((await project.run('policies', 'test', 'nowhere.yaml')).exit).toBe(3);
  });
});

describe.concurrent('holdfast explain', () => {
  test('says why a task does not run, and the command that changes it', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    await project.run('sources', 'hold', 'cmd:true', '--note', 'NAS is down');
    const { exit, stdout } = await project.run('explain', '1');
    expect(exit).toBe(0);
    expect(stdout).toMatch(/^○ #1 shell_command is ready, but cmd:true is held \(by \S+ .*: NAS is down\)\.\n/);
    expect(stdout).toContain('← this holds it');
    expect(stdout).toContain('  change  release its source  holdfast sources release cmd:true\n');
    const { document } = await project.json('explain', '1');
    expect(document).toMatchObject({
      schema: 'holdfast.explain/v1',
      task: { id: 1, state: 'ready' },
      held_by: ['source_held', 'no_worker'],
      checks: [
        { name: 'due', ok: true },
        { name: 'source', ok: false },
        { name: 'queue', ok: true },
        { name: 'worker', ok: false },
      ],
      actions: [
        { command: 'holdfast sources release cmd:true' },
        { command: 'holdfast worker' },
        { command: 'holdfast cancel 1' },
      ],
    });
  });

  test('says what would happen if it failed like this, of a task or of a type before there is a store', async ({
    project,
  }) => {
    const of = await project.run('explain', '--type', 'imap_mailbox', '--error', '{"status": 429}');
    expect(of.stdout).toBe(
      [
        'failure  http.429 (rate_limited, fault of the quota) by http, read in status',
        'rule     rate_limited (preset imap_mailbox)',
        'count    1 of 5',
        'then     again after 10m (exponential 10m ×2 ≤ 30m, retry 1), random wait from 7m to 13m',
        'ends     after 5 attempts: dead',
        '',
      ].join('\n'),
    );
    await project.run('run', '-b', '--', 'true');
    expect(
      (await project.json('explain', '1', '--error', 'connect ECONNREFUSED 10.0.0.5:5432')).document,
    ).toMatchObject({
      schema: 'holdfast.explain.error/v1',
      task: { id: 1 },
      failure: { reason: 'net.refused' },
      next: 'scheduled',
      delay_ms: 5_000,
      min_ms: 0,
      max_ms: 5_000,
    });
  });

  test('refuses what it cannot explain', async ({ project }) => {
    expect((await project.run('explain')).exit).toBe(2);
    await project.run('run', '-b', '--', 'true');
    expect((await project.run('explain', '9')).exit).toBe(3);
    expect((await project.run('explain', '1', '--type', 'x', '--error', 'y')).exit).toBe(2);
    expect((await project.run('explain', '1', '--error', '{')).exit).toBe(2);
  });

  test('hides what would move the cursor', async ({ project }) => {
    await project.run('run', '-b', '--', 'true');
    await project.run('sources', 'hold', 'cmd:true', '--note', '\u001b[2Jgone');
    expect((await project.run('explain', '1')).stdout).not.toContain('\u001b');
  });
});
