import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { promisify } from 'node:util';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

/** A command whose foreground process was killed while it ran. */
async function killed(project: Project, ...flags: readonly string[]): Promise<void> {
  project.script('patient', 'echo started', 'exec sleep 5');
  const running = project.start(['run', ...flags, '--', './patient']);
  await running.says('started');
  running.kill('SIGKILL');
  await running.ended;
}

describe.concurrent('of a task whose foreground process was killed', () => {
  test('all commands say that a worker must be started, and that a person is asked if it must not run twice', async ({
    project,
  }) => {
    await killed(project, '--no-idempotent');
    const words =
      'Its process has ended. When a worker starts, it records the loss. Then a person is asked, because the task must not run twice.';
    const shown = (await project.run('show', '1')).stdout;
    expect(shown).toContain(`next   ${words}\n       start a worker  holdfast worker\n`);
    const explained = (await project.run('explain', '1')).stdout;
    expect(explained).toContain(`next    ${words}\n  change  start a worker  holdfast worker\n`);
    const status = (await project.run('status')).stdout;
    expect(status).toContain('1 task runs under a worker that was lost: #1');
    expect(status).toContain('Start a worker: it records the loss');
    expect(status).toContain('      holdfast worker\n');
    const cancelled = await project.run('cancel', '1');
    expect(cancelled.stdout).toBe('▶ #1 is asked to stop\n');
    expect(cancelled.stderr).toContain('Then it is cancelled.\n  start a worker  holdfast worker\n');
    await project.run('worker', '--drain');
    expect((await project.run('show', '1')).stdout).toContain('cancelled');
  });

  test('resume says that it waits to take it over', async ({ project }) => {
    await killed(project, '--no-idempotent');
    const { exit, stderr } = await project.run('resume', '1');
    expect(stderr).toMatch(/its worker foreground-\d+ was lost: waiting to take it over/);
    expect(exit).toBe(4);
  });
});

describe.concurrent('of a task of a type that the command line cannot run', () => {
  const program = 'start the program that defines';

  test('no command says that holdfast worker or resume runs it', async ({ project }) => {
    project.write('tasks.jsonl', '{"type":"sync_mailbox","key":"m","payload":{}}\n');
    const imported = await project.run('import', 'tasks.jsonl');
    expect(imported.stderr).toContain(`No running worker takes the type sync_mailbox: ${program} it`);
    const shown = (await project.run('show', '1')).stdout;
    expect(shown).toContain(
      `next   no running worker takes the type sync_mailbox: ${program} it (no worker has taken it yet)\n`,
    );
    const explained = (await project.run('explain', '1')).stdout;
    expect(explained).toContain(`change  ${program} the type sync_mailbox\n`);
    expect(explained).toContain('  cancel it  holdfast cancel 1\n');
    const status = (await project.run('status')).stdout;
    expect(status).toContain(`1 task is ready, but no running worker takes the type sync_mailbox: ${program} it`);
    await project.run('hold', '1');
    const released = await project.run('release', '1');
    expect(released.stderr).toContain(program);
    for (const text of [imported.stderr, shown, explained, status, released.stderr]) {
      expect(text).not.toMatch(/holdfast (worker|resume)/);
    }
  });

  test('they say which program took its type, and when it was last seen', async ({ project }) => {
    await project.run('enqueue', 'mail', '1');
    expect((await project.run('show', '1')).stdout).toContain(`${program} it (no worker has taken it yet)\n`);
    const dist = new URL('../../dist/', import.meta.url);
    project.write(
      'mailer.mjs',
      `import { defineTask, openHoldfast } from '${new URL('index.js', dist)}';
       import { sqlite } from '${new URL('store/sqlite/index.js', dist)}';
       const mail = defineTask('mail', { run: () => {} });
       const holdfast = await openHoldfast({ store: sqlite('.holdfast/holdfast.db'), tasks: [mail] });
       await holdfast.worker({ name: 'mailer' }).runOne();
       await holdfast.close();`,
    );
    const { stderr: failed } = await promisify(execFile)(process.execPath, ['mailer.mjs'], { cwd: project.folder });
    expect(failed).toBe('');
    const enqueued = await project.run('enqueue', 'mail', '2');
    const seen = /: \S+\/mailer\.mjs on \S+ \(worker mailer\), last seen (just now|\d+s ago)/;
    expect(enqueued.stderr).toMatch(seen);
    for (const command of [['show', '2'], ['status'], ['doctor']]) {
      expect((await project.run(...command)).stdout, command.join(' ')).toMatch(seen);
    }
    expect((await project.run('explain', '2')).stdout).toMatch(
      /no worker is running; its type was last taken by \S+mailer\.mjs on \S+ \(worker mailer\), last seen/,
    );
    expect((await project.run('resume', '2')).stderr).toMatch(seen);
  });
});

