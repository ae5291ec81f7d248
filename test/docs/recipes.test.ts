import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { Dovecot } from '../../examples/ingestion/test/dovecot.ts';
import { installPacked, root, run } from './packed.ts';
import { freePort, readPage, writeFilesOf } from './page.ts';

const PAGES = 'docs/guides/recipes';

/** What the recipes import. */
const DEPENDENCIES = {
  '@nestjs/common': '^11.2.10',
  '@nestjs/core': '^11.2.10',
  '@nestjs/platform-express': '^11.2.10',
  '@types/express': '^5.0.4',
  '@types/node': '^20.19.43',
  'better-sqlite3': '^12.11.1',
  express: '^5.3.0',
  fastify: '^5.12.8',
  imapflow: '^2.10.2',
  'reflect-metadata': '^0.2.2',
  rxjs: '^7.8.2',
};

const TSCONFIG = {
  compilerOptions: {
    target: 'ES2023',
    lib: ['ES2023', 'ESNext.Disposable', 'DOM'],
    module: 'NodeNext',
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    experimentalDecorators: true,
    rewriteRelativeImportExtensions: true,
    skipLibCheck: true,
    rootDir: 'src',
    outDir: 'build',
  },
  include: ['src'],
};

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-recipes-'));
  await writeFile(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: DEPENDENCIES }),
  );
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));
  for (const page of await readdir(PAGES)) await writeFilesOf(await readPage(join(PAGES, page)), join(folder, 'src'));
  await installPacked(folder);
  const tsc = join(root, 'node_modules/typescript/bin/tsc');
  const compiled = await run(process.execPath, [tsc], { cwd: folder }).catch((error: { stdout: string }) => error);
  expect(compiled.stdout).toBe('');
});
afterAll(() => rm(folder, { recursive: true }));

const started: ChildProcess[] = [];
const servers: Server[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) if (child.exitCode === null) child.kill('SIGKILL');
  for (const server of servers.splice(0)) server.close();
});

