import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect } from 'vitest';
import { test } from './cli-process.ts';

const PROGRAM = (name: string) => new URL(`../../examples/dashboard/${name}.js`, import.meta.url).href;
const HOLDFAST = new URL('../../dist/index.js', import.meta.url).href;
const SQLITE = new URL('../../dist/store/sqlite/index.js', import.meta.url).href;

const ACT = { 'content-type': 'application/json', 'x-holdfast': '1' };

describe('holdfast ui', () => {
  test('serves pages and the API to who opens its link or shows a token, until Ctrl-C', async ({ project }) => {
    await project.run('run', '--', 'true');
    const token = 'a-long-text-of-mine';
    const ui = project.start(['ui', '--port', '0', '--environment', 'staging'], { env: { HOLDFAST_UI_TOKEN: token } });
    await ui.says('Ctrl-C ends it');
    const url = new URL(/http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/.exec(ui.stdout)?.[0] as string);
    const api = (path: string) => new URL(`/api/v1/${path}`, url);
    const authorization = `Bearer ${token}`;

    expect((await fetch(api('tasks'))).status).toBe(401);
    const me = (await (await fetch(api('me'), { headers: { authorization } })).json()) as object;
    expect(me).toMatchObject({ environment: 'staging', store: { kind: 'sqlite' }, permissions: { commands: true } });
    const entered = await fetch(url, { redirect: 'manual' });
    const cookie = (entered.headers.get('set-cookie') as string).split(';')[0] as string;
    const key = new URL(entered.headers.get('location') as string, url).hash.replace('#key=', '');
    const page = await fetch(new URL('/tasks/1', url), { headers: { cookie } });
    expect([page.status, await page.text()]).toEqual([200, expect.stringContaining('<base href="../">')]);

    // A configuration with errors needs attention here too, as in `holdfast status`.
    project.write('holdfast.yaml', 'types: { x: { retry: { maxAtempts: 3 } } }\n');
    const { attention } = (await (await fetch(api('status'), { headers: { cookie, 'x-holdfast': key } })).json()) as {
      attention: object[];
    };
    expect(attention).toMatchObject([{ kind: 'config_refused' }]);

    const stream = await fetch(api('events'), { headers: { cookie } });
    expect(stream.headers.get('content-type')).toBe('text/event-stream');
    const noted = await fetch(api('tasks/1/retry'), {
      method: 'POST',
      headers: { cookie, ...ACT, 'x-holdfast': key },
      body: JSON.stringify({ accept_duplicate: true, note: 'once more' }),
    });
    expect(((await noted.json()) as { items: object[] }).items).toMatchObject([{ from: 'succeeded', to: 'ready' }]);
    expect((await project.run('show', '1')).stdout).toContain('once more');

    ui.kill('SIGINT');
    expect((await ui.ended).exit).toBe(0);
  });

  test('lets a browser in by a link that works once, and refuses what others can reach', async ({ project }) => {
    await project.run('run', '--', 'true');
    const ui = project.start(['ui', '--port', '0', '--read-only']);
    await ui.says('Ctrl-C ends it');
    const url = /http:\/\/127\.0\.0\.1:\d+\/\?token=\S+/.exec(ui.stdout)?.[0] as string;
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(303);
    expect((await fetch(url, { redirect: 'manual' })).status).toBe(401);
    await ui.says('for another browser: http://127.0.0.1');

    const taken = await project.run('ui', '--port', new URL(url).port);
    expect([taken.exit, taken.stderr]).toEqual([2, expect.stringContaining('--port 0 takes any free one')]);
    const wide = await project.run('ui', '--host', '0.0.0.0');
    expect([wide.exit, wide.stderr]).toEqual([2, expect.stringContaining('--allow-anyone')]);
    project.env = { HOLDFAST_UI_TOKEN: 'short' };
    expect((await project.run('ui')).stderr).toContain('at least 16 characters');
    ui.kill('SIGTERM');
    expect((await ui.ended).exit).toBe(0);
  });

  test('shows what commands printed: all executions, of a long output the end, and nothing of other files', async ({
    project,
  }) => {
    await project.run('run', '--', 'sh', '-c', 'echo out; echo err >&2');
    await project.run('run', '--', 'sh', '-c', 'yes a-long-line | head -n 30000; echo the-end');
    const token = 'a-long-text-of-mine';
    const ui = project.start(['ui', '--port', '0'], { env: { HOLDFAST_UI_TOKEN: token } });
    await ui.says('Ctrl-C ends it');
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(ui.stdout)?.[0] as string;
    const headers = { authorization: `Bearer ${token}` };
    const logs = async (id: string) =>
      (await (await fetch(`${url}/api/v1/tasks/${id}/logs`, { headers })).json()) as {
        schema: string;
        complete: boolean;
        items: { stream: string; text: string }[];
      };
    const first = await logs('1');
    expect(first).toMatchObject({ schema: 'holdfast.logs/v1', task: 1, state: 'succeeded', complete: true });
    expect(first.items.map(({ stream, text }) => [stream, text]).sort()).toEqual([
      ['stderr', 'err\n'],
      ['stdout', 'out\n'],
    ]);
    const { complete, items } = await logs('2');
    const text = items.map((item) => item.text).join('');
    expect([complete, text.length, text.endsWith('the-end\n')]).toEqual([false, 100_000, true]);
    expect((await fetch(`${url}/api/v1/tasks/${encodeURIComponent('../../1')}/logs`, { headers })).status).toBe(404);
    ui.kill('SIGTERM');
    await ui.ended;
  });

  test('without a login on another address it answers under no name that could be pointed at it', async ({
    project,
  }) => {
    await project.run('run', '--', 'true');
    const flags = ['ui', '--port', '0', '--host', '0.0.0.0', '--allow-anyone', '--allow-host', 'queue.lan'];
    const ui = project.start(flags);
    await ui.says('Ctrl-C ends it');
    const port = /http:\/\/0\.0\.0\.0:(\d+)/.exec(ui.stdout)?.[1] as string;
    for (const [host, status] of [
      ['127.0.0.1', 200],
      ['queue.lan', 200],
      ['evil.example', 421],
    ] as const) {
      const asked = request({
        host: '127.0.0.1',
        port,
        path: '/api/v1/me',
        headers: { host: `${host}:${port}` },
      }).end();
      const [answer] = (await once(asked, 'response')) as [IncomingMessage];
      answer.resume();
      expect([host, answer.statusCode]).toEqual([host, status]);
    }
    ui.kill('SIGTERM');
    await ui.ended;
  });

  test('says on its terminal what went wrong where an answer says only that it was unexpected', async ({ project }) => {
    await project.run('run', '--', 'true');
    const token = 'a-long-text-of-mine';
    const failing = `import fs from 'node:fs/promises';
      import { syncBuiltinESMExports } from 'node:module';
      const { readFile } = fs;
      fs.readFile = async (path, ...more) => {
        if (String(path).endsWith('openapi.json')) throw new Error('EIO: i/o error, read');
        return readFile(path, ...more);
      };
      syncBuiltinESMExports();`;
    const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(failing)}`;
    const ui = project.start(['ui', '--port', '0'], { env: { HOLDFAST_UI_TOKEN: token, NODE_OPTIONS } });
    await ui.says('Ctrl-C ends it');
    const url = /http:\/\/127\.0\.0\.1:\d+\//.exec(ui.stdout)?.[0];
    const headers = { authorization: `Bearer ${token}` };
    const answer = await fetch(`${url}api/v1/openapi.json`, { headers });
    expect([answer.status, await answer.text()]).toEqual([500, expect.not.stringContaining('EIO')]);
    await ui.says('EIO: i/o error, read');
    ui.kill('SIGTERM');
    expect((await ui.ended).exit).toBe(0);
  });
});

describe('the dashboard under a path of', () => {
  for (const name of ['node', 'express', 'fastify', 'hono', 'next']) {
    test(name, async ({ project }) => {
      const { openHoldfast } = (await import(HOLDFAST)) as typeof import('../../src/index.ts');
      const { sqlite } = (await import(SQLITE)) as typeof import('../../src/store/sqlite/index.ts');
      const holdfast = await openHoldfast({ store: sqlite(project.path('app.db')) });
      const server = await serverOf(name, holdfast);
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops/holdfast`;
      try {
        const { id } = await holdfast.enqueue('work', null, { delay: '1h' });
        const headers = { 'x-user': 'admin' };
        expect((await fetch(`${base}/api/v1/tasks`)).status).toBe(401);
        const page = await fetch(base, { headers });
        expect([page.status, await page.text()]).toEqual([
          200,
          expect.stringContaining('<base href="/ops/holdfast/">'),
        ]);
        const script = /src="(?:\.\/)?(assets\/[^"]+\.js)"/.exec(
          await (await fetch(`${base}/tasks`, { headers })).text(),
        )?.[1];
        expect((await fetch(`${base}/${script}`, { headers })).headers.get('content-type')).toContain('javascript');

        const cancel = (user: string) =>
          fetch(`${base}/api/v1/tasks/${id}/cancel`, {
            method: 'POST',
            headers: { 'x-user': user, ...ACT },
            body: JSON.stringify({ note: 'not needed' }),
          });
        expect((await cancel('guest')).status).toBe(403);
        expect((await cancel('admin')).status).toBe(200);
        expect(await holdfast.history(id)).toMatchObject([{ verb: 'cancel', actor: 'admin', note: 'not needed' }]);

        const leaving = new AbortController();
        const stream = await fetch(`${base}/api/v1/events`, { headers, signal: leaving.signal });
        const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
        expect(new TextDecoder().decode((await reader.read()).value)).toContain('retry');
        leaving.abort();
      } finally {
        server.close();
        server.closeAllConnections();
        await holdfast.close();
      }
    });
  }
});

/** Next calls the functions of a route with requests of the web standard; the server of the test stands for it. */
async function serverOf(name: string, holdfast: object): Promise<Server> {
  const example = await import(PROGRAM(name));
  if (name !== 'next') return example.serverOf(holdfast);
  const { getRequestListener } = await import('@hono/node-server');
  const routes = example.routeOf(holdfast) as Readonly<Record<string, (request: Request) => Promise<Response>>>;
  const listener = getRequestListener((request) => routes[request.method]?.(request), { overrideGlobalObjects: false });
  return createServer(listener);
}