test('status names the program for due tasks that only their source holds', async ({ project }) => {
  await project.run('enqueue', 'mail', '1');
  await project.run('sources', 'hold', 'mail');
  const { stdout } = await project.run('status');
  expect(stdout).toContain(
    '1 task is due, and no worker is running: start the program that defines it (no worker has taken it yet)\n',
  );
  expect(stdout).not.toMatch(/holdfast (worker|resume)/);
});

test('an unknown group of failures is answered with the command that lists them', async ({ project }) => {
  await project.run('enqueue', 'mail', '1');
  expect((await project.run('failures', 'show', 'ab')).stderr).toBe(
    "error: there is no group of failures 'ab' in this store\n       list those that exist: holdfast failures --all   (exit 3)\n",
  );
});

describe.concurrent('holdfast enqueue', () => {
  test('records a task for a program, and prints its number', async ({ project }) => {
    const first = await project.run(
      'enqueue',
      'sync_mailbox',
      '{"mailbox":"INBOX"}',
      '--source',
      'imap:INBOX',
      '--key',
      'm',
    );
    expect(first).toMatchObject({ exit: 0, stdout: '○ #1 queued (imap:INBOX)\n' });
    expect(first.stderr).toContain('This store has never had a task of the type sync_mailbox\n');
    const again = await project.run('enqueue', 'sync_mailbox', '{"mailbox":"INBOX"}', '--key', 'm');
    expect(again).toMatchObject({ exit: 0, stdout: '○ #1 queued (imap:INBOX)\n' });
    expect(again.stderr).toContain('#1 has the key m already, so nothing new was recorded.');
    await project.run('cancel', '1');
    await project.run('enqueue', 'sync_mailbox', '--unique', 'inbox');
    const resumed = await project.run('resume');
    expect(resumed.stderr).toBe(
      'There are no unfinished tasks that resume runs: shell_command, file_move and http_delivery.\n',
    );
    const unique = await project.run('enqueue', 'sync_mailbox', '--unique', 'inbox');
    expect(unique.stderr).toContain('#2 has the unique key inbox already, so nothing new was recorded.');
    await project.run('cancel', '2');
    expect(await project.run('enqueue', '-q', 'sync_mailbox', '--unique', 'inbox')).toMatchObject({ stdout: '3\n' });
    const typo = await project.run('enqueue', 'sync_mailbx', '-q', '--delay', '10m');
    expect(typo).toMatchObject({ exit: 0, stdout: '4\n' });
    expect(typo.stderr).toBe(
      'This store has never had a task of the type sync_mailbx; did you mean sync_mailbox? Then: holdfast cancel 4\n',
    );
    const { document } = await project.json('enqueue', 'sync_mailbox', '[1]', '--priority', '7', '--no-idempotent');
    expect(document).toMatchObject({
      schema: 'holdfast.enqueue/v1',
      created: true,
      known_type: true,
      task: { id: 5, input: [1], priority: 7, idempotent: false },
    });
  });

  test('reads JSON from stdin, and refuses what is none before it makes a store', async ({ project }) => {
    const refused = await project.run('enqueue', 'order.push', '{id: 5}');
    expect([refused.exit, refused.stderr]).toEqual([2, expect.stringContaining('the input is not valid JSON')]);
    expect((await project.run('list')).exit).toBe(7);
    const under = ['sh', '-c', `echo '{"id": 5}' | "$0" "$@"`];
    const { exit, stdout } = await project.start(['enqueue', 'order.push', '-', '--json'], { under }).ended;
    expect([exit, JSON.parse(stdout)]).toMatchObject([0, { task: { input: { id: 5 } } }]);
  });
});

