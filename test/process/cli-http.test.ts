import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished } from 'vitest';
import { serve } from '../handlers/loopback.ts';
import { type HoldfastProcess, type Project, test } from './cli-process.ts';

interface Shown {
  readonly exit: number;
  readonly task: Record<string, unknown>;
  readonly history: readonly Record<string, unknown>[];
}

const LOCAL = ['--allow-private', '--backoff', 'fixed:10ms'];

describe('holdfast http', () => {
  test('delivers in the end, obeys Retry-After, and charges no attempt for it', async ({ project }) => {
    const times: number[] = [];
    const server = await serve((_, response, nth) => {
      times.push(performance.now());
      if (nth === 1) response.writeHead(429, { 'retry-after': '1' }).end();
      else if (nth === 2) response.writeHead(503).end('try later');
      else response.end('thanks');
    });
    const args = [...LOCAL, '--key', 'order-1', '-d', '{"a":1}', '-H', 'X-From: here'];
    const { exit, stdout, stderr } = await project.run('http', 'post', `${server.url}/hook?secret=1`, ...args);
    expect([exit, stdout]).toEqual([0, 'thanks']);
    const lines = stderr.replaceAll(/\d+(\.\d+)?m?s/g, 'N').split('\n');
    // After the pause that the server asked for, its work starts slowly: how long the retry is held for that depends on how fast it came.
    expect(lines.filter((line) => !line.startsWith('  ⏸ held: its source'))).toEqual([
      `▶ #1 POST '${server.url}/hook?…'   up to 8 attempts, fixed N`,
      '  attempt 1  ✕ N  http.429  "429 Too Many Requests"',
      expect.stringMatching(/^ {2}↻ next attempt in N \(rule rate_limited, asked for N.*\) {6}Ctrl-C detaches/),
      '  attempt 1  ✕ N  http.5xx  "503 Service Unavailable: try later"',
      '  ↻ next attempt in N (fixed N, retry 1)',
      '  attempt 2  ✓ N',
      '✓ #1 succeeded after 2 attempts',
      '  200  6 bytes',
      '',
    ]);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(1_000);
    expect(server.heard).toHaveLength(3);
    expect(server.heard[2]).toMatchObject({ method: 'POST', body: '{"a":1}', headers: { 'x-from': 'here' } });

    const { document } = await project.json<Shown>('show', '1');
    expect(document.history.map(({ charge }) => charge)).toEqual(['deferrals', 'task', 'nobody']);
    expect(document.task).toMatchObject({
      type: 'http_delivery',
      source: `http:127.0.0.1:${server.port}`,
      idempotent: false,
      result: { status: 200, bytes: 6, body: 'thanks' },
    });
    const again = await project.run('http', 'POST', `${server.url}/hook?secret=1`, ...args);
    expect([again.exit, again.stdout, server.heard.length]).toEqual([0, '✓ #1 succeeded after 2 attempts\n', 3]);
  });

  test('ends with exit code 4 when its host needs a person, and says how to release it', async ({ project }) => {
    let token = 'wrong';
    const server = await serve((_, response) => {
      if (token === 'wrong') response.writeHead(401).end();
      else response.end('welcome');
    });
    const call = ['http', 'GET', server.url, ...LOCAL];
    expect(await project.run(...call)).toMatchObject({ exit: 1, stderr: expect.stringContaining('✕ #1 dead') });
    const second = await project.run(...call);
    const release = `sources release http:127.0.0.1:${server.port}`;
    expect([second.exit, second.stderr]).toEqual([4, expect.stringContaining(release)]);

    token = 'right';
    expect(await project.run(...call)).toMatchObject({ exit: 4, stderr: expect.stringContaining(release) });
    expect(await project.run(...release.split(' '))).toMatchObject({ exit: 0 });
    expect(await project.run('resume')).toMatchObject({ exit: 0 });
    expect(server.heard).toHaveLength(4);
  });

  const lost: readonly (readonly [string, (response: ServerResponse) => void])[] = [
    ['a reset', (response) => void response.destroy()],
    ['silence', () => {}],
    ['a 504', (response) => void response.writeHead(504).end()],
  ];
  test.for(lost)(
    'asks a person about a POST that ended in %s, and repeats it where that does no harm',
    async ([, lose], { project }) => {
      const server = await serve(({ headers }, response, nth) => {
        if (nth > 2 && headers['x-twice']) response.end();
        else lose(response);
      });
      const call = ['http', 'POST', server.url, ...LOCAL, '--attempt-timeout', '300ms'];
      const { exit, stderr } = await project.run(...call);
      expect([exit, server.heard.length]).toEqual([4, 1]);
      expect(stderr).toContain('needs a person: The effect may have happened, and the task is not idempotent');
      expect(stderr).toContain('it happened  holdfast resolve 1 --as succeeded');

      expect((await project.run(...call, '--idempotent', '-H', 'X-Twice: yes')).exit).toBe(0);
      expect(server.heard).toHaveLength(3);
    },
  );

  test('sends the same idempotency key at each attempt: the task’s key, or one made for it', async ({ project }) => {
    const server = await serve((_, response, nth) => (nth % 2 === 1 ? response.destroy() : response.end()));
    const call = ['http', 'POST', server.url, ...LOCAL];
    expect((await project.run(...call, '--idempotency-header')).exit).toBe(0);
    expect((await project.run(...call, '--key', 'order-7', '--idempotency-header', 'X-Once')).exit).toBe(0);
    const keys = server.heard.map(({ headers }) => headers['idempotency-key'] ?? headers['x-once']);
    expect(keys).toEqual([keys[0], keys[0], 'order-7', 'order-7']);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task.input).toMatchObject({ idempotency: { header: 'Idempotency-Key', key: keys[0] } });
  });

  test('repeats a GET whose answer was lost', async ({ project }) => {
    const server = await serve((_, response, nth) => (nth === 1 ? response.destroy() : response.end('got it\n')));
    expect(await project.run('http', 'GET', server.url, ...LOCAL)).toMatchObject({ exit: 0, stdout: 'got it\n' });
  });

  test('ends by its status: dead at once where trying again cannot help', async ({ project }) => {
    const server = await serve((_, response) => response.writeHead(410).end());
    const { exit, document } = await project.json<Shown>('http', 'DELETE', server.url, ...LOCAL);
    expect([exit, document.exit, server.heard.length]).toEqual([1, 1, 1]);
    expect(document.task).toMatchObject({ state: 'dead', reason: 'http.404' });
    expect(await project.run('http', 'DELETE', server.url, ...LOCAL, '--ok', '2xx,404,410')).toMatchObject({ exit: 0 });
  });

  test('takes a body from a file or a pipe, as it is when it is recorded', async ({ project }) => {
    const server = await serve((_, response) => response.end());
    project.write('order.json', '{"n":1}\n');
    expect((await project.run('http', '-b', 'PUT', server.url, ...LOCAL, '-d', '@order.json')).exit).toBe(0);
    const under = ['sh', '-c', 'printf "a\\377b" | "$@"', 'sh'];
    expect((await project.start(['http', 'PUT', server.url, ...LOCAL, '-d', '-'], { under }).ended).exit).toBe(0);
    project.write('order.json', 'changed');
    expect((await project.run('worker', '--drain')).exit).toBe(0);
    expect(server.heard.map(({ body }) => body)).toEqual(['a\ufffdb', '{"n":1}\n']);
    expect(server.heard.map(({ headers }) => headers['content-type'])).toEqual([
      'application/octet-stream',
      'application/json',
    ]);
  });

  test.for([
    ['POST', 'https://api.example'],
    ['https://api.example', 'POST'],
  ])('refuses to take %s for the name of its idempotency header', async ([word, other], { project }) => {
    const { exit, stderr } = await project.run('http', '--idempotency-header', word as string, other as string);
    expect([exit, stderr]).toEqual([2, expect.stringContaining(`--idempotency-header took ${word} for its name`)]);
  });

  test('writes an answer whole unless it is told to read less, and follows no more redirects', async ({ project }) => {
    const server = await serve(({ path }, response) => {
      if (path === '/loop') response.writeHead(307, { location: '/loop' }).end();
      else if (path === '/bytes') response.end(Buffer.alloc(50_000, 0xff));
      else if (path === '/long') response.end('x'.repeat(2_000_000));
      else response.end('x'.repeat(5_000));
    });
    const long = await project.run('http', 'GET', server.url, ...LOCAL, '--max-body', '1k');
    expect([long.exit, long.stdout.length]).toEqual([0, 1_024]);
    expect(long.stderr).toContain('  200  1024 bytes  cut: there was more than is kept\n');
    const loop = await project.run('http', 'GET', `${server.url}/loop`, ...LOCAL, '--max-redirects', '2');
    expect([loop.exit, loop.stderr]).toEqual([1, expect.stringContaining('more than the 2 redirects')]);
    expect(server.heard).toHaveLength(4);

    const bytes = await project.run('http', 'GET', `${server.url}/bytes`, ...LOCAL);
    expect([bytes.exit, bytes.stdout]).toEqual([0, '\ufffd'.repeat(50_000)]);
    const whole = await project.start(['http', 'GET', `${server.url}/long`, ...LOCAL]).ended;
    expect([whole.exit, whole.stdout.length]).toEqual([0, 2_000_000]);
    expect(whole.stderr).toContain('  200  2000000 bytes\n');
  });
});

