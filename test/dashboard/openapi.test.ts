import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { afterAll, describe, expect, test } from 'vitest';
import { apiPage } from '../../src/dashboard/api-page.ts';
import { openApi } from '../../src/dashboard/openapi.ts';
import { ROUTES } from '../../src/dashboard/routes/index.ts';
import { openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { StoreOpener } from '../../src/store/store.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { openDatabases } from '../postgres/databases.ts';
import { atOnce } from '../worker/scene.ts';
import { type Answer, callsOf } from './calls.ts';

const description = JSON.parse(readFileSync('schemas/openapi.json', 'utf8'));

const databases = await openDatabases(async () => {});
afterAll(() => databases.close());

const charge = defineTask('charge', {
  idempotent: false,
  retry: { ...atOnce, maxAttempts: 2 },
  run(order: number) {
    if (order === 1) throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
    if (order < 10) throw new Error(`order ${order} is closed`);
  },
});

test('the shipped document and the page of the API are made from the routes: npm run api', () => {
  const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
  expect(description).toEqual(openApi(ROUTES, documentSchemas(), version));
  const words = (text: string) => text.replaceAll(/[\s-]+/g, ' ');
  expect(words(readFileSync('docs/reference/api.md', 'utf8'))).toBe(words(apiPage(ROUTES)));
});

function documentSchemas(): Record<string, object> {
  const folder = 'schemas/documents';
  if (!existsSync(folder)) return {};
  const files = readdirSync(folder).filter((name) => name.endsWith('.schema.json'));
  return Object.fromEntries(
    files
      .sort()
      .map((name) => [name.replace('.schema.json', ''), JSON.parse(readFileSync(`${folder}/${name}`, 'utf8'))]),
  );
}

test('every route is in the document, and nothing else', () => {
  const described = Object.entries<object>(description.paths).flatMap(([path, operations]) =>
    Object.keys(operations).map((method) => `${method.toUpperCase()} ${path.slice(1)}`),
  );
  expect(described.sort()).toEqual([...ROUTES.map(({ method, path }) => `${method} ${path}`), 'GET events'].sort());
});

describe.each([
  ['SQLite', async () => sqlite(':memory:')],
  ['PostgreSQL', async () => postgres((await databases.take()).url)],
] satisfies [string, () => Promise<StoreOpener>][])('on %s', (_, storeOf) => {
  test('every answer is as the document says', { timeout: 90_000 }, async () => {
    const holdfast = await openHoldfast({ store: await storeOf(), tasks: [charge] });
    try {
      await walk(holdfast);
    } finally {
      await holdfast.close();
    }
  });
});

async function walk(holdfast: Awaited<ReturnType<typeof openHoldfast>>): Promise<void> {
  const { get, act } = callsOf(holdfast);
  const called = new Set<string>();
  const check = (method: 'get' | 'post', path: string, answer: Answer) => {
    expect([path, answer.status, answer.text]).toEqual([path, 200, expect.anything()]);
    called.add(`${method.toUpperCase()} ${path}`);
    const operation = description.paths[`/${path}`][method];
    const { schema } = operation.responses[200].content['application/json'];
    expect([path, problemsOf(schema, answer.json)]).toEqual([path, []]);
  };
  const read = async (path: string, address = path) => {
    const answer = await get(address);
    check('get', path, answer);
    return answer.json;
  };
  const tell = async (path: string, address: string, body: object = {}) => {
    const answer = await act(address, body);
    check('post', path, answer);
    return answer.json;
  };

  await tell('tasks', 'tasks', { type: 'charge', input: 12 });
  for (const order of [1, 2, 3, 11]) await holdfast.enqueue(charge, order, { key: `order-${order}` });
  await holdfast.enqueue(charge, 5, { delay: '10m' });
  const worker = holdfast.worker();
  await worker.drain();
  await holdfast.schedules.set('nightly', { cron: '0 3 * * *', task: charge, input: 7 });

  for (const path of ['me', 'status', 'tasks', 'inbox', 'failures', 'sources', 'queues', 'workers', 'schedules'])
    await read(path);
  for (const path of ['redrives', 'audit', 'forecast', 'filter/complete', 'doctor', 'db', 'happened']) await read(path);
  await read('stats', 'stats?since=24h&bin=1h');
  const id = (await get('tasks?filter=state:dead')).json.items[0].id;
  const asks = (await get('inbox')).json.items[0].task.id;
  const waits = (await get('tasks?filter=state:scheduled')).json.items[0].id;
  await read('tasks/{id}', `tasks/${id}`);
  await read('tasks/{id}', `tasks/${asks}`);
  await read('tasks/{id}/logs', `tasks/${id}/logs`);
  await read('tasks/{id}/explain', `tasks/${id}/explain`);
  await read('tasks/{id}/explain-if', `tasks/${id}/explain-if?options=maxAttempts:%209`);
  await read('tasks/{id}/explain-error', `tasks/${id}/explain-error?error=fetch%20failed`);
  await read('tasks/{id}/explain-at', `tasks/${id}/explain-at?at=2026-01-01T00:00:00Z`);

  await tell('tasks/{id}/hold', `tasks/${waits}/hold`);
  await tell('tasks/{id}/release', `tasks/${waits}/release`);
  await tell('tasks/{id}/retry', `tasks/${waits}/retry`);
  await tell('tasks/{id}/cancel', `tasks/${waits}/cancel`, { note: 'not needed' });
  await tell('tasks/{id}/resolve', `tasks/${asks}/resolve`, { as: 'dead' });
  const selected = await tell('selections', 'selections', { filter: 'state:dead', verb: 'retry' });
  await tell('tasks/act', 'tasks/act', { verb: 'retry', ids: [selected.ids[0]], from: selected.from });

  const group = (await get('failures')).json.items[0].id;
  await read('failures/{id}', `failures/${group}`);
  for (const verb of ['acknowledge', 'resolve', 'reopen'])
    await tell(`failures/{id}/${verb}`, `failures/${group}/${verb}`);
  await tell('failures/{id}/mute', `failures/${group}/mute`, { for: '1h' });
  await tell('failures/{id}/note', `failures/${group}/note`, { note: 'ticket 7' });
  expect((await act(`failures/${group}/note`, {})).status).toBe(400);

  await tell('sources/{name}/hold', 'sources/charge/hold', { note: 'closed' });
  await read('sources/{name}', 'sources/charge');
  await tell('sources/{name}/limit', 'sources/charge/limit', { concurrency: 4 });
  await tell('sources/{name}/probe', 'sources/charge/probe');
  await tell('sources/{name}/release', 'sources/charge/release');
  for (const verb of ['pause', 'resume']) await tell(`queues/{name}/${verb}`, `queues/default/${verb}`);
  await tell('queues/{name}/order', 'queues/default/order', { order: 'lifo' });
  await tell('queues/{name}/limit', 'queues/default/limit', { concurrency: 100 });
  await read('schedules/{name}', 'schedules/nightly');
  for (const verb of ['pause', 'resume', 'run', 'remove'])
    await tell(`schedules/{name}/${verb}`, `schedules/nightly/${verb}`);

  await read('policies');
  await read('policies/{type}', 'policies/charge');
  const error = encodeURIComponent('{"status": 429, "headers": {"retry-after": "120"}}');
  const answer = await read('policies/{type}/explain-error', `policies/charge/explain-error?error=${error}`);
  expect(answer.failure).toMatchObject({ reason: 'http.429', retry_after_ms: 120_000 });
  expect((await get('policies/charge/explain-error?error=%7B')).status).toBe(400);
  await read('policies/{type}/schedule', 'policies/charge/schedule?reason=http.503');
  await tell('policies/diff', 'policies/diff', { yaml: 'types:\n  charge:\n    retry: { maxAttempts: 9 }\n' });

  await tell('redrives/preview', 'redrives/preview', { filter: 'state:dead' });
  const { redrive } = await tell('redrives', 'redrives', {
    filter: 'state:dead',
    note: 'again',
    rate: '1/h',
    accept_duplicate: true,
  });
  await read('redrives/{id}', `redrives/${redrive.id}`);
  for (const verb of ['pause', 'resume', 'cancel'])
    await tell(`redrives/{id}/${verb}`, `redrives/${redrive.id}/${verb}`);
  holdfast.work();
  await expect.poll(async () => (await get('workers')).json.items.length).toBeGreaterThan(0);
  await tell('workers/{id}/end', `workers/${(await get('workers')).json.items[0].id}/end`);
  expect((await get('audit')).json.items.length).toBeGreaterThan(5);
  await read('audit');

  const left = ROUTES.map(({ method, path }) => `${method} ${path}`).filter((call) => !called.has(call));
  expect(left).toEqual([]);
}

const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);

/** What is wrong with an answer. */
function problemsOf(schema: object, answer: unknown): readonly string[] {
  const validate = ajv.compile({ ...schema, components: description.components });
  if (validate(answer)) return [];
  return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
}
