import { expect, test } from 'vitest';
import { exponential, schedule } from '../../src/failure/backoff.ts';
import { readPolicy } from '../../src/failure/policy.ts';
import type { Task } from '../../src/queue/task-view.ts';
import { documentOf, taskJson, workerJson } from '../../src/views/json-shapes.ts';

const task: Task = {
  id: 7,
  type: 'shell_command',
  state: 'running',
  queue: 'default',
  source: 'cmd:x',
  priority: 0,
  input: { camelCase: 'stays' },
  idempotent: true,
  submittedAt: new Date(0),
  createdAt: new Date(1),
  executions: 2,
  attempts: 1,
  attemptsByReason: [{ reason: 'timeout', kind: 'transient', count: 1 }],
  deferrals: 0,
  recoveries: 0,
  suspect: false,
  lostInARow: 0,
  running: { worker: 'w1', since: new Date(2), cancelRequested: true },
};

test('a task has the same members whatever is known of it, in snake_case', () => {
  const json = taskJson(task);
  expect(Object.keys(json).filter((name) => /[A-Z]/.test(name))).toEqual([]);
  expect(Object.keys(taskJson({ ...task, key: 'k', reason: 'r', endedAt: new Date(0) }))).toEqual(Object.keys(json));
  expect(json).toMatchObject({
    id: 7,
    input: { camelCase: 'stays' },
    key: null,
    ended_at: null,
    submitted_at: '1970-01-01T00:00:00.000Z',
    running: { worker: 'w1', since: '1970-01-01T00:00:00.002Z', cancel_requested: true },
  });
});

test("a task's own policy says its spans in milliseconds", () => {
  const retry = readPolicy({
    maxAttempts: 3,
    giveUpAfter: 'none',
    timeout: '5m',
    backoff: exponential({ base: '1s', cap: '1m' }),
    rules: { 'fs.locked': { backoff: schedule(['1s', '2s']), onExhausted: 'dead' } },
  });
  expect(taskJson({ ...task, retry })).toMatchObject({
    policy: {
      max_attempts: 3,
      give_up_after_ms: null,
      timeout_ms: 300_000,
      backoff: { kind: 'exponential', base_ms: 1_000, factor: 2, cap_ms: 60_000 },
      rules: { 'fs.locked': { backoff: { kind: 'schedule', delays_ms: [1_000, 2_000] }, on_exhausted: 'dead' } },
    },
  });
});

test('a document says first what it is', () => {
  expect(Object.keys(documentOf('list', { items: [] }))).toEqual(['schema', 'items']);
  expect(documentOf('list', {})).toEqual({ schema: 'holdfast.list/v1' });
});

test('a worker says what it takes, in the same members whatever it is', () => {
  const worker = { id: 1, name: 'w1', host: 'h', pid: 2, joinedAt: 0, leaseUntil: 1, keepsTasks: true, running: 0 };
  const json = workerJson({ ...worker, takes: { types: ['mail'], capabilities: { gpu: true } } }, true);
  expect(json).toMatchObject({
    joined_at: '1970-01-01T00:00:00.000Z',
    alive: true,
    takes: { types: ['mail'], queues: null, categories: null, capabilities: { gpu: true } },
  });
  expect(Object.keys(json).filter((name) => /[A-Z]/.test(name))).toEqual([]);
});
