import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { type ChargedCount, defineTask, IMPORT_STATES, type PayloadError, type TaskToImport } from '../../src/index.ts';
import { partsOfImport } from '../../src/queue/import.ts';
import type { ImportedTask } from '../../src/store/store.ts';
import { openTestHoldfast, type TestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();

const work = defineTask('work', {
  retry: { maxAttempts: 5, backoff: { kind: 'fixed', delay: 1_000 }, jitter: { kind: 'none' } },
  run(_: unknown, task) {
    throw new Error(`attempt ${task.attempt}, execution ${task.execution}, after: ${task.lastError}`);
  },
});
const typed = defineTask('typed', {
  input: z.object({ box: z.string().toLowerCase() }),
  source: ({ box }) => `imap:${box}`,
  run() {},
});
const checked = defineTask('checked', { input: z.string().refine(async (text) => text !== 'bad'), run() {} });

let kit: TestHoldfast;
beforeEach(async () => {
  kit = await openTestHoldfast({ store: aStore(), tasks: [work, typed, checked], worker: { types: ['work'] } });
});
afterEach(async () => {
  expect(await kit.holdfast.store.upkeep.verify()).toEqual([]);
  await kit.close();
});

const LOCKED: ChargedCount = { reason: 'fs.locked', kind: 'transient', count: 3 };
const importOne = async (task: Partial<TaskToImport> = {}) => {
  const [receipt] = await kit.holdfast.importTasks([{ type: 'elsewhere', input: null, ...task }]);
  return kit.holdfast.get((receipt as { id: number }).id);
};
const refusal = (task: Record<string, unknown>) => refused(() => importOne(task as Partial<TaskToImport>));

test('a task that was being retried goes on where it was: the next failure counts on, up to the same end', async () => {
  const at = new Date(kit.clock.now() + 60_000);
  const { id } = await importOne({ type: 'work', state: 'scheduled', at, charged: [LOCKED], error: 'EBUSY' });
  await kit.advance('59s');
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 3, executions: 3, dueAt: at });
  await kit.advance('3s');

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 5, executions: 5 });
  const history = await kit.holdfast.history(id);
  expect(history).toMatchObject([
    {
      verb: 'imported',
      actor: 'api',
      from: 'elsewhere',
      to: 'scheduled',
      imported: { charged: [LOCKED], error: 'EBUSY' },
    },
    { execution: 4, next: 'scheduled', failure: { message: 'attempt 4, execution 4, after: EBUSY' } },
    { execution: 5, next: 'dead', because: { count: 5, limit: 5 } },
  ]);
});

test('every state but running can be imported, and stands so', async () => {
  for (const state of IMPORT_STATES) {
    const task = await importOne({ state, ...(state === 'scheduled' && { delay: '1h' }) });
    expect(task.state).toBe(state);
  }
  const { counts } = { counts: await kit.holdfast.counts() };
  expect(counts.byState).toEqual(Object.fromEntries([...IMPORT_STATES.map((state) => [state, 1]), ['running', 0]]));
});

test('what is left out follows from what is said', async () => {
  const now = new Date(kit.clock.now());
  const endedAt = new Date(kit.clock.now() - 1_000);
  expect(await importOne()).toMatchObject({ state: 'ready', executions: 0, attempts: 0, deferrals: 0 });
  expect(await importOne({ delay: '1h' })).toMatchObject({ state: 'scheduled' });
  expect(await importOne({ at: endedAt, state: 'scheduled' })).toMatchObject({ state: 'ready' });
  expect(await importOne({ state: 'dead' })).toMatchObject({ reason: 'unknown', executions: 0, endedAt: now });
  expect(await importOne({ state: 'dead', endedAt })).toMatchObject({ endedAt, submittedAt: endedAt });
  expect(await importOne({ state: 'cancelled' })).toMatchObject({ reason: 'cancelled' });
  expect(await importOne({ state: 'succeeded', charged: [LOCKED], result: { n: 1 } })).toMatchObject({
    executions: 4,
    attempts: 3,
    result: { n: 1 },
  });
  expect(await importOne({ deferrals: 2 })).toMatchObject({ executions: 2, deferrals: 2, reason: 'explicit.later' });
  const charged = [
    { reason: 'http.5xx', count: 1 },
    { reason: 'order.closed', count: 1 },
    { reason: 'permanent', count: 1 },
  ];
  expect(await importOne({ charged })).toMatchObject({
    reason: 'permanent',
    attemptsByReason: [{ kind: 'transient' }, { kind: 'unknown' }, { kind: 'permanent' }],
  });
});

