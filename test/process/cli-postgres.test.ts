import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect } from 'vitest';
import { SCHEMA } from '../../src/store/postgres/migrate.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { test as base, type Ended, type HoldfastProcess, Project, type StartOptions } from './cli-process.ts';

/** A part of every address here, and of nothing that is printed. */
const PASSWORD = 'hunter2';

interface Shown {
  readonly task: Record<string, unknown>;
  readonly history: readonly Record<string, unknown>[];
}

let databases: TestDatabases;
beforeAll(async () => {
  const maker = new Project();
  databases = await openDatabases(async (url) => {
    const { exit, stderr } = await maker.run('db', 'migrate', '--store', url);
    if (exit !== 0) throw new Error(stderr);
  });
  await maker.remove();
});
afterAll(() => databases.close());

/** A project whose store is a database of its own, named by HOLDFAST_STORE. */
class Shop {
  readonly project: Project;
  readonly url: string;
  readonly #said: Promise<Ended>[] = [];

  constructor(project: Project, url: string) {
    this.project = project;
    this.url = url;
    project.env = { HOLDFAST_STORE: url };
  }

  /** As printed. */
  get name(): string {
    const { host, pathname } = new URL(this.url);
    return `postgres://${host}${pathname}`;
  }

  start(args: readonly string[], options?: StartOptions): HoldfastProcess {
    const started = this.project.start(args, options);
    this.#said.push(started.ended);
    return started;
  }

  run(...args: readonly string[]): Promise<Ended> {
    const ended = this.project.run(...args);
    this.#said.push(ended);
    return ended;
  }

  async json<T = Shown>(command: string, ...args: readonly string[]): Promise<T> {
    return JSON.parse((await this.run(command, '--json', ...args)).stdout) as T;
  }

  async worker(name: string, ...args: readonly string[]): Promise<HoldfastProcess> {
    const started = this.start(['worker', '--name', name, ...args]);
    await started.says('"event":"up"');
    return started;
  }

