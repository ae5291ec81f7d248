import { expect, test } from 'vitest';
import { problemsOf, Registry } from '../../src/config/index.ts';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';

const YAML = `
schedules:
  nightly: { type: sync, cron: '0 3 * * *', timeZone: Europe/Berlin, input: { boxes: [1, a, null] } }
  hourly: { type: sync, cron: '@hourly', missed: all, overlap: queue, queue: slow, idempotent: false }
`;

test('the schedules of a file are set when its workers start, and follow its changes', async () => {
  const registry = new Registry();
  registry.load(YAML, '/etc/holdfast.yaml');
  const sync = defineTask('sync', { run: () => {} });
  const holdfast = await openHoldfast({ store: aStore(), tasks: [sync], config: registry });
  expect(await holdfast.schedules.list()).toEqual([]);
  holdfast.work();
  const until = async (done: () => Promise<boolean>) => {
    while (!(await done())) await new Promise((resolve) => setImmediate(resolve));
  };
  await until(async () => (await holdfast.schedules.list()).length === 2);
  expect(await holdfast.schedules.list()).toMatchObject([
    {
      name: 'hourly',
      missed: 'all',
      overlap: 'queue',
      queue: 'slow',
      origin: { by: 'file', file: '/etc/holdfast.yaml' },
    },
    { name: 'nightly', timeZone: 'Europe/Berlin', input: { boxes: [1, 'a', null] } },
  ]);
  registry.load('schedules: {}', '/etc/holdfast.yaml');
  await until(async () => (await holdfast.schedules.get('nightly')).paused !== undefined);
  expect((await holdfast.schedules.get('nightly')).paused).toMatchObject({
    actor: 'config',
    note: '/etc/holdfast.yaml has it no more',
  });
  registry.load(YAML, '/etc/holdfast.yaml');
  await until(async () => (await holdfast.schedules.get('nightly')).paused === undefined);
  await holdfast.close();
});

test('a schedule of a file says whether its tasks may run twice', async () => {
  const registry = new Registry();
  registry.load(YAML, '/etc/holdfast.yaml');
  const run = () => {
    throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' });
  };
  const holdfast = await openHoldfast({ store: aStore(), tasks: [defineTask('sync', { run })], config: registry });
  holdfast.work();
  while ((await holdfast.schedules.list()).length < 2) await new Promise((resolve) => setImmediate(resolve));
  const [repeated, once] = await Promise.all([holdfast.schedules.run('nightly'), holdfast.schedules.run('hourly')]);
  while ((await holdfast.get(once.id)).executions === 0) await new Promise((resolve) => setImmediate(resolve));
  await expect(holdfast.result(once.id)).rejects.toMatchObject({ state: 'needs_manual' });
  expect((await holdfast.get(repeated.id)).state).not.toBe('needs_manual');
  await holdfast.close();
});

test.each([
  ['{ cron: "@daily" }', "A schedule needs a 'type'."],
  ['{ type: a }', "A schedule needs a 'cron'."],
  ['{ type: a, cron: "0 3 * *" }', /cron must have five fields/],
  ['{ type: a, cron: "61 * * * *" }', /is refused: Invalid value for minute: 61/],
  ['{ type: a, cron: "@daily", timeZone: Mars }', /timeZone must be a name such as 'Europe\/Berlin'/],
  ['{ type: a, cron: "@daily", overlap: none }', /It must be one of skip, queue, allow/],
  ['{ type: a, cron: "@daily", missed: all }', /needs overlap: queue/],
  ['{ type: a, cron: "@daily", every: 5m }', /A schedule has no 'every'/],
])('%s is refused at its place', (schedule, message) => {
  const [problem] = problemsOf(`schedules:\n  one: ${schedule}\n`);
  expect(problem?.message).toMatch(message);
  expect(problem?.line).toBe(2);
});