describe('holdfast http and those who stop it', () => {
  async function midway(project: Project, method: string): Promise<HoldfastProcess> {
    let started: HoldfastProcess | undefined;
    await new Promise<void>((resolve) => {
      void serve(() => resolve()).then(({ url }) => {
        started = project.start(['http', method, url, '--allow-private']);
      });
    });
    return started as HoldfastProcess;
  }

  test('a POST that was interrupted while it was under way asks a person', async ({ project }) => {
    const sending = await midway(project, 'POST');
    sending.kill('SIGINT');
    expect((await sending.ended).exit).toBe(4);
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'needs_manual' });
  });

  test('a GET that was interrupted stays, uncharged', async ({ project }) => {
    const sending = await midway(project, 'GET');
    sending.kill('SIGINT');
    expect((await sending.ended).exit).toBe(75);
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({ state: 'ready', attempts: 0 });
  });

  test('a POST whose process was killed under way asks a person', async ({ project }) => {
    const sending = await midway(project, 'POST');
    sending.kill('SIGKILL');
    await sending.ended;
    await project.run('worker', '--drain');
    expect((await project.json<Shown>('show', '1')).document.task).toMatchObject({
      state: 'needs_manual',
      reason: 'worker.lost',
    });
  });
});

describe('secrets of holdfast http', () => {
  test('reach the other side, and nothing else: no database, no log, no output', async ({ project }) => {
    const secrets = ['tok-7f3a9c-geheim', 'eva:pw-41b2-geheim', 'file-c0ffee-geheim'];
    const server = await serve(({ headers }, response, nth) => {
      response.setHeader('x-echo', JSON.stringify(headers));
      response.writeHead(nth % 2 === 1 ? 500 : 200, { 'content-type': 'application/json' });
      response.end(JSON.stringify(headers));
    });
    project.write('headers', `X-Api-Key: ${secrets[2]}\n`);
    const env = { TOKEN: secrets[0], LOGIN: secrets[1] };
    const headers = ['-H', 'Authorization: Basic env:LOGIN', '-H', 'X-Token: env:TOKEN', '-H', '@headers'];
    const call = ['http', 'PUT', server.url, ...LOCAL, ...headers, '-d', '{}'];
    const here = await project.start([...call, '--json', '-vv'], { env }).ended;
    await project.start([...call, '-b', '--attempts', '1'], { env }).ended;
    const worker = await project.start(['worker', '--drain', '--json'], { env }).ended;
    const shown = [await project.run('show', '1'), await project.run('show', '2', '--json'), await project.run('list')];
    expect([here.exit, worker.exit, server.heard.length]).toEqual([0, 0, 3]);
    const basic = Buffer.from(secrets[1] as string).toString('base64');
    for (const heard of server.heard) {
      expect(heard.headers).toMatchObject({
        authorization: `Basic ${basic}`,
        'x-token': secrets[0],
        'x-api-key': secrets[2],
      });
    }
    const files = readdirSync(join(project.folder, '.holdfast'), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), 'latin1'));
    const everything = [...files, ...[here, worker, ...shown].flatMap(({ stdout, stderr }) => [stdout, stderr])].join();
    expect(everything).toContain('env');
    expect(everything).toContain('"x-token\\":\\"***');
    for (const secret of [...secrets, basic, 'pw-41b2']) expect(everything).not.toContain(secret);
  });

  test('must be there: here before anything is recorded, and else a person is asked', async ({ project }) => {
    const server = await serve((_, response) => response.end());
    const call = ['http', 'GET', server.url, ...LOCAL, '-H', 'X-Token: env:HOOK_TOKEN'];
    const here = await project.run(...call);
    expect([here.exit, here.stderr]).toEqual([2, expect.stringContaining('there is no variable HOOK_TOKEN here')]);
    expect((await project.run(...call, '-b')).exit).toBe(0);
    await project.run('worker', '--drain');
    const { document } = await project.json<Shown>('show', '1');
    expect(document.task).toMatchObject({ state: 'needs_manual', reason: 'http.secret_missing', attempts: 0 });
    await project.run('retry', '1');
    const resumed = await project.start(['resume', '1'], { env: { HOOK_TOKEN: 'x' } }).ended;
    expect([resumed.exit, server.heard.length]).toEqual([0, 1]);
  });
});

