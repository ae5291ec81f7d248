import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createDashboard } from '../../src/dashboard/dashboard.ts';
import { tokenLogin } from '../../src/dashboard/session.ts';
import { Failed } from '../../src/failure/signals.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { atOnce, useFolder, useKits } from '../worker/scene.ts';
import { callsOf, ORIGIN } from './calls.ts';

const open = useKits();
const folder = useFolder();
const work = defineTask('work', {
  retry: { ...atOnce, maxAttempts: 1 },
  run(text: string) {
    throw new Error(text);
  },
});

test('a page of another site can neither read nor act', async () => {
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, 'x', { delay: '1h' });
  const { get, act, dashboard } = callsOf(kit.holdfast);

  for (const site of ['cross-site', 'same-site']) {
    expect((await get('tasks', { 'sec-fetch-site': site })).json.code).toBe('cross_site');
    expect((await act(`tasks/${id}/cancel`, {}, { 'sec-fetch-site': site })).json.code).toBe('cross_site');
    expect((await get('events', { 'sec-fetch-site': site })).json.code).toBe('cross_site');
  }
  expect((await act(`tasks/${id}/cancel`, {}, { origin: 'https://evil.example' })).json.code).toBe('cross_site');
  expect((await act(`tasks/${id}/cancel`, {}, { origin: 'null' })).json.code).toBe('cross_site');
  // What a form can send.
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x']) {
    expect((await act(`tasks/${id}/cancel`, '{}', { 'content-type': type })).status).toBe(415);
  }
  const bare = new Request(`${ORIGIN}/api/v1/tasks/${id}/cancel`, {
    method: 'POST',
    body: '{}',
    headers: { 'content-type': 'application/json' },
  });
  expect((await dashboard.fetch(bare)).status).toBe(403);
  expect((await get(`tasks/${id}/cancel`)).status).toBe(405);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled' });

  expect((await act(`tasks/${id}/cancel`, {}, { 'sec-fetch-site': 'same-origin' })).status).toBe(200);
  const answer = await dashboard.fetch(
    new Request(`${ORIGIN}/api/v1/tasks`, { headers: { origin: 'https://evil.example' } }),
  );
  expect(answer.headers.get('access-control-allow-origin')).toBeNull();
});

test('a host name that is not its own gets nothing: a name that points at this machine is no way in', async () => {
  const kit = await open({ tasks: [work] });
  const { get } = callsOf(kit.holdfast, { hosts: ['127.0.0.1', 'localhost', '::1'] });
  for (const host of ['evil.example', 'evil.example:4815', '127.0.0.1.evil.example', 'localhost@evil.example']) {
    expect((await get('tasks', { host })).status).toBe(421);
    expect((await get('/', { host })).status).toBe(421);
  }
  for (const host of ['127.0.0.1:4815', 'localhost', '[::1]:4815', 'LOCALHOST']) {
    expect((await get('tasks', { host })).status).toBe(200);
  }
});

test('without a login on another address it answers under addresses and the given names, for a name can be pointed at it', async () => {
  const kit = await open({ tasks: [work] });
  const { get } = callsOf(kit.holdfast, { hosts: ['queue.lan'], anyAddress: true } as object);
  for (const host of ['192.0.2.7:4815', '[2001:db8::1]:80', 'queue.lan'])
    expect((await get('me', { host })).status).toBe(200);
  for (const host of ['evil.example', '192.0.2.7.evil.example', 'localhost']) {
    expect((await get('me', { host })).status).toBe(421);
  }
});

