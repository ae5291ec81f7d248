import { existsSync, readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { type HoldfastProcess, type Project, test } from './cli-process.ts';

const quiet = { debug() {}, info() {}, warn() {}, error() {} };

interface Workers {
  readonly items: readonly {
    readonly id: number;
    readonly name: string;
    readonly running: number;
    readonly alive: boolean;
  }[];
}

async function worker(project: Project, name: string, ...args: readonly string[]): Promise<HoldfastProcess> {
  const started = project.start(['worker', '--name', name, ...args]);
  await started.says('"event":"up"');
  return started;
}

/** One that has taken a task of a queue of its own, so that it is in the store by then. */
async function workerOf(project: Project, queue: string, name: string): Promise<HoldfastProcess> {
  await project.run('run', '-b', '--queue', queue, '--', 'true');
  const started = await worker(project, name, '--queues', `${queue},default`);
  await started.says('"event":"settled"');
  return started;
}

/** Hangs at its first execution. */
const HANGS_ONCE = ['[ "$HOLDFAST_EXECUTION" = 1 ] || exit 0', 'echo $$ > pid', 'echo hanging', 'exec sleep 1000'];

const pidOf = (project: Project) => Number(readFileSync(project.path('pid'), 'utf8'));

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

describe.concurrent('holdfast workers', () => {
  test('status names the workers that have different policies of a type; --check gives a deploy time to end', async ({
    project,
  }) => {
    const opened = [3, 5].map(async (maxAttempts) => {
      const tasks = [defineTask('mail', { retry: { maxAttempts }, run() {} })];
      const holdfast = await openHoldfast({ store: sqlite(project.store), tasks, log: quiet });
      const worker = holdfast.work({ name: `worker-${maxAttempts}` });
      await worker.drain();
      return holdfast;
    });
    const programs = await Promise.all(opened);
    expect((await project.run('status')).stdout).toMatch(
      /workers answer failures of mail by different policies: version [0-9a-f]{12} since .*\(worker-[35]\), version .*\(worker-[35]\)/,
    );
    expect(await project.run('status', '--check')).toMatchObject({ exit: 0, stdout: '' });
    for (const holdfast of programs) await holdfast.close();
  });

  test('show says how many tasks a follow-up waits for', async ({ project }) => {
    const holdfast = await openHoldfast({ store: sqlite(project.store), log: quiet });
    const { tasks, followUp } = await holdfast.enqueueGroup('part', [1, 2, 3], { followUp: ['whole', null] });
    await holdfast.cancel(tasks[0]?.id as number);
    await holdfast.close();
    const { stdout } = await project.run('show', String(followUp.id));
    expect(stdout).toContain(`group: 2 of 3 tasks not ended, the first is #${tasks[1]?.id}\n`);
  });

  test('says who works, where, what they run and what they take', async ({ project }) => {
    expect(await project.run('run', '-b', '--', 'true')).toMatchObject({ exit: 0 });
    expect((await project.run('workers')).stderr).toBe('No worker is there. Start one: holdfast worker\n');
    project.script('hangs', ...HANGS_ONCE);
    const one = await workerOf(project, 'mail', 'w1');
    await project.run('run', '-b', '--', './hangs');
    await one.says('"task":3');
    const { exit, stdout } = await project.run('workers');
    expect([exit, stdout.replaceAll(/\s+/g, ' ').trim()]).toEqual([
      0,
      expect.stringMatching(
        /^ID NAME WHERE JOINED LEASE RUNNING TAKES ▶ 1 w1 pid \d+ \S+ ends in \d+s 1 shell_command, file_move, http_delivery; queues mail, default$/,
      ),
    ]);
    expect((await project.json('workers')).document).toMatchObject({
      schema: 'holdfast.workers/v1',
      items: [
        {
          id: 1,
          name: 'w1',
          pid: one.pid,
          running: 1,
          alive: true,
          takes: {
            types: ['shell_command', 'file_move', 'http_delivery'],
            queues: ['mail', 'default'],
            categories: null,
            capabilities: {},
          },
        },
      ],
    });
    one.kill('SIGKILL');
    await one.ended;
    const { stderr } = await project.run('workers');
    expect(stderr).toContain('w1 still holds 1 task.');
    expect(stderr).toContain('do not wait for that: holdfast workers end 1');
    process.kill(pidOf(project), 'SIGKILL');
  });

  test('end takes from one that is stopped what nobody could rob for an hour', async ({ project }) => {
    project.script('hangs', ...HANGS_ONCE);
    const stuck = await worker(project, 'stuck', '--lease', '1h', '--concurrency', '1');
    await project.run('run', '-b', '--', './hangs');
    await stuck.says('"event":"started"');
    stopOutsideOfACommit(project, stuck);
    const other = await worker(project, 'other', '--lease', '1s');

    const { exit, stdout } = await project.run('workers', 'end', 'stuck');
    expect([exit, stdout]).toEqual([0, '⊘ stuck (ID 1) is ended, 1 task to be taken over\n']);
    await other.says('"state":"succeeded"');
    expect((await project.json<{ history: unknown }>('show', '1')).document).toMatchObject({
      task: { state: 'succeeded', executions: 2, attempts: 0 },
      history: [{ outcome: 'loss', worker: 'stuck', charge: 'nobody' }, { worker: 'other' }],
    });
    if (existsSync(project.path('pid'))) process.kill(pidOf(project), 'SIGKILL');
    other.kill('SIGTERM');
    expect((await other.ended).exit).toBe(0);
  });

  test('end makes one that lives stop what it runs and work on as a new one', async ({ project }) => {
    project.script('hangs', ...HANGS_ONCE);
    const started = await worker(project, 'w1', '--lease', '1s');
    await project.run('run', '-b', '--', './hangs');
    const logs = project.start(['logs', '1', '-f']);
    await logs.says('hanging');
    const ended = await project.json('workers', 'end', 'w1');
    expect(ended.document).toEqual({
      schema: 'holdfast.workers.end/v1',
      exit: 0,
      items: [{ id: 1, name: 'w1', running: 1, ended: true }],
    });
    await started.says('"state":"succeeded"');
    expect(lives(pidOf(project))).toBe(false);
    const { items } = (await project.json<Workers>('workers')).document;
    expect(items).toMatchObject([{ name: 'w1', running: 0, alive: true }]);
    expect(items[0]?.id).toBeGreaterThan(1);
    expect((await logs.ended).exit).toBe(0);
    started.kill('SIGTERM');
    expect((await started.ended).exit).toBe(0);
  });

  test('end wants the ID where several have the name, and knows the names that are near', async ({ project }) => {
    const [one, two] = [await workerOf(project, 'a', 'mailer'), await workerOf(project, 'b', 'mailer')];
    const several = await project.run('workers', 'end', 'mailer');
    expect(several).toMatchObject({ exit: 2, stdout: '' });
    expect(several.stderr).toContain('error: 2 workers are called mailer\n       Their IDs: 1 (pid ');
    const unknown = await project.run('workers', 'end', 'mialer');
    expect([unknown.exit, unknown.stderr]).toEqual([3, expect.stringContaining('did you mean mailer?')]);
    const none = await project.json('workers', 'end', '77');
    expect([none.exit, none.document]).toMatchObject([3, { code: 'worker_not_found' }]);

    expect(await project.run('workers', 'end', '2', '2')).toMatchObject({
      exit: 0,
      stdout: '⊘ mailer (ID 2) is ended, no tasks to be taken over\n',
    });
    for (const each of [one, two]) each.kill('SIGTERM');
    for (const each of [one, two]) expect((await each.ended).exit).toBe(0);
  });
});

/** A process that is stopped while it has the file's lock keeps it from everybody. So the lock is taken before. */
function stopOutsideOfACommit(project: Project, stopped: HoldfastProcess): void {
  const database = new Database(project.path('.holdfast/holdfast.db'), { timeout: 10_000 });
  database.exec('BEGIN IMMEDIATE');
  stopped.kill('SIGSTOP');
  database.exec('ROLLBACK');
  database.close();
}
