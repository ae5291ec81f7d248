import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  defineTask,
  Failed,
  type Logger,
  NeedsManual,
  PermanentFailure,
  RateLimited,
  RetryLater,
  type RunningTask,
  type WorkerEvent,
} from '../../src/index.ts';
import { atOnce, enqueueUnchecked, isSettled, isStarted, useKits } from './scene.ts';

const open = useKits();

const executionsOf = async (kit: Awaited<ReturnType<typeof open>>, id: number) =>
  (await kit.holdfast.history(id)).filter((entry) => entry.kind === 'execution');

describe('what a handler knows about its execution', () => {
  test('names the task, its place, and which execution and attempt this is', async () => {
    const told: RunningTask[] = [];
    const work = defineTask('work', { retry: { maxAttempts: 7 }, run: (_: unknown, task) => void told.push(task) });
    const kit = await open({ tasks: [work] });
    const submittedAt = new Date('2025-12-31T12:00:00Z');
    const deadline = new Date('2026-01-02T00:00:00Z');
    const { id } = await kit.holdfast.enqueue(work, null, {
      queue: 'reports',
      source: 'imap:INBOX',
      key: 'report-1',
      submittedAt,
      deadline,
    });

    await kit.drain();

    expect(told).toEqual([
      {
        id,
        type: 'work',
        queue: 'reports',
        source: 'imap:INBOX',
        key: 'report-1',
        attempt: 1,
        execution: 1,
        maxAttempts: 7,
        idempotencyKey: expect.stringMatching(/^\d+-[0-9a-z]+-0$/),
        recovered: false,
        submittedAt,
        deadline,
        signal: expect.any(AbortSignal),
        log: expect.any(Object),
        saveCheckpoint: expect.any(Function),
        progress: expect.any(Function),
        group: expect.any(Function),
        heartbeat: expect.any(Function),
        rateLimit: expect.any(Function),
      },
    ]);
  });

  test('is passed on by a copy, and by an object whose prototype it is', async () => {
    const passedOn: object[] = [];
    const work = defineTask('work', {
      run(_: unknown, task) {
        for (const one of [{ ...task }, Object.create(task) as RunningTask]) {
          const { id, idempotencyKey, signal, log, checkpoint } = one;
          passedOn.push({ id, idempotencyKey, signal, log, checkpoint });
        }
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.drain();

    const all = {
      id,
      idempotencyKey: expect.stringMatching(/^\d+-[0-9a-z]+-0$/),
      signal: expect.any(AbortSignal),
      log: expect.objectContaining({ warn: expect.any(Function) }),
      checkpoint: undefined,
    };
    expect(passedOn).toEqual([all, all]);
  });

  test('leaves out what does not exist', async () => {
    const told: RunningTask[] = [];
    const work = defineTask('work', { run: (_: unknown, task) => void told.push(task) });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, null);

    await kit.drain();

    expect(Object.keys(told[0] as RunningTask)).not.toEqual(expect.arrayContaining(['key', 'deadline', 'lastError']));
    expect(told[0]).toMatchObject({ queue: 'default', source: 'work', submittedAt: new Date('2026-01-01T00:00:00Z') });
  });

  test('has a new key after a retry with newKey, in the same round', async () => {
    const keys: string[] = [];
    const work = defineTask('work', {
      run(_, { idempotencyKey }) {
        keys.push(idempotencyKey);
        throw new RetryLater('1h');
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, 1);
    await kit.advance('1m');
    for (const newKey of [false, true, false]) {
      await kit.holdfast.retry(id, { newKey });
      await kit.advance('1m');
    }
    const [first, second, third, fourth] = keys;
    expect([second, fourth]).toEqual([first, third]);
    expect(third).not.toBe(first);
    expect(await kit.holdfast.get(id)).toMatchObject({ deferrals: 4 });
    await expect(kit.holdfast.retry(id, { newKey: 'yes' as never })).rejects.toThrow(/newKey must be true or false/);
  });

  test('has a key for calls that take effect once, which is new in a new round only', async () => {
    const keys: string[] = [];
    const work = defineTask('work', {
      source: (n: number) => `s${n}`,
      retry: { ...atOnce, maxAttempts: 3 },
      run(_, { idempotencyKey, execution }) {
        keys.push(idempotencyKey);
        if (execution === 2) throw new RetryLater('2s');
        throw new Error('No.');
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, 1);
    await kit.advance('1m');
    await kit.holdfast.retry(id);
    await kit.advance('1m');
    const claimed = await kit.holdfast.enqueue('elsewhere', null);
    const claim = await kit.holdfast.claim({ id: claimed.id });
    const first = claim?.idempotencyKey;
    await claim?.release();
    expect((await kit.holdfast.claim({ id: claimed.id }))?.idempotencyKey).toBe(first);

    expect(keys).toHaveLength(7);
    expect(new Set(keys.slice(0, 4)).size).toBe(1);
    expect(new Set(keys.slice(4)).size).toBe(1);
    expect(new Set([...keys, first]).size).toBe(3);
  });

  test('counts attempts by charges and executions by starts, and has the last error', async () => {
    const told: object[] = [];
    const work = defineTask('work', {
      retry: { ...atOnce, maxAttempts: 4 },
      run(_: unknown, { attempt, execution, lastError, lastFailure }) {
        told.push({ attempt, execution, lastError, reason: lastFailure?.reason, kind: lastFailure?.kind });
        if (execution === 1) throw new Error('one');
        if (execution === 2) throw new RateLimited('2s', 'two');
        if (execution === 3) throw new Error('three');
      },
    });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, null);

    await kit.advance('1m');

    expect(told).toEqual([
      { attempt: 1, execution: 1, lastError: undefined, reason: undefined, kind: undefined },
      { attempt: 2, execution: 2, lastError: 'one', reason: 'unknown', kind: 'unknown' },
      { attempt: 2, execution: 3, lastError: 'two', reason: 'throttled', kind: 'rate_limited' },
      { attempt: 3, execution: 4, lastError: 'three', reason: 'unknown', kind: 'unknown' },
    ]);
  });

  test('includes a log that knows the task', async () => {
    const lines: object[] = [];
    const note = (fields: object, message: string) => void lines.push({ ...fields, message });
    const log: Logger = { debug() {}, info: note, warn: note, error: note };
    const work = defineTask('work', { run: (_: unknown, task) => task.log.warn({ size: 3 }, 'half way') });
    const kit = await open({ tasks: [work], log });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.drain();

    expect(lines).toContainEqual({ task: id, type: 'work', execution: 1, size: 3, message: 'half way' });
  });
});

describe('a result', () => {
  const returning = async (result: unknown, maxPayloadBytes?: number) => {
    const work = defineTask('work', { run: () => result });
    const kit = await open({ tasks: [work], ...(maxPayloadBytes !== undefined && { maxPayloadBytes }) });
    const { id } = await kit.holdfast.enqueue(work, null);
    await kit.drain();
    return { kit, id, task: await kit.holdfast.get(id) };
  };

  test('is kept as JSON', async () => {
    const { kit, id, task } = await returning({ pages: [1, 2], at: new Date(0), gone: undefined });
    expect(task).toMatchObject({ state: 'succeeded', result: { pages: [1, 2], at: '1970-01-01T00:00:00.000Z' } });
    expect(await kit.holdfast.history(id)).toEqual([]);
  });

  test('may be nothing', async () => {
    const { task } = await returning(undefined);
    expect(task).toMatchObject({ state: 'succeeded' });
    expect('result' in task).toBe(false);
  });

  test.each([
    ['a BigInt', 10n, 'BigInt'],
    ['a BigInt deep inside', { a: [{ n: 1n }] }, '$.a[0].n'],
    ['a function', () => {}, 'a function'],
    ['a symbol', Symbol('x'), 'a symbol'],
    ['NaN', Number.NaN, 'NaN'],
    ['a Map', new Map(), 'a Map'],
  ])('that JSON cannot carry (%s) is not kept, and the task has succeeded all the same', async (_, result, why) => {
    const { kit, id, task } = await returning(result);

    expect(task).toMatchObject({ state: 'succeeded', attempts: 0 });
    expect('result' in task).toBe(false);
    expect(await executionsOf(kit, id)).toMatchObject([
      { outcome: 'success', message: expect.stringContaining('Its result was not kept.') },
    ]);
    expect(await executionsOf(kit, id)).toMatchObject([{ message: expect.stringContaining(why) }]);
    expect(kit.events.filter(isSettled)).toMatchObject([{ state: 'succeeded', decision: { next: 'succeeded' } }]);
  });

  test('that is too large is not stored, and the note has both sizes', async () => {
    const { kit, id, task } = await returning('x'.repeat(99), 100);
    expect(task).toMatchObject({ state: 'succeeded' });
    expect(await executionsOf(kit, id)).toMatchObject([{ message: expect.stringMatching(/101 bytes.*100/) }]);

    expect((await returning('x'.repeat(98), 100)).task).toMatchObject({ result: 'x'.repeat(98) });
  });

  const hostile: readonly [string, () => unknown][] = [
    ['whose toJSON throws a null', () => ({ toJSON: () => Promise.reject.call(null) })],
    [
      'whose every trap throws but `then`',
      () =>
        new Proxy(
          {},
          {
            get(_, key) {
              if (key === 'then') return undefined;
              throw undefined;
            },
            ownKeys() {
              throw Symbol('no');
            },
            getPrototypeOf() {
              throw Object.create(null);
            },
          },
        ),
    ],
    [
      'whose toJSON throws something that cannot be read',
      () => ({
        toJSON() {
          const { proxy, revoke } = Proxy.revocable({}, {});
          revoke();
          throw proxy;
        },
      }),
    ],
  ];
  test.each(hostile)('%s is not kept, and the task has succeeded all the same', async (_, make) => {
    const { task } = await returning(make());
    expect(task).toMatchObject({ state: 'succeeded', executions: 1 });
  });
});

describe('an input that has a schema', () => {
  const mailbox = z.object({ mailbox: z.string().min(1), page: z.number().default(1) });

  test('is parsed for the handler, with what the schema adds', async () => {
    const got: unknown[] = [];
    const work = defineTask('work', {
      input: mailbox,
      source: (input) => `imap:${input.mailbox}:${input.page}`,
      run: (input) => void got.push(input),
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, { mailbox: 'INBOX' } as z.infer<typeof mailbox>);

    await kit.drain();

    expect(got).toEqual([{ mailbox: 'INBOX', page: 1 }]);
    expect(await kit.holdfast.get(id)).toMatchObject({ source: 'imap:INBOX:1', input: { mailbox: 'INBOX' } });
  });

  test('is refused when it is enqueued, and the error says what is wrong and where', async () => {
    const work = defineTask('work', { input: mailbox, run() {} });
    const kit = await open({ tasks: [work] });

    const refused = kit.holdfast.enqueue(work, { mailbox: '', page: 'x' } as never);

    await expect(refused).rejects.toMatchObject({
      name: 'InvalidInputError',
      code: 'invalid_input',
      message: expect.stringMatching(/^The input of work is refused: mailbox: .+; page: .+/),
    });
    await expect(kit.holdfast.enqueue('work', 5)).rejects.toMatchObject({ code: 'invalid_input' });
    expect(await kit.holdfast.list()).toEqual([]);
  });

  test('that no longer fits when it runs is a permanent failure, `validation`, and the handler does not run', async () => {
    const ran: unknown[] = [];
    const strict = defineTask('work', { input: mailbox, run: (input) => void ran.push(input) });
    const kit = await open({ tasks: [strict] });
    const id = await enqueueUnchecked(kit, { mailbox: 7 });

    await kit.drain();

    expect(ran).toEqual([]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'validation', attempts: 1 });
    expect(await executionsOf(kit, id)).toMatchObject([
      {
        failure: { kind: 'permanent', reason: 'validation', message: expect.stringContaining('mailbox: ') },
        because: { step: 'permanent' },
      },
    ]);
  });

  test('may be checked by a schema that takes its time', async () => {
    const got: unknown[] = [];
    const work = defineTask('work', {
      input: z.string().transform(async (text) => text.toUpperCase()),
      run: (input) => void got.push(input),
    });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, 'quiet');

    await kit.drain();

    expect(got).toEqual(['QUIET']);
  });

  test('whose schema throws is refused when enqueued, and fails when it runs', async () => {
    const broken = {
      '~standard': {
        version: 1 as const,
        vendor: 'test',
        validate(): never {
          throw new TypeError('the schema is broken');
        },
      },
    };
    const work = defineTask('work', { input: broken, retry: { maxAttempts: 1 }, run() {} });
    const kit = await open({ tasks: [work] });
    await expect(kit.holdfast.enqueue(work, 1 as never)).rejects.toMatchObject({
      code: 'invalid_input',
      message: expect.stringContaining('the schema is broken'),
    });

    const id = await enqueueUnchecked(kit, 1);
    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 1 });
  });
});

describe('onEvent', () => {
  test('gets the start and the settlement of each execution, in order, with the policy and the decision', async () => {
    const error = new PermanentFailure('never', { reason: 'order.closed' });
    const work = defineTask('work', {
      retry: { ...atOnce, maxAttempts: 2 },
      run() {
        throw error;
      },
    });
    const kit = await open({ tasks: [work] });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.drain();

    expect(kit.events).toMatchObject([
      { kind: 'started', task: { lease: { task: id, execution: 1 } }, policy: { maxAttempts: 2 } },
      {
        kind: 'settled',
        state: 'dead',
        outcome: { kind: 'failure', failure: { reason: 'order.closed' } },
        decision: { next: 'dead', because: { step: 'explicit' } },
        ranFor: 0,
        error,
      },
    ]);
    expect(kit.events[1]).toHaveProperty('error', error);
  });

  test.each([
    [
      'throws',
      () => {
        throw new Error('from the listener');
      },
    ],
    [
      'throws undefined',
      () => {
        throw undefined;
      },
    ],
    ['rejects', () => Promise.reject(new Error('from the listener'))],
  ])('that %s is logged, and goes no further', async (_, fail: () => unknown) => {
    const logged: string[] = [];
    const log: Logger = { debug() {}, info() {}, warn() {}, error: (_, message) => void logged.push(message) };
    const told: string[] = [];
    const work = defineTask('work', { run: () => 'done' });
    const kit = await open({
      tasks: [work],
      log,
      worker: {
        onEvent(event: WorkerEvent) {
          told.push(event.kind);
          return fail() as never;
        },
      },
    });
    const ids = await Promise.all([1, 2].map((n) => kit.holdfast.enqueue(work, n)));

    await kit.drain();

    expect(told).toHaveLength(4);
    expect(logged).toEqual(Array(4).fill('onEvent threw'));
    for (const { id } of ids) expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1 });
  });
});