const canUnshare = process.getuid?.() === 0 && process.platform === 'linux';

describe('addresses of holdfast http', () => {
  test.for(['http://127.0.0.1:1/', 'http://2130706433:1/', 'http://[::ffff:7f00:1]:1/', 'http://localhost:1/'])(
    'records nothing for %s unless it is allowed',
    async (url, { project }) => {
      const { exit, stderr } = await project.run('http', 'GET', url);
      expect([exit, stderr]).toEqual([2, expect.stringContaining('to allow it: --allow-private')]);
      expect((await project.json<{ items?: unknown[] }>('list', '-s', project.store)).document.items ?? []).toEqual([]);
    },
  );

  test.runIf(canUnshare)(
    'of names and redirects are judged where they lead, in a network of its own',
    async ({ project }) => {
      const address = '93.184.216.34';
      const hosts = [`${address} public.test`, '127.0.0.1 inside.test', `${address} both.test`, '10.1.2.3 both.test'];
      project.write('hosts', `${hosts.join('\n')}\n`);
      const redirects = {
        '/in': 'http://inside.test/',
        '/meta': 'http://169.254.169.254/',
        '/out': 'http://public.test/ok',
      };
      const calls = [
        'public.test/ok',
        'public.test/out',
        'inside.test/',
        'both.test/',
        'public.test/in',
        'public.test/meta',
      ];
      const options = {
        address,
        redirects,
        cli: fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url)),
        calls: [
          ...calls.map((each) => ['http', 'GET', `http://${each}`]),
          ['http', 'GET', 'http://public.test/in', '--allow-private'],
        ],
      };
      const prepare = `ip link set lo up && ip addr add ${address}/32 dev lo && mount --bind "$1" /etc/hosts && shift && exec "$@"`;
      const driver = fileURLToPath(new URL('http-namespace.mjs', import.meta.url));
      const args = ['-n', '-m', '--', 'sh', '-c', prepare, 'sh', project.path('hosts')];
      const stdout = execFileSync('unshare', [...args, process.execPath, driver, JSON.stringify(options)], {
        env: { PATH: process.env.PATH, HOLDFAST_STORE: project.store, LANG: 'C.UTF-8' },
        encoding: 'utf8',
      });
      const { said, heard } = JSON.parse(stdout) as {
        said: { exit: number; stdout: string; stderr: string }[];
        heard: string[];
      };
      expect(said.map(({ exit }) => exit)).toEqual([0, 0, 1, 1, 1, 1, 0]);
      const refused = [2, 3, 4, 5].map((i) => said[i]?.stderr.match(/http\.private_address {2}"(\S+ is \S+),/)?.[1]);
      expect(refused).toEqual([
        'inside.test is 127.0.0.1',
        'both.test is 10.1.2.3',
        'inside.test is 127.0.0.1',
        '169.254.169.254 is 169.254.169.254',
      ]);
      expect(heard).toEqual([
        'GET public.test/ok',
        'GET public.test/out',
        'GET public.test/ok',
        'GET public.test/in',
        'GET public.test/meta',
        'GET public.test/in',
        'GET inside.test/',
      ]);
    },
  );
});