test('only files of the pages are served, whatever the path', async () => {
  const kit = await open({ tasks: [work] });
  const at = folder();
  const pages = join(at, 'page');
  mkdirSync(join(pages, 'assets'), { recursive: true });
  writeFileSync(join(at, 'secret.txt'), 'secret');
  writeFileSync(join(pages, 'index.html'), '<!doctype html><base href="./"><title>Holdfast</title>');
  writeFileSync(join(pages, 'assets/main-1.js'), 'export {}');
  const { get } = callsOf(kit.holdfast, { pages, basePath: '/ops/holdfast' });

  for (const path of [
    '../secret.txt',
    '..%2fsecret.txt',
    '%2e%2e/secret.txt',
    'assets/../../secret.txt',
    '..\\secret.txt',
    'assets/%00.txt',
    '//secret.txt',
  ]) {
    const { status, text } = await get(`/ops/holdfast/${path}`);
    expect([path, text]).toEqual([path, expect.not.stringContaining('secret\n')]);
    expect([path, text.includes('secret') && status === 200]).toEqual([path, false]);
  }
  const script = await get('/ops/holdfast/assets/main-1.js');
  expect([script.text, script.headers.get('cache-control')]).toEqual([
    'export {}',
    expect.stringContaining('immutable'),
  ]);
  expect(script.headers.get('content-type')).toContain('text/javascript');
  for (const path of ['', '/', '/tasks', '/tasks/12', '/sources/imap%3AINBOX']) {
    const page = await get(`/ops/holdfast${path}`);
    expect([path, page.status, page.text]).toEqual([
      path,
      200,
      expect.stringContaining('<base href="/ops/holdfast/">'),
    ]);
  }
  expect((await get('/ops/holdfast/assets/gone.js')).status).toBe(404);
  // A server that mounts it may take the path away.
  expect((await get('/tasks/12')).text).toContain('<base href="/ops/holdfast/">');
  expect((await callsOf(kit.holdfast, { pages }).get('/tasks/12')).text).toContain('<base href="../">');
});

test('every answer forbids frames, foreign scripts and guesses of its type', async () => {
  const kit = await open({ tasks: [work] });
  const { get, act } = callsOf(kit.holdfast);
  for (const { headers } of [
    await get('/'),
    await get('tasks'),
    await get('nothing'),
    await act('nothing'),
    await get('events', { 'sec-fetch-site': 'cross-site' }),
  ]) {
    expect(headers.get('content-security-policy')).toContain("script-src 'self'");
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('content-security-policy')).not.toContain('unsafe');
    expect(headers.get('x-frame-options')).toBe('DENY');
    expect(headers.get('x-content-type-options')).toBe('nosniff');
  }
});

test('scripts in names and errors are only text in JSON, and large errors and bodies have an end', async () => {
  const kit = await open({ tasks: [work] });
  const evil = '</script><img src=x onerror=alert(1)>\u2028';
  await kit.holdfast.enqueue(work, evil, { key: evil, source: evil.slice(0, -1) });
  await kit.holdfast.enqueue(work, 'x'.repeat(900_000));
  await kit.drain();
  const { get, act } = callsOf(kit.holdfast);

  const list = await get('tasks');
  expect(list.headers.get('content-type')).toBe('application/json');
  expect(list.json.items[1]).toMatchObject({ key: evil, error: { message: evil } });
  const { text } = await get(`sources/${encodeURIComponent(evil.slice(0, -1))}`);
  expect(JSON.parse(text).source.name).toBe(evil.slice(0, -1));
  const { json: shown } = await get('tasks/2');
  expect(shown.history[0].failure.message.length).toBeLessThan(20_000);
  expect((await act('tasks', JSON.stringify({ type: 'work', input: 'x'.repeat(3_000_000) }))).status).toBe(413);
  expect((await act('tasks', { type: 'work', input: 'x'.repeat(1_500_000) })).json.code).toBe('payload_too_large');
  expect((await act('tasks', `{"type": "work", "__proto__": {"x": 1}}`)).status).toBe(400);
});