test('a log that throws harms no task', async () => {
  const fail = () => {
    throw new Error('the disk of the log is full');
  };
  const ran: number[] = [];
  const work = defineTask('work', {
    retry: atOnce,
    run(_: unknown, task) {
      ran.push(task.execution);
      task.log.info({}, 'working');
      if (task.execution === 1) throw new Error('at first');
    },
  });
  const kit = await open({ tasks: [work], log: { debug: fail, info: fail, warn: fail, error: fail } });
  const ids = await Promise.all([1, 2, 3].map((n) => kit.holdfast.enqueue(work, n)));

  await kit.drain();

  for (const { id } of ids) {
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2, attempts: 1 });
  }
  expect(kit.events.filter(isStarted)).toHaveLength(6);
});

describe('a signal that is returned', () => {
  const signals = [
    new PermanentFailure('No such order.'),
    new NeedsManual('Ask Anna.'),
    new RetryLater('10m', 'Not yet.'),
    new RateLimited('10m', 'Slow down.'),
    new Failed('Not ready.', { reason: 'order.not_ready' }),
  ];

  test('acts as if it was thrown, in a handler and in a claim by hand', async () => {
    const endOf = async (run: (signal: unknown) => unknown, complete = false) => {
      const ends: unknown[] = [];
      const source = (n: number) => `api-${n}`;
      const work = defineTask('work', { source, retry: { jitter: 'none' }, run: (n: number) => run(signals[n]) });
      const kit = await open({ tasks: [work], ...(complete && { worker: { types: [] } }) });
      for (const n of signals.keys()) {
        const { id } = await kit.holdfast.enqueue(work, n);
        if (complete) await (await kit.holdfast.claim({ id }))?.complete(signals[n]);
        else await kit.drain();
        const { state, attempts, dueAt, reason, result } = await kit.holdfast.get(id);
        ends.push({ state, attempts, dueAt, reason, result });
      }
      return ends;
    };
    const thrown = await endOf((signal) => {
      throw signal;
    });

    expect(thrown).toMatchObject([
      { state: 'dead' },
      { state: 'needs_manual' },
      { state: 'scheduled', attempts: 0 },
      { state: 'scheduled', attempts: 0 },
      { state: 'scheduled', attempts: 1 },
    ]);
    expect(await endOf((signal) => signal)).toEqual(thrown);
    expect(await endOf(async (signal) => signal)).toEqual(thrown);
    expect(await endOf(() => {}, true)).toEqual(thrown);
  });
});