describe('encryption of holdfast http', () => {
  test('is checked against the name, and not given up for a redirect', async ({ project }) => {
    const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'];
    const [key, cert] = [project.path('key.pem'), project.path('cert.pem')];
    const make = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2'];
    execFileSync('openssl', [...make, '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
    const server = createServer({ key: readFileSync(key), cert: readFileSync(cert) }, ({ url }, response) => {
      if (url === '/plain') response.writeHead(302, { location: 'http://localhost:1/' }).end();
      else response.end('secret talk');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const url = `https://localhost:${(server.address() as AddressInfo).port}`;
    const get = (at: string, env = {}) => project.start(['http', 'GET', at, ...LOCAL], { env }).ended;

    const untrusted = await get(url);
    expect([untrusted.exit, untrusted.stderr]).toEqual([1, expect.stringContaining('tls.certificate')]);
    const env = { NODE_EXTRA_CA_CERTS: cert };
    expect(await get(url, env)).toMatchObject({ exit: 0, stdout: 'secret talk' });
    const otherName = await get(url.replace('localhost', '127.0.0.1'), env);
    expect([otherName.exit, otherName.stderr]).toEqual([1, expect.stringContaining('tls.certificate')]);
    const plain = await get(`${url}/plain`, env);
    expect([plain.exit, plain.stderr]).toEqual([1, expect.stringContaining('it leads from https to http')]);
  });
});