test('a secret in an error is in no answer', async () => {
  const kit = await open({ tasks: [work] });
  const secrets = ['hunter2secret', 'sk-live-0123456789abcdef', 'eyJhbGciOiJIUzI1NiJ9.abc.def'];
  const [password, key, token] = secrets;
  await kit.holdfast.enqueue(
    work,
    `401 from https://ann:${password}@bank.example/?api_key=${key}: Authorization: Bearer ${token}`,
  );
  await kit.drain();
  // The input is the task's own: only its error is looked at.
  const { id } = (await kit.holdfast.list())[0] as { id: number };
  const { get } = callsOf(kit.holdfast);
  const { task: _, ...shown } = (await get(`tasks/${id}`)).json;
  const { task: __, ...explained } = (await get(`tasks/${id}/explain`)).json;
  const [{ input: ___, ...listed }] = (await get('tasks')).json.items;
  const seen = [
    shown,
    explained,
    listed,
    (await get('failures')).json,
    (await get('status')).json,
    (await get('sources')).json,
  ];
  for (const secret of secrets) expect(JSON.stringify(seen)).not.toContain(secret);
});

test('parameters with names that every object has are unknown parameters', async () => {
  const kit = await open({ tasks: [work] });
  const { get } = callsOf(kit.holdfast);
  for (const key of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
    const { status, json } = await get(`tasks?${key}=x`);
    expect([key, status, json.code, json.detail]).toEqual([key, 400, 'invalid_input', expect.stringContaining(key)]);
  }
});

test('who may not see inputs gets none, nor results, progress and outputs, in any answer', async () => {
  const hidden = 'planted-4711';
  const done = defineTask('done', { run: async () => ({ receipt: hidden }) });
  const asks = defineTask('asks', {
    idempotent: false,
    source: () => 'bank',
    run(_, task) {
      task.progress({ at: hidden });
      return breaks();
    },
  });
  // As the command line records them: their inputs stand in summaries and in advice.
  const command = defineTask('shell_command', { retry: { ...atOnce, maxAttempts: 1 }, run: fails('no.advice') });
  const move = defineTask('file_move', {
    retry: { onExhausted: 'needs_manual', maxAttempts: 1 },
    run: fails('fs.dest_exists'),
  });
  const request = defineTask('http_delivery', { idempotent: false, run: breaks });
  const kit = await open({ tasks: [done, asks, command, move, request] });
  const { holdfast } = kit;
  await holdfast.enqueue(done, { card: hidden });
  await holdfast.enqueue(asks, { url: `https://${hidden}.example`, method: 'POST' });
  await holdfast.enqueue(command, { argv: ['pay', hidden] });
  await holdfast.enqueue(move, { from: `/tmp/${hidden}`, to: `/tmp/to-${hidden}` });
  await holdfast.enqueue(request, { method: 'POST', url: `https://pay.example/${hidden}` });
  await holdfast.schedules.set('nightly', { task: done, input: { card: hidden }, cron: '0 3 * * *' });
  await kit.drain();

  const { get, act } = callsOf(holdfast, { authorize: () => ({ name: 'bob', can: ['view', 'retry'] }) });
  const ids = (await get('tasks')).json.items.map(({ id }: { id: number }) => id);
  expect(ids).toHaveLength(5);
  const ofTasks = ids.flatMap((id: number) => [
    `tasks/${id}`,
    `tasks/${id}/explain`,
    `tasks/${id}/explain-if?options=maxAttempts:%209`,
  ]);
  const lists = [
    'tasks',
    'status',
    'inbox',
    'failures',
    'happened',
    'audit',
    'schedules',
    'schedules/nightly',
    'forecast',
    'doctor',
    'sources',
    'workers',
  ];
  for (const path of [...ofTasks, ...lists]) {
    const { status, text } = await get(path);
    expect([path, status, text.includes(hidden)]).toEqual([path, 200, false]);
  }
  expect((await act('selections', { filter: 'state:dead', verb: 'retry' })).text).not.toContain(hidden);
  expect((await get(`tasks/${ids[0]}/logs`)).status).toBe(403);
  expect((await get(`tasks/${ids[0]}`)).json.task).toMatchObject({ input: null, result: null, hidden: true });
  const { get: getAll } = callsOf(holdfast);
  const shown = await Promise.all(
    [...ofTasks, ...lists].map(async (path) => [(await getAll(path)).text, path] as const),
  );
  expect(shown.filter(([text]) => text.includes(hidden)).map(([, path]) => path)).toEqual(
    expect.arrayContaining(['tasks', 'status', 'inbox', 'schedules', 'schedules/nightly', `tasks/${ids[0]}`]),
  );
  // At the same moment somebody else is shown them.
  const all = callsOf(holdfast, {
    authorize: (request) => (request.headers.get('x-who') === 'eva' ? 'eva' : { name: 'bob', can: ['view'] }),
  });
  const both = await Promise.all([all.get('inbox', { 'x-who': 'eva' }), all.get('inbox')]);
  expect(both.map(({ text }) => text.includes(hidden))).toEqual([true, false]);
});