/** A server whose answers the test gives, one for each request. */
async function serverOf(answer: (request: IncomingMessage, response: ServerResponse, n: number) => void) {
  let count = 0;
  const server = createServer((request, response) => answer(request.resume(), response, ++count)).listen(
    0,
    '127.0.0.1',
  );
  servers.push(server);
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function start(file: string, env: Readonly<Record<string, string>>): { child: ChildProcess; ended: Promise<number> } {
  const child = spawn(process.execPath, [`build/${file}`], {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: 'inherit',
  });
  started.push(child);
  return { child, ended: once(child, 'exit').then(([code]) => code as number) };
}

/** Runs a program that imports a recipe, and returns what it prints. */
async function evaluate(program: string, env: Readonly<Record<string, string>> = {}): Promise<unknown> {
  const args = ['--input-type=module', '-e', program];
  const { stdout } = await run(process.execPath, args, { cwd: folder, env: { ...process.env, ...env } });
  return JSON.parse(stdout.trim().split('\n').at(-1) as string);
}

/** Sends a request to a program that is starting, until it listens. */
async function post(url: string, body: object): Promise<{ status: number; body: unknown }> {
  for (;;) {
    try {
      const headers = { 'content-type': 'application/json' };
      const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
      return { status: response.status, body: await response.json() };
    } catch (error) {
      if ((error as { cause?: { code?: string } }).cause?.code !== 'ECONNREFUSED') throw error;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

test('webhooks: an Express app delivers through failures, once, and stops when it is told to', async () => {
  const keys: unknown[] = [];
  const arrived = deferred<void>();
  const receiver = await serverOf((request, response, n) => {
    keys.push(request.headers['idempotency-key']);
    if (n === 1) response.writeHead(429, { 'retry-after': '1' }).end();
    else if (n === 2) response.writeHead(503, { 'retry-after': '1' }).end();
    else response.writeHead(204).end(() => arrived.resolve());
  });
  const port = await freePort();
  const { child, ended } = start('webhooks/app.js', { PORT: `${port}`, TASKS: join(folder, 'webhooks.db') });
  const order = () => post(`http://127.0.0.1:${port}/orders`, { id: '17', notify: receiver });
  const first = await order();
  expect(first.status).toBe(202);
  expect(await order()).toEqual(first);
  expect(await post(`http://127.0.0.1:${port}/orders`, { id: '18', notify: 'localhost:80/orders' })).toEqual({
    status: 400,
    body: { error: expect.stringContaining('what the function `source` of webhook returns must be') },
  });
  await arrived.promise;
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  expect([keys.length, new Set(keys).size]).toEqual([3, 1]);
});

function deferred<T>() {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

describe('web frameworks', () => {
  test.each(['fastify', 'nest'])(
    '%s: a repeated delivery is one task, and the program ends when it is told to',
    async (name) => {
      const port = await freePort();
      const { child, ended } = start(`web/${name}.js`, { PORT: `${port}`, TASKS: join(folder, `${name}.db`) });
      const deliver = () => post(`http://127.0.0.1:${port}/deliveries`, { id: 'a', event: 'paid' });
      const first = await deliver();
      expect(first).toEqual({ status: 202, body: { task: expect.any(Number) } });
      expect(await deliver()).toEqual(first);
      child.kill('SIGTERM');
      expect([0, null]).toContain(await ended);
    },
  );

  test('next: the route enqueues, and the hook of the server starts a worker', async () => {
    const program = `
      import { register } from './build/web/instrumentation.js';
      import { POST } from './build/web/route.js';
      import { holdfast } from './build/web/holdfast.js';
      await register();
      const send = () => POST(new Request('http://x/', { method: 'POST', body: JSON.stringify({ id: 'a', event: 'paid' }) }));
      const { task } = await (await send()).json();
      const result = await (await holdfast()).result(task);
      console.log(JSON.stringify([(await send()).status, result]));
      await (await holdfast()).close();`;
    expect(await evaluate(program, { NEXT_RUNTIME: 'nodejs', TASKS: join(folder, 'next.db') })).toEqual([202, 'paid']);
  });
});

test('llm-calls: a rate limit costs nothing, and what was paid for is kept', async () => {
  const api = await serverOf((_, response, n) => {
    if (n === 1) response.writeHead(429, { 'retry-after': '20' }).end();
    else response.writeHead(200, { 'content-type': 'application/json' }).end('{"text":" Forty-two. "}');
  });
  const program = `
    import { openTestHoldfast } from 'holdfast/testing';
    import { ask } from './build/llm/tasks.js';
    const kit = await openTestHoldfast({ tasks: [ask] });
    const { id } = await kit.holdfast.enqueue(ask, { prompt: 'What is the answer?' });
    await kit.advance('10m');
    const { state, result, attempts } = await kit.holdfast.get(id);
    console.log(JSON.stringify({ state, result, attempts }));
    await kit.close();`;
  expect(await evaluate(program, { LLM_API: api })).toMatchObject({
    state: 'succeeded',
    result: { summary: 'Forty-two.' },
  });
});

test('exactly-once: a transfer whose answer was lost is looked up, and not sent again', async () => {
  const transfers: string[] = [];
  const bank = await serverOf((request, response) => {
    if (request.method === 'GET') return response.writeHead(transfers.length > 0 ? 200 : 404).end();
    transfers.push('made');
    return request.socket.destroy();
  });
  const program = `
    import { openHoldfast } from 'holdfast';
    import { sqlite } from 'holdfast/sqlite';
    import { transfer } from './build/once/tasks.js';
    const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [transfer] });
    const { id } = await holdfast.enqueue(transfer, { reference: 'r1', cents: 100 });
    await holdfast.work({ maxTasks: 1 }).finished;
    const { state, executions } = await holdfast.get(id);
    console.log(JSON.stringify({ state, executions }));
    await holdfast.close();`;
  expect(await evaluate(program, { BANK: bank })).toEqual({ state: 'succeeded', executions: 1 });
  expect(transfers).toEqual(['made']);
});

test('graceful-shutdown: a stopped report goes on where it was, and is not charged', async () => {
  const TASKS = join(folder, 'shutdown.db');
  const look = (pages?: number) =>
    evaluate(
      `
      import { openHoldfast } from 'holdfast';
      import { sqlite } from 'holdfast/sqlite';
      const holdfast = await openHoldfast({ store: sqlite(process.env.TASKS) });
      ${pages === undefined ? '' : `await holdfast.enqueue('report', { pages: ${pages} });`}
      const { state, executions, attempts, progress } = await holdfast.get(1);
      console.log(JSON.stringify({ state, executions, attempts, done: progress?.value?.done ?? progress?.done ?? 0 }));
      await holdfast.close();`,
      { TASKS },
    ) as Promise<{ state: string; executions: number; attempts: number; done: number }>;
  await look(1_000);
  const { child, ended } = start('shutdown/worker.js', { TASKS });
  while ((await look()).done === 0);
  child.kill('SIGTERM');
  child.kill('SIGINT');
  expect(await ended).toBe(0);
  expect(await look()).toMatchObject({ state: 'ready', executions: 1 });
});

test('outages: half an hour without a server, and no task is dead', async () => {
  const { stdout } = await run(process.execPath, ['build/outages/test.js'], { cwd: folder });
  expect(stdout).toBe('50 of 50 succeeded, none was dead\n');
});

test('cron: three days, three digests, although the first attempt of each failed', async () => {
  const { stdout } = await run(process.execPath, ['build/cron/test.js'], { cwd: folder });
  expect(stdout).toMatch(/^(The orders of \d{4}-\d\d-\d\d\n){3}$/);
});

test('files: what arrives is imported once and archived, and what has an error stays', async () => {
  const place = await mkdtemp(join(tmpdir(), 'holdfast-files-'));
  const [inbox, archive] = [join(place, 'inbox'), join(place, 'archive')];
  await Promise.all([mkdir(inbox), mkdir(archive)]);
  await writeFile(join(inbox, 'good.csv'), 'apple,1.20\npear,2\n');
  await writeFile(join(inbox, 'bad.csv'), 'apple,1.20\npear\n');
  await writeFile(join(inbox, '.writing.csv'), 'app');
  const program = `
    import { openHoldfast } from 'holdfast';
    import { sqlite } from 'holdfast/sqlite';
    import { enqueueFiles, importFile } from './build/files/tasks.js';
    const holdfast = await openHoldfast({ store: sqlite(':memory:'), tasks: [importFile] });
    const [inbox, archive] = ${JSON.stringify([inbox, archive])};
    await enqueueFiles(holdfast, inbox, archive);
    await enqueueFiles(holdfast, inbox, archive);
    await holdfast.work({ maxTasks: 2 }).finished;
    const { byState } = await holdfast.counts();
    console.log(JSON.stringify([byState.succeeded, byState.dead]));
    await holdfast.close();`;
  expect(await evaluate(program)).toEqual([1, 1]);
  expect([await readdir(inbox), await readdir(archive)]).toEqual([['.writing.csv', 'bad.csv'], ['good.csv']]);
  const { child, ended } = start('files/main.js', { INBOX: inbox, ARCHIVE: archive, TASKS: join(place, 'tasks.db') });
  await writeFile(join(inbox, 'late.csv'), 'plum,3\n');
  while (!existsSync(join(archive, 'late.csv'))) await new Promise((resolve) => setTimeout(resolve, 20));
  child.kill('SIGTERM');
  expect(await ended).toBe(0);
  await rm(place, { recursive: true });
});

test('mailboxes: mail of a real IMAP server is fetched', async () => {
  const mail = await Dovecot.open();
  mail.deliver('ada', 'Hello');
  mail.deliver('grace', 'Good morning');
  const env = {
    TASKS: join(folder, 'mail.db'),
    IMAP_HOST: '127.0.0.1',
    IMAP_PORT: `${mail.port}`,
    IMAP_PASS_ADA: 'secret',
    IMAP_PASS_GRACE: 'secret',
    ONCE: '1',
  };
  const { stdout } = await run(process.execPath, ['build/mail/main.js'], {
    cwd: folder,
    env: { ...process.env, ...env },
  });
  expect(stdout.split('\n').sort()).toEqual(['', '1: Good morning', '1: Hello']);
  const program = `
    import { openTestHoldfast } from 'holdfast/testing';
    import { fetchMail } from './build/mail/tasks.js';
    const kit = await openTestHoldfast({ tasks: [fetchMail] });
    const input = { host: '127.0.0.1', port: ${mail.port}, user: 'ada' };
    await kit.holdfast.enqueueAll(fetchMail, [input, input, input]);
    // The server answers in real time while the clock moves: so it takes some turns.
    let held;
    while (held !== 'needs_person') {
      await kit.advance('1m');
      held = (await kit.holdfast.get(3)).heldBy;
    }
    console.log(JSON.stringify(held));
    await kit.close();`;
  expect(await evaluate(program, { IMAP_PASS_ADA: 'wrong' })).toBe('needs_person');
  await mail.close();
});

describe('commands of the recipes', () => {
  const holdfast = (cwd: string, ...args: string[]) =>
    run(process.execPath, [join(root, 'dist/cli/main.js'), ...args], {
      cwd,
      env: { ...process.env, HOME: cwd, NO_COLOR: '1' },
    });

  test('nightly: the file is right, and its schedule runs a real rsync when somebody asks for it', async () => {
    const place = await mkdtemp(join(tmpdir(), 'holdfast-nightly-'));
    await mkdir(join(place, 'data'));
    await writeFile(join(place, 'data/a.txt'), 'a');
    const yaml = await readFile(join(folder, 'src/nightly/holdfast.yaml'), 'utf8');
    expect(yaml).toContain('cwd: /srv');
    await writeFile(join(place, 'holdfast.yaml'), yaml.replace('cwd: /srv', `cwd: ${place}`));
    const store = ['--store', join(place, 'tasks.db')];
    await holdfast(place, 'policies', 'validate');
    const worker = spawn(process.execPath, [join(root, 'dist/cli/main.js'), 'worker', ...store], {
      cwd: place,
      stdio: 'ignore',
    });
    started.push(worker);
    for (;;) {
      const { stdout } = await holdfast(place, 'schedules', ...store).catch(() => ({ stdout: '' }));
      if (stdout.includes('backup')) break;
    }
    await holdfast(place, 'schedules', 'run', 'backup', ...store);
    while (!existsSync(join(place, 'backup/a.txt'))) await new Promise((resolve) => setTimeout(resolve, 20));
    const ended = once(worker, 'exit');
    worker.kill('SIGTERM');
    await ended;
    await rm(place, { recursive: true });
  });

  test('are commands that there are', async () => {
    const place = await mkdtemp(join(tmpdir(), 'holdfast-commands-'));
    const store = join(place, 'tasks.db');
    await holdfast(place, 'enqueue', 'push', '{}', '--store', store, '--quiet');
    const pages = await Promise.all((await readdir(PAGES)).map((page) => readPage(join(PAGES, page))));
    const lines = pages
      .flatMap((page) => [...page.matchAll(/^```sh\n(.*?)^```/gms)].flatMap(([, block = '']) => block.split('\n')))
      .map((line) => line.replace(/ +(#|\|\|).*/, ''))
      .filter((line) => line.startsWith('holdfast ') && !/ (worker|service|policies|schedules run)\b/.test(line));
    expect(lines.length).toBeGreaterThan(7);
    for (const line of lines) {
      const words = [...line.matchAll(/'([^']*)'|(\S+)/g)]
        .map(([, quoted, word]) => (quoted ?? word) as string)
        .slice(1);
      const given = words.includes('--store')
        ? words.map((word) => (word === 'tasks.db' ? store : word))
        : [...words, '--store', store];
      const { code = 0, stderr } = await holdfast(place, ...given, '--yes').then(
        () => ({ code: 0, stderr: '' }),
        (error: { code: number; stderr: string }) => error,
      );
      // 2 and 64 are refused commands; 4 and 8 are answers about an empty store.
      expect([line, [0, 4, 8].includes(code) ? 'accepted' : stderr]).toEqual([line, 'accepted']);
    }
    await rm(place, { recursive: true });
  });
});