test('of a task with needs that no running worker meets, all say which, and what the workers have', async ({
  project,
}) => {
  const dist = new URL('../../dist/', import.meta.url);
  project.write(
    'mailer.mjs',
    `import { defineTask, openHoldfast } from '${new URL('index.js', dist)}';
     import { sqlite } from '${new URL('store/sqlite/index.js', dist)}';
     const mail = defineTask('mail', { run: () => {} });
     const holdfast = await openHoldfast({ store: sqlite('.holdfast/holdfast.db'), tasks: [mail] });
     await holdfast.work({ name: 'mailer', capabilities: { cpu: 2 } });
     await holdfast.enqueueAll(mail, [1, 2], { needs: { gpu: true } });
     console.log('ready');`,
  );
  const mailer = spawn(process.execPath, ['mailer.mjs'], { cwd: project.folder, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(mailer.stdout, 'data');
    const lack = 'what needs {"gpu":true}: mailer has {"cpu":2}';
    for (const command of [['status'], ['doctor']]) {
      expect((await project.run(...command)).stdout, command.join(' ')).toContain(
        `2 tasks of the type mail are ready, but no running worker takes ${lack}. Start a worker that has these \`capabilities\`\n`,
      );
    }
    const { stdout: shown } = await project.run('show', '1');
    expect(shown).toContain(`held   the running worker does not take ${lack}\n`);
    const { stdout: explained } = await project.run('explain', '1');
    expect(explained).toContain(`#1 mail is ready, but the running worker does not take ${lack}.\n`);
    expect(explained).toContain('change  start a worker that has these `capabilities`\n');
    const hint = `No running worker takes ${lack}. Start a worker that has these \`capabilities\`\n`;
    await project.run('hold', '1');
    expect((await project.run('release', '1')).stderr).toContain(hint);
    expect((await project.run('wait', '1', '--timeout', '1ms')).stderr).toContain(hint);
    expect((await project.run('enqueue', 'mail', '3')).stderr).not.toContain('No running worker');
  } finally {
    mailer.kill();
  }
});

test('status has one line for all types that one program would take', async ({ project }) => {
  for (const type of ['sync_mailbox', 'sync_mailbox', 'send_mail']) await project.run('enqueue', type, '{}');
  const { stdout } = await project.run('status');
  expect(stdout).toContain(
    '3 tasks are ready, but no running worker takes the types sync_mailbox and send_mail: start the program that defines them (no worker has taken them yet)\n',
  );
  expect(stdout).toContain('holdfast list state:ready type:sync_mailbox,send_mail\n');
});

test('on a disk that is already full, a command says that there is no space, not that the disk failed', async ({
  project,
}) => {
  await project.run('enqueue', 'mail', '1');
  const script =
    'mkdir disk && mount -t tmpfs -o size=1m tmpfs disk && cp .holdfast/holdfast.db disk/ && { head -c 2000000 /dev/zero > disk/filler; "$0" "$@"; }';
  const under = ['unshare', process.getuid?.() === 0 ? '-m' : '-Urm', 'sh', '-c', script];
  const { exit, stderr } = await project.start(['status', '--store', 'disk/holdfast.db'], { under }).ended;
  expect([exit, stderr]).toEqual([7, expect.stringMatching(/error: There is no space left for .*disk\/holdfast\.db/)]);
});