function breaks(): never {
  throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', syscall: 'read' });
}

function fails(reason: string) {
  return () => {
    throw new Failed('it went wrong', { kind: 'permanent', reason });
  };
}

test('whatever `authorize` returns that names nobody lets nobody in', async () => {
  const kit = await open({ tasks: [work] });
  const answerTo = async (who: unknown, path = 'tasks') =>
    (await callsOf(kit.holdfast, { authorize: () => who as never }).get(path)).status;
  for (const nobody of [undefined, null, false, '']) {
    for (const path of ['tasks', 'me', 'events', 'openapi.json', '/']) {
      expect([nobody, path, await answerTo(nobody, path)]).toEqual([nobody, path, 401]);
    }
  }
  // A mistake in the program that mounts it: an error in its log, and nobody is let in.
  const mistakes = [true, 1, {}, [], { name: '' }, { name: undefined }, { name: 7 }, { id: 'ann' }];
  const lists = ['view', ['View'], ['view', undefined], { view: true }, null].map((can) => ({ name: 'ann', can }));
  for (const mistake of [...mistakes, ...lists]) {
    for (const path of ['tasks', 'events', '/']) {
      expect([mistake, path, await answerTo(mistake, path)]).toEqual([mistake, path, 500]);
    }
  }
  expect(await answerTo({ name: 'ann', can: [] })).toBe(403);
  expect(await answerTo({ name: 'ann', can: undefined })).toBe(200);
});

test('an unexpected error says nothing of itself, and is in the log', async () => {
  const kit = await open({ tasks: [work] });
  const lines: unknown[] = [];
  const log = { debug() {}, info() {}, warn() {}, error: (fields: object) => lines.push(fields) };
  const { get } = callsOf(kit.holdfast, {
    log,
    authorize: () => {
      throw new Error('password: hunter2');
    },
  });
  const { status, text } = await get('tasks');
  expect([status, text]).toEqual([500, expect.not.stringContaining('hunter2')]);
  expect(lines).toMatchObject([{ err: { message: 'password: hunter2' } }]);
});