test('the same tasks can be imported again: those that are there are answered, and stay as they are', async () => {
  const tasks: TaskToImport[] = [1, 2, 3].map((n) => ({ type: 'a', input: n, key: `k${n}`, state: 'dead' }));
  const first = await kit.holdfast.importTasks(tasks.slice(0, 2), { actor: 'eva', note: 'from the old one' });
  const again = await kit.holdfast.importTasks(tasks.map((task) => ({ ...task, state: 'succeeded' })));

  expect(again.map(({ created }) => created)).toEqual([false, false, true]);
  expect(again.slice(0, 2).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  expect(await kit.holdfast.get('k1')).toMatchObject({ state: 'dead' });
  expect(await kit.holdfast.history(first[0]?.id as number)).toMatchObject([
    { actor: 'eva', note: 'from the old one' },
  ]);
});

test('inputs of a type that is defined here are checked, and its functions asked, as by enqueue', async () => {
  expect(await importOne({ type: 'typed', input: { box: 'INBOX' } })).toMatchObject({ source: 'imap:inbox' });
  expect(await refusal({ type: 'typed', input: {} })).toMatchObject({ code: 'invalid_input', index: 0 });
  expect(await importOne({ type: 'checked', input: 'good', state: 'held' })).toMatchObject({ state: 'held' });

  const error = await refused(() =>
    kit.holdfast.importTasks([
      { type: 'checked', input: 'good' },
      { type: 'checked', input: 'bad' },
      { type: 'checked', input: 'bad' },
    ]),
  );
  expect(error).toMatchObject({
    index: 1,
    message: expect.stringContaining('tasks[1] is refused, so none was imported.'),
  });
  expect((await kit.holdfast.list({ types: ['checked'] })).length).toBe(1);
});

describe('is refused, with a word about what to say instead', () => {
  const now = Date.now();
  test.each<[string, Record<string, unknown>, RegExp]>([
    ['a state that nobody imports', { state: 'running' }, /cannot be 'running'.*ready.*scheduled.*needs_manual/],
    ['a state of another queue', { state: 'failed' }, /state must be one of scheduled, ready/],
    ['scheduled without a time', { state: 'scheduled' }, /needs the time/],
    ['ready at a later time', { state: 'ready', delay: '1h' }, /cannot be due later/],
    ['an end that is due', { state: 'dead', delay: '1h' }, /does not go on by itself/],
    ['a result without success', { state: 'dead', result: 1 }, /state succeeded only/],
    ['an end of what has not ended', { state: 'needs_manual', endedAt: new Date(0) }, /has not/],
    ['an end to come', { state: 'dead', endedAt: new Date(now + 1e12) }, /in the future/],
    [
      'an end before it began',
      { state: 'dead', endedAt: new Date(0), submittedAt: new Date(1) },
      /before it was submitted/,
    ],
    ['a reason of success', { state: 'succeeded', reason: 'fs.locked' }, /has not succeeded/],
    ['a reason for nothing', { reason: 'fs.locked' }, /nothing counts one/],
    ['an error of nothing', { error: 'EBUSY' }, /nothing counts one/],
    ['a reason that is none', { state: 'dead', reason: 'Too Late' }, /lower-case slug/],
    ['fewer executions than failures', { charged: [LOCKED], executions: 2 }, /at least charged \+ deferrals \(3\)/],
    ['a reason twice', { charged: [LOCKED, LOCKED] }, /twice/],
    ['a count of none', { charged: [{ ...LOCKED, count: 0 }] }, /charged\[0\].count must be a whole number/],
    ['a kind that is none', { charged: [{ ...LOCKED, kind: 'odd' }] }, /charged\[0\].kind must be one of/],
    ['an option that is none', { atempts: 3 }, /importTasks has no option 'atempts'/],
    ['a result that JSON cannot carry', { state: 'succeeded', result: 1n }, /BigInt/],
  ])('%s', async (_, task, words) => {
    const error = await refusal(task);
    expect(error.message).toMatch(words);
    expect((error as PayloadError).index).toBe(0);
    expect(await kit.holdfast.list()).toEqual([]);
  });

  test.each(['charged', 'executions', 'deferrals', 'reason', 'error', 'endedAt', 'note', 'type', 'state'])(
    'nonsense for %s',
    async (option) => {
      const texts = ['error', 'note', 'type'].includes(option) ? ["''", 'a text', 'undefined'] : [];
      for (const [, value] of nonsense([...texts, ...(option === 'endedAt' ? ['null'] : [])])) {
        await refusal({ state: option === 'endedAt' ? 'dead' : 'needs_manual', [option]: value });
      }
    },
  );

  test('more than one transaction should take, and what is no list', async () => {
    const many = Array.from({ length: 10_001 }, () => ({ type: 'a', input: null }));
    expect((await refused(() => kit.holdfast.importTasks(many))).message).toMatch(/at most 10000 tasks/);
    for (const [, value] of nonsense(['an array'])) await refused(() => kit.holdfast.importTasks(value as never));
    await refused(() => kit.holdfast.importTasks([], { by: 'eva' } as never));
    expect(await kit.holdfast.importTasks([])).toEqual([]);
  });
});

test('an import is written in parts of a thousand tasks, or of 32 MiB, and a larger task alone', () => {
  const task = (mebibytes: number) => ({ payload: ' '.repeat(mebibytes * 1_048_576) }) as ImportedTask;
  const sizes = (tasks: readonly ImportedTask[]) => [...partsOfImport(tasks)].map((part) => part.length);
  expect(sizes([])).toEqual([]);
  expect(sizes(Array(2_500).fill(task(0)))).toEqual([1_000, 1_000, 500]);
  expect(sizes([task(20), task(12), task(1), task(40), task(1)])).toEqual([2, 1, 1, 1]);
});