  /** Everything that was printed. */
  async said(): Promise<string> {
    return (await Promise.all(this.#said)).map(({ stdout, stderr }) => `${stdout}${stderr}`).join('');
  }
}

const test = base.extend<{ readonly shop: Shop }>({
  shop: async ({ project }, use) => {
    const { url, drop } = await databases.take();
    const shop = new Shop(project, withPassword(url));
    await use(shop);
    await project.remove();
    expect(await shop.said()).not.toContain(PASSWORD);
    drop();
  },
});

/** The server trusts everybody, whatever the password. */
function withPassword(url: string): string {
  const address = new URL(url);
  address.password = PASSWORD;
  return address.href;
}

const WAITS_FOR_GO = ['echo $HOLDFAST_EXECUTION >> started', 'while [ ! -e go ]; do sleep 0.05; done', 'echo done'];

describe.concurrent('on PostgreSQL', () => {
  test('run works a command until it succeeds, and everything that looks tells of it', async ({ shop }) => {
    shop.project.script(
      'flaky',
      'echo "try $HOLDFAST_ATTEMPT"',
      '[ -e tried ] && exit 0',
      'touch tried; echo no >&2; exit 3',
    );
    const ran = await shop.run('run', '--backoff', 'fixed:10ms', '--', './flaky');
    expect(ran).toMatchObject({ exit: 0, stdout: 'try 1\ntry 2\n' });
    expect(ran.stderr).toContain('✓ #1 succeeded after 2 attempts');
    expect((await shop.run('run', '--attempts', '2', '--backoff', 'fixed:10ms', '--', 'sh', '-c', 'exit 7')).exit).toBe(
      7,
    );

    expect((await shop.json('show', '1')).history).toMatchObject([{ outcome: 'failure' }, { outcome: 'success' }]);
    expect((await shop.json('show', '2')).task).toMatchObject({ state: 'dead', attempts: 2, reason: 'process.exit' });
    expect((await shop.run('list')).stdout).toMatch(/✕ +2 .*exit 7\n✓ +1 /);
    expect((await shop.run('explain', '2')).stdout).toContain('attempt 2 of 2 failed');
    expect((await shop.run('logs', '1')).stdout).toBe('try 1\ntry 2\n');
    const status = await shop.run('status');
    expect(status.stdout).toContain('✕ 1 dead: process.exit');
    expect(status.stdout).toContain(`Store    ${shop.name}\n`);
    expect((await shop.run('status', '--check')).exit).toBe(8);
    expect((await shop.run('show', '9')).stderr).toContain(`no task #9 in ${shop.name}`);
    expect(await shop.json('db')).toMatchObject({
      store: shop.name,
      kind: 'postgres',
      schema_version: SCHEMA,
      bytes: expect.any(Number),
    });
    expect(readdirSync(shop.project.folder)).not.toContain('holdfast.db');
  });

  test('a worker takes what others recorded, and what was held is for nobody until it is released', async ({
    shop,
  }) => {
    await shop.run('run', '-b', '--key', 'held', '--', 'echo', 'held');
    expect((await shop.run('hold', 'held')).stdout).toContain('#1 ');
    await shop.run('run', '-b', '--', 'echo', 'free');
    const worker = await shop.worker('w1');
    await worker.says(/"event":"settled".*"task":2,.*"state":"succeeded"/);
    expect((await shop.json('show', '1')).task.state).toBe('held');
    expect((await shop.json<{ items: object[] }>('workers')).items).toMatchObject([{ name: 'w1' }]);
    await shop.run('release', 'held');
    await worker.says(/"event":"settled".*"task":1,.*"state":"succeeded"/);
    expect((await shop.run('logs', 'held')).stdout).toBe('held\n');
    worker.kill('SIGTERM');
    expect((await worker.ended).exit).toBe(0);
  });

  test('a killed worker is noticed by another, which goes on with what it ran', async ({ shop }) => {
    shop.project.script('waits', ...WAITS_FOR_GO);
    await shop.run('run', '-b', '--', './waits');
    const first = await shop.worker('w1');
    await first.says('"event":"started"');
    first.kill('SIGKILL');
    await first.ended;
    shop.project.write('go', '');
    const second = await shop.worker('w2');
    await second.says(/"event":"settled".*"state":"succeeded"/);
    const { task, history } = await shop.json('show', '1');
    expect(task).toMatchObject({ state: 'succeeded', executions: 2, attempts: 0 });
    expect(history).toMatchObject([
      { outcome: 'loss', worker: 'w1' },
      { outcome: 'success', worker: 'w2' },
    ]);
  });

  test('moves, imports, decisions, sources and queues go as in a file', async ({ shop }) => {
    shop.project.write('here', 'x');
    shop.project.write('there', 'y');
    expect((await shop.run('mv', 'here', 'there')).exit).toBe(4);
    expect((await shop.run('resolve', '1', '--as', 'dead')).exit).toBe(0);
    const task = { type: 'shell_command', key: 'old', payload: { argv: ['true'], cwd: shop.project.folder } };
    const file = shop.project.write('old.jsonl', `${JSON.stringify(task)}\n`);
    for (const _ of ['recorded', 'there already']) expect((await shop.run('import', file)).exit).toBe(0);
    expect((await shop.run('sources', 'hold', 'cmd:true')).exit).toBe(0);
    expect((await shop.run('sources')).stdout).toContain('cmd:true');
    expect((await shop.run('sources', 'release', 'cmd:true')).exit).toBe(0);
    expect((await shop.run('queues', 'pause', 'default')).exit).toBe(0);
    expect((await shop.run('wait', '--timeout', '10ms')).exit).toBe(75);
    expect((await shop.run('queues', 'resume', 'default')).exit).toBe(0);
    expect((await shop.run('queues', 'order', 'default', 'priority')).exit).toBe(0);
    expect((await shop.run('cancel', 'old')).exit).toBe(0);
    expect((await shop.run('retry', 'old')).exit).toBe(0);
    expect((await shop.run('resume')).exit).toBe(0);
    expect((await shop.json('show', 'old')).task).toMatchObject({ state: 'succeeded' });
    expect((await shop.run('policies', 'show', '--effective', 'shell_command')).exit).toBe(0);
  });

  test('db prune counts what it would remove, and removes that with its output', async ({ shop }) => {
    await shop.run('run', '--', 'echo', 'hello');
    await shop.run('run', '--attempts', '1', '--', 'false');
    const counts = {
      total: 2,
      items: [
        { state: 'succeeded', count: 1 },
        { state: 'dead', count: 1 },
      ],
    };
    expect(await shop.json('db', 'prune', '--older-than', '0s', '--dry-run')).toMatchObject({
      dry_run: true,
      ...counts,
    });
    expect((await shop.run('logs', '1')).stdout).toBe('hello\n');
    expect(await shop.json('db', 'prune', '--older-than', '0s')).toMatchObject({ dry_run: false, ...counts });
    const output = shop.project.path('.local/state/holdfast/output');
    expect(readdirSync(output).flatMap((folder) => readdirSync(`${output}/${folder}`))).toEqual([]);
  });

  test('logs says that what a command printed is kept where it ran', async ({ shop }) => {
    await shop.run('run', '--', 'echo', 'hello');
    const elsewhere = await shop.start(['logs', '1'], { env: { HOME: shop.project.path('another') } }).ended;
    expect(elsewhere).toMatchObject({ exit: 0, stdout: '' });
    expect(elsewhere.stderr).toBe(
      '#1 has printed nothing here. The output of a command is kept on the machine where it ran, for the user who ran it.\n',
    );
  });

  test('the store may stand in holdfast.yaml, and --store and HOLDFAST_STORE go before it', async ({ shop }) => {
    const { project } = shop;
    project.env = {};
    project.write('holdfast.yaml', `store: ${shop.url}\n`);
    expect(await project.run('run', '--', 'true')).toMatchObject({ exit: 0 });
    expect((await project.run('status')).stdout).toContain(`Store    ${shop.name}\n`);
    expect((await project.run('policies', 'validate')).exit).toBe(0);
    expect((await project.run('status', '--store', './other.db')).stderr).toContain('other.db');
    const env = { HOLDFAST_STORE: project.path('told.db') };
    expect((await project.start(['status'], { env }).ended).stderr).toContain('told.db');
    project.write('holdfast.yaml', `store: ${shop.url}\ntypes: { a: { rety: {} } }\n`);
    // What is wrong elsewhere in the file leads nobody who looks to another store.
    expect((await project.run('list')).stdout).toMatch(/✓ +1 {2}true/);
    project.write('holdfast.yaml', 'store: 5\n');
    const refused = await project.run('list');
    expect(refused).toMatchObject({ exit: 6, stdout: '' });
    expect(refused.stderr).toMatch(
      /^error: holdfast\.yaml is refused: 1 error\n +holdfast\.yaml:1:8 {2}error {4}store: It must be a text/,
    );
  });

  test('a command that calls holdfast finds the same store, if the environment names it', async ({ shop }) => {
    shop.project.script('nested', '"$@"');
    const command = new URL('../../dist/cli/main.js', import.meta.url).pathname;
    const { exit, stdout } = await shop.run('run', '--', './nested', process.execPath, command, 'list', '--ids');
    expect([exit, stdout]).toEqual([0, '1\n']);
  });

  test('what is typed next names the store that a flag named, without its password', async ({ shop }) => {
    const { username, host, pathname } = new URL(shop.url);
    const plain = `postgres://${username}@${host}${pathname}`;
    const { stderr } = await shop.run('run', '-b', '-s', plain, '--', 'true');
    expect(stderr).toContain(`start holdfast -s ${plain} worker`);
    const refused = await shop.run('status', '-s', shop.url);
    expect([refused.exit, refused.stderr]).toEqual([2, expect.stringContaining('--store holds a password')]);
  });
});

describe.concurrent('what cannot be opened ends with 7, and says what to do', () => {
  test('a database without our tables: who only looks makes none', async ({ shop }) => {
    await ask(shop.url, 'DROP SCHEMA holdfast CASCADE');
    for (const command of ['status', 'list', 'db', 'wait']) {
      const { exit, stderr } = await shop.run(command);
      expect([exit, stderr]).toEqual([7, expect.stringContaining(`error: there is no store at ${shop.name}\n`)]);
      expect(stderr).toContain('holdfast db migrate');
    }
    expect((await shop.run('policies')).exit).toBe(0);
    expect(await ask(shop.url, "SELECT 1 FROM pg_namespace WHERE nspname = 'holdfast'")).toEqual([]);
    expect((await shop.run('db', 'migrate')).stdout).toBe(`${shop.name} is at schema ${SCHEMA}.\n`);
    expect((await shop.run('status')).exit).toBe(0);
  });

  test('a database or role that is not there', async ({ shop }) => {
    const [elsewhere, stranger] = [new URL(shop.url), new URL(shop.url)];
    elsewhere.pathname = '/nosuch';
    stranger.username = 'nosuch';
    for (const address of [elsewhere, stranger]) {
      address.password = '';
      const { exit, stderr } = await shop.start(['status', '-vv', '-s', address.href]).ended;
      expect([exit, stderr]).toEqual([7, expect.stringMatching(/"nosuch" does not exist\. Check the user, password/)]);
    }
  });

  test('a server that is not there, for commands, workers and run', async ({ shop }) => {
    const nowhere = 'postgres://eva@127.0.0.1:1/app';
    const [status, worker, run] = await Promise.all([
      shop.start(['status', '--json', '-s', nowhere]).ended,
      shop.start(['worker', '-s', nowhere]).ended,
      shop.start(['run', '-s', nowhere, '--', 'touch', 'ran']).ended,
    ]);
    expect(JSON.parse(status.stdout)).toMatchObject({ code: 'store_unavailable', exit: 7, retryable: true });
    expect([status.exit, worker.exit, run.exit]).toEqual([7, 7, 125]);
    expect(run.stderr).toContain('annot connect to postgres://127.0.0.1:1/app (connect ECONNREFUSED');
    expect(existsSync(shop.project.path('ran'))).toBe(false);
  });

  test('a server that takes connections and says nothing', async ({ shop }) => {
    const mute = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
    await once(mute, 'listening');
    const { port } = mute.address() as AddressInfo;
    const { exit, stderr } = await shop.start(['status', '-s', `postgres://127.0.0.1:${port}/app`]).ended;
    expect([exit, stderr]).toEqual([7, expect.stringContaining('no connection was had within')]);
    mute.close();
  });

  test('an installation without pg', async ({ shop }) => {
    const folder = shop.project.path('installed/holdfast');
    cpSync('dist', `${folder}/dist`, { recursive: true });
    cpSync('package.json', `${folder}/package.json`);
    mkdirSync(`${folder}/node_modules/@hono`, { recursive: true });
    for (const name of ['better-sqlite3', '@hono/node-server', 'commander', 'croner', 'hono', 're2js', 'yaml']) {
      symlinkSync(`${process.cwd()}/node_modules/${name}`, `${folder}/node_modules/${name}`);
    }
    const { exit, stderr } = await shop.start(['status'], { command: `${folder}/dist/cli/main.js` }).ended;
    expect([exit, stderr]).toEqual([7, expect.stringContaining('needs the package pg')]);
    expect(stderr).toContain('npm install -g pg');
  });
});