test('a link with a token lets one browser in, once; programs show a token of their own', async () => {
  const kit = await open({ tasks: [work] });
  const queries: string[] = [];
  const { authorize, query } = tokenLogin({ user: { name: 'ann' }, onUsed: (next) => queries.push(next) });
  const { get, dashboard } = callsOf(kit.holdfast, { authorize });
  expect((await get('tasks')).status).toBe(401);
  expect((await get('tasks', { authorization: 'Bearer x' })).status).toBe(401);

  const link = query();
  const entered = await dashboard.fetch(new Request(`${ORIGIN}/tasks${link}&filter=state:dead`));
  expect([entered.status, entered.headers.get('location')]).toEqual([
    303,
    expect.stringMatching(/^\/tasks\?filter=state%3Adead#key=[\w-]{32}$/),
  ]);
  const key = entered.headers.get('location')?.split('#key=')[1] as string;
  const set = entered.headers.get('set-cookie') ?? '';
  expect(set).toMatch(/HttpOnly; SameSite=Strict; Path=\/$/);
  const cookie = set.split(';')[0] as string;
  const letIn = { 'x-holdfast': key };
  expect((await get('me', { ...letIn, cookie: `other=1; ${cookie}` })).json).toMatchObject({ actor: 'ann' });
  expect((await get('me', { ...letIn, cookie: `${cookie}x` })).status).toBe(401);
  expect((await get('me', letIn)).status).toBe(401);
  expect((await get(`/${link}`)).status).toBe(401);
  expect(queries).toEqual([query()]);
  expect((await get(`/${query()}`)).status).toBe(303);

  // The link leads nowhere but to this server.
  for (const path of ['//evil.example/', '///evil.example', '/\\evil.example/']) {
    const away = await authorize(new Request(`${ORIGIN}${path}${query()}`));
    const location = (away as Response).headers.get('location') as string;
    expect([path, new URL(location, ORIGIN).origin]).toEqual([path, ORIGIN]);
  }

  const own = callsOf(kit.holdfast, {
    authorize: tokenLogin({ user: { name: 'ann' }, token: 'a-long-text-of-mine' }).authorize,
  });
  expect((await own.get('tasks', { authorization: 'Bearer a-long-text-of-mine' })).status).toBe(200);
  expect((await own.get('tasks', { authorization: 'Bearer another-text' })).status).toBe(401);
});

test('the cookie alone, which a browser shows to every port of the machine, reads nothing and does nothing', async () => {
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, 'x', { delay: '1h' });
  const { authorize, query } = tokenLogin({ user: { name: 'ann' } });
  const { get, act } = callsOf(kit.holdfast, { authorize });
  const entered = await get(`/${query()}`);
  const cookie = entered.headers.get('set-cookie')?.split(';')[0] as string;
  // Another dashboard of the same machine has a cookie of its own.
  expect(cookie).toMatch(/^holdfast_session_4815=/);
  for (const path of ['tasks', 'me', `tasks/${id}`, 'openapi.json', 'nothing']) {
    for (const key of [
      {},
      { 'x-holdfast': '1' },
      { 'x-holdfast': '' },
      { 'x-holdfast': cookie.split('=')[1] as string },
    ]) {
      expect([path, (await get(path, { cookie, ...key })).status]).toEqual([path, path === 'nothing' ? 404 : 401]);
    }
  }
  for (const path of [
    '/api/v1/tasks/',
    '//api/v1/tasks',
    '/api//v1/tasks',
    '/api/v1/events/../tasks',
    '/%61pi/v1/tasks',
  ]) {
    expect([path, (await get(path, { cookie })).text]).toEqual([path, expect.not.stringContaining('holdfast.list')]);
  }
  expect((await act(`tasks/${id}/cancel`, {}, { cookie })).status).toBe(401);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled' });
});

test('without a word about who may use it, no dashboard is made', async () => {
  const kit = await open({ tasks: [work] });
  expect(() => createDashboard(kit.holdfast, {} as never)).toThrow('authorize');
  expect(() => createDashboard(kit.holdfast, { authorize: 'anyone', basePath: 'ops' })).toThrow('basePath');
  for (const [option, value] of Object.entries({ environment: 7, hosts: 'ops.example', log: console.log })) {
    const options = { authorize: 'anyone', [option]: value } as never;
    expect(() => createDashboard(kit.holdfast, options)).toThrow(option);
  }
  const anyone = callsOf(kit.holdfast, { authorize: 'anyone' });
  expect((await anyone.get('me')).json.permissions).toMatchObject({ retry: true, commands: false });
  const elsewhere = callsOf(kit.holdfast, { authorize: () => Response.redirect('https://login.example/', 302) });
  expect((await elsewhere.get('/')).status).toBe(302);
});
