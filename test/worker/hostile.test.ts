import { afterAll, beforeAll, expect, test } from 'vitest';
import { defineTask, type HistoryEntry } from '../../src/index.ts';
import { useKits } from './scene.ts';

const open = useKits();

/** Nothing in this file may end as an unhandled rejection. */
const unhandled: unknown[] = [];
const note = (error: unknown) => void unhandled.push(error);
beforeAll(() => void process.on('unhandledRejection', note));
afterAll(() => {
  process.off('unhandledRejection', note);
  expect(unhandled).toEqual([]);
});

const throwing = new Proxy(
  {},
  Object.fromEntries(
    Object.getOwnPropertyNames(Reflect).map((trap) => [
      trap,
      () => {
        throw new Error(`trap ${trap}`);
      },
    ]),
  ),
);

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

class Unreadable extends Error {
  override get message(): string {
    throw new Error('the message cannot be read');
  }
  override get name(): string {
    throw new Error('nor the name');
  }
  override get stack(): string {
    throw new Error('nor the stack');
  }
}

function loop(): Error {
  const error = new Error('round and round');
  error.cause = new AggregateError([error, error], 'and round', { cause: error });
  return error;
}

/** What handlers throw, or return, that should be a failure like any other. */
const THROWN: readonly [string, () => unknown][] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['an empty text', () => ''],
  ['a text', () => 'boom'],
  ['a Symbol', () => Symbol('boom')],
  ['a BigInt', () => 10n],
  ['NaN', () => Number.NaN],
  ['a function', () => () => {}],
  ['an object without a prototype', () => Object.create(null)],
  ['a Proxy whose traps all throw', () => throwing],
  ['a Proxy of a function whose traps all throw', () => new Proxy(() => {}, Reflect.getPrototypeOf({}) as object)],
  ['a revoked Proxy', revoked],
  ['a frozen error', () => Object.freeze(new Error('frozen'))],
  ['an error whose getters throw', () => new Unreadable()],
  ['an error whose message is a number', () => Object.assign(new Error(), { message: 42 })],
  ['an error whose message is 100 MB', () => new Error('x'.repeat(100_000_000))],
  ['an error with NUL and a lone surrogate', () => new Error('a\u0000b\ud800c')],
  ['an error whose name is 1 MB', () => Object.assign(new Error('named'), { name: 'n'.repeat(1_000_000) })],
  ['an error whose code is an object', () => Object.assign(new Error('coded'), { code: { toString: null } })],
  ['a chain of causes that loops', loop],
  ['an AggregateError of 10,000', () => new AggregateError(Array.from({ length: 10_000 }, () => new Error('one')))],
  ['a promise', () => Promise.resolve('thrown instead of awaited')],
  [
    'an error with status 500 and hostile headers',
    () => Object.assign(new Error('500'), { status: 500, headers: throwing }),
  ],
];

test.each(THROWN)('a handler that throws %s has failed, on record, and the worker goes on', async (_, thrown) => {
  const bad = defineTask('bad', {
    retry: { maxAttempts: 1, source: { breaker: false } },
    run() {
      throw thrown();
    },
  });
  await mustFail(bad);
});

test.each(THROWN)('a handler that rejects with %s has failed, on record, and the worker goes on', async (_, thrown) => {
  const bad = defineTask('bad', {
    retry: { maxAttempts: 1, source: { breaker: false } },
    run: () => Promise.reject(thrown()),
  });
  await mustFail(bad);
});

/** What a handler may return instead of a promise. */
const THENABLES: readonly [string, () => unknown][] = [
  [
    'a thenable that throws',
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      then() {
        throw new Error('from then');
      },
    }),
  ],
  [
    'a thenable whose `then` cannot be read',
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      get then(): never {
        throw new Error('no then for you');
      },
    }),
  ],
  [
    'a thenable that rejects twice',
    () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      then(_: unknown, reject: (error: unknown) => void) {
        reject(new Error('once'));
        reject(new Error('twice'));
      },
    }),
  ],
  ['a Proxy whose traps all throw', () => throwing],
  ['a revoked Proxy', revoked],
];

test.each(THENABLES)('a handler that returns %s has failed, on record, and the worker goes on', async (_, returned) => {
  await mustFail(defineTask('bad', { retry: { maxAttempts: 1, source: { breaker: false } }, run: () => returned() }));
});

async function mustFail(bad: ReturnType<typeof defineTask>): Promise<void> {
  const good = defineTask('good', { run: () => 'done' });
  const kit = await open({ tasks: [bad, good], worker: { concurrency: 1 } });
  const { id } = await kit.holdfast.enqueue(bad, null);
  const next = await kit.holdfast.enqueue(good, null);

  await kit.drain();

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 1, executions: 1 });
  const [entry, ...more] = (await kit.holdfast.history(id)) as Extract<HistoryEntry, { kind: 'execution' }>[];
  expect(more).toEqual([]);
  expect(entry).toMatchObject({ outcome: 'failure', next: 'dead', charge: 'task' });
  const { name, message, reason } = entry?.failure ?? {};
  expect([typeof name, typeof message, typeof reason]).toEqual(['string', 'string', 'string']);
  expect(message?.length).toBeLessThanOrEqual(8_192);
  expect(message).not.toContain('\u0000');
  expect(message?.isWellFormed()).toBe(true);
  expect(await kit.holdfast.get(next.id)).toMatchObject({ state: 'succeeded' });
}

test('a handler that returns a thenable which resolves twice has succeeded once, with the first', async () => {
  const work = defineTask('work', {
    run: () => ({
      // biome-ignore lint/suspicious/noThenProperty: that is what is tested
      then(resolve: (value: unknown) => void, reject: (error: unknown) => void) {
        resolve('first');
        resolve('second');
        reject(new Error('and then not'));
        throw new Error('at all');
      },
    }),
  });
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);

  await kit.drain();

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'first', executions: 1 });
});

test('a handler that returns a thenable which never settles is ended by its time limit', async () => {
  const work = defineTask('work', {
    retry: { maxAttempts: 1, timeout: '1m' },
    // biome-ignore lint/suspicious/noThenProperty: that is what is tested
    run: () => ({ then() {} }),
  });
  const kit = await open({ tasks: [work], patienceMs: 30 });
  const { id } = await kit.holdfast.enqueue(work, null);

  await kit.advance('90s');

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
});

test('the abort decides the outcome of a handler that throws in its abort listener, and the worker goes on', async () => {
  const work = defineTask('work', {
    retry: { maxAttempts: 1, timeout: '1m' },
    run: (_: unknown, { signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(undefined));
      }),
  });
  const kit = await open({ tasks: [work], patienceMs: 30 });
  const { id } = await kit.holdfast.enqueue(work, null);

  await kit.advance('1m');

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
});
