import { beforeAll, describe, expect, test } from 'vitest';
import { classify, outcomeOf } from '../../src/failure/classify/classify.ts';
import { decide } from '../../src/failure/decide.ts';
import { FAILURE_KINDS, FAULTS } from '../../src/failure/outcome.ts';
import { standard } from '../../src/failure/policy.ts';
import { PermanentFailure, SIGNAL } from '../../src/failure/signals.ts';
import { facts } from './given.ts';

const refuse = (): never => {
  throw new Error('refused');
};

function throwing(...names: string[]): object {
  const error = new Error('x');
  for (const name of names) Object.defineProperty(error, name, { get: refuse });
  return error;
}

/** A Proxy with traps that all throw. */
function unwilling(): object {
  const traps = Object.getOwnPropertyNames(Reflect).map((trap) => [trap, refuse]);
  return new Proxy(() => {}, Object.fromEntries(traps));
}

function revoked(of: object = {}): object {
  const { proxy, revoke } = Proxy.revocable(of, {});
  revoke();
  return proxy;
}

function looped(): Error {
  const [outer, inner] = [new Error('outer'), new Error('inner')];
  outer.cause = inner;
  inner.cause = outer;
  return outer;
}

function deep(levels: number): Error {
  let error = new Error('bottom');
  for (let i = 0; i < levels; i++) error = new Error(`level ${i}`, { cause: error });
  return error;
}

/** An endless list: every index holds another error that holds another endless list. */
function endless(): object {
  return new Proxy([], {
    get: (_, key) => (key === 'length' ? Number.MAX_SAFE_INTEGER : { errors: endless(), cause: endless() }),
  });
}

function circular(): object {
  const value: Record<string, unknown> = { code: 5 };
  value.self = value;
  value.cause = value;
  value.errors = [value];
  return value;
}

/** The least processor time that it took, in milliseconds, so that other load on the machine does not count. */
function quickest(tries: number, thrown: unknown): number {
  const times = Array.from({ length: tries }, () => {
    const before = process.cpuUsage();
    classify(thrown, { now: 0 });
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

const HOSTILE: readonly (readonly [name: string, make: () => unknown])[] = [
  ['undefined', () => undefined],
  ['null', () => null],
  ['0', () => 0],
  ['NaN', () => Number.NaN],
  ['false', () => false],
  ['empty text', () => ''],
  ['text', () => 'boom'],
  ['a symbol', () => Symbol('x')],
  ['a symbol with NUL', () => Symbol('\u0000\ud800')],
  ['a BigInt', () => 10n],
  ['a function', () => () => 1],
  ['a class', () => class Boom {}],
  ['{}', () => ({})],
  ['a list', () => [1, 2]],
  ['a promise', () => Promise.resolve(1)],
  ['a circular object', circular],
  ['an object without a prototype', () => Object.create(null)],
  ['an object whose prototype is a Proxy that throws', () => Object.create(unwilling())],
  ['a Proxy of which every trap throws', unwilling],
  [
    'a Proxy of an Error of which every trap throws',
    () => new Proxy(new Error('x'), { get: refuse, has: refuse, getPrototypeOf: refuse }),
  ],
  ['a revoked Proxy', () => revoked()],
  [
    'an error with revoked Proxies for parts',
    () =>
      Object.assign(new Error('x'), {
        cause: revoked(),
        errors: revoked([]),
        response: revoked(),
        headers: revoked(),
        [SIGNAL]: revoked(),
      }),
  ],
  [
    'an error whose message, name, code, cause, errors and constructor throw',
    () => throwing('message', 'name', 'code', 'cause', 'errors', 'constructor', 'status'),
  ],
  ['an error whose message is an object', () => Object.assign(new Error('x'), { message: { toString: refuse } })],
  ['an error whose message is a number', () => Object.assign(new Error('x'), { message: 5 })],
  ['an error whose name is a symbol', () => Object.assign(new Error('x'), { name: Symbol('n') })],
  ['an error whose code cannot be text', () => Object.assign(new Error('x'), { code: { toString: refuse } })],
  ['an error whose code is full of NULs', () => Object.assign(new Error('x'), { code: '\u0000\ud800'.repeat(10_000) })],
  [
    'an AggregateError of 1,000',
    () =>
      new AggregateError(
        Array.from({ length: 1_000 }, (_, i) => new Error(`${i}`)),
        'many',
      ),
  ],
  [
    'an AggregateError of 1,000 AggregateErrors of 1,000',
    () => {
      const inner = Array.from({ length: 1_000 }, () => new Error('x'));
      return new AggregateError(Array.from({ length: 1_000 }, () => new AggregateError(inner)));
    },
  ],
  ['errors that are an endless list', () => ({ errors: endless() })],
  [
    'errors with an endless iterator and a slice of its own',
    () => ({
      errors: Object.assign([1], {
        slice: () => endless(),
        *[Symbol.iterator]() {
          for (;;) yield 1;
        },
      }),
    }),
  ],
  ['a cause chain of 10,000', () => deep(10_000)],
  ['a looped cause', looped],
  [
    'loops through every name that a cause may have',
    () => {
      const error: Record<string, unknown> = new Error('x') as never;
      for (const name of ['original', 'parent', 'driverError', 'originalError', 'error', 'detail', 'reason']) {
        error[name] = { [name]: error, cause: error, errors: [error] };
      }
      return error;
    },
  ],
  [
    '100,000 keys',
    () => Object.assign(new Error('x'), Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`k${i}`, i]))),
  ],
  [
    'a Proxy that has an answer to everything',
    () =>
      new Proxy(() => {}, {
        get: (_, key) => (key === Symbol.toPrimitive ? undefined : 429),
        has: () => true,
        getOwnPropertyDescriptor: () => ({ value: 429, configurable: true }),
      }),
  ],
  [
    'headers that are a Proxy of endless names',
    () => ({
      status: 429,
      headers: new Proxy(
        {},
        {
          get: () => '5',
          ownKeys: () => ['retry-after'],
          getOwnPropertyDescriptor: () => ({ enumerable: true, configurable: true, value: '5' }),
        },
      ),
    }),
  ],
  [
    'headers with an endless iterator',
    () => ({
      status: 429,
      headers: new Proxy([], {
        get: (_, key) =>
          key === Symbol.iterator
            ? function* () {
                for (;;) yield ['a', 'b'];
              }
            : 5,
      }),
    }),
  ],
  [
    'a body that is a Proxy of bodies',
    () => {
      const body: object = new Proxy(
        {},
        { get: () => body, getOwnPropertyDescriptor: () => ({ configurable: true, value: 1 }) },
      );
      return { status: 400, response: { status: 400, data: body } };
    },
  ],
  [
    'an error that is its own cause',
    () => {
      const error = new Error('x');
      error.cause = error;
      return error;
    },
  ],
  ['a frozen error', () => Object.freeze(new Error('frozen'))],
  ['a message with NUL', () => new Error('a\u0000b')],
  [
    'a message with control characters and a terminal’s escapes',
    () => new Error('\u001b[31mred\u009b0m\u007f\r\u0008'),
  ],
  ['a message with a lone surrogate', () => new Error('\ud800 and \udc00')],
  ['a message that is cut in the middle of a pair', () => new Error(`${'x'.repeat(8_190)}😀😀`)],
  ['a message of 100 MB', () => new Error(Buffer.alloc(100_000_000, 'x').toString('latin1'))],
  ['a name of 1 MB', () => Object.assign(new Error('x'), { name: 'N'.repeat(1_000_000) })],
  ['100 MB of text', () => Buffer.alloc(100_000_000).toString('latin1')],
  [
    'a rate limit that speaks for 10 MB',
    () => Object.assign(new Error('rate limi'.repeat(1_000_000)), { status: 403 }),
  ],
  ['a Retry-After of 1 MB', () => ({ status: 429, headers: { 'retry-after': '1'.repeat(1_000_000) } })],
  [
    '100,000 headers',
    () => ({ status: 429, headers: Object.fromEntries(Array.from({ length: 100_000 }, (_, i) => [`h${i}`, i])) }),
  ],
  [
    'a signal with everything wrong',
    () => ({ [SIGNAL]: { signal: 'permanent', reason: '\u0000', code: Symbol('x') } }),
  ],
  ['a signal whose code is not well-formed', () => Object.assign(new PermanentFailure('x', { code: '\ud800\u0000' }))],
  [
    'a status that is read differently each time',
    () => {
      let reads = 0;
      return {
        get status() {
          return [404, 'x', null, 200, 500][reads++ % 5];
        },
      };
    },
  ],
];

// Some of these values take seconds to make.
describe.each(HOSTILE)('classifying %s', { timeout: 90_000 }, (_, make) => {
  let thrown: unknown;
  beforeAll(() => {
    thrown = make();
  }, 90_000);

  test('quickly gives a bounded, well-formed failure that can be stored, and throws nothing', () => {
    const failure = classify(thrown, { now: 0 });

    expect(FAILURE_KINDS).toContain(failure.kind);
    expect(FAULTS).toContain(failure.fault);
    expect(JSON.parse(JSON.stringify(failure))).toEqual(failure);
    expect(JSON.stringify(failure).length).toBeLessThan(60_000);
    expect(failure.name).not.toBe('');
    expect(failure.message.length).toBeLessThanOrEqual(8_192);
    expect(failure.name.length).toBeLessThanOrEqual(128);
    expect((failure.code ?? '').length).toBeLessThanOrEqual(128);
    for (const text of [failure.name, failure.message, failure.code ?? '', failure.reason]) {
      expect(text.isWellFormed()).toBe(true);
      // biome-ignore lint/suspicious/noControlCharactersInRegex: that there are none is the promise
      expect(text).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
    }
    // 50 ms is the promise; the rest is room for a slow machine.
    expect(quickest(3, thrown)).toBeLessThan(200);
  });

  test('leads to a decision', () => {
    expect(decide(facts(), outcomeOf(thrown, { now: 0 }), standard, 0.5).next).toMatch(/scheduled|dead|needs_manual/);
  });
});

test.each<[string, () => unknown]>([
  ['a message of 10 MB', () => new Error('rate limi'.repeat(1_200_000))],
  ['a message of 10 MB that looks like several things', () => new Error(`connect ${'a'.repeat(10_000_000)} E`)],
  ['a cause chain of 10,000', () => deep(10_000)],
  ['an answer of 10 MB', () => ({ status: 429, response: { status: 429, body: `{${' '.repeat(10_000_000)}}` } })],
  ['a reply of 10 MB', () => Object.assign(new Error('x'), { responseCode: 451, response: 'try '.repeat(2_500_000) })],
  [
    'a name, code and syscall of 1 MB',
    () => {
      const long = 'Throttl'.repeat(150_000);
      return Object.assign(new Error('x'), { name: long, code: long, syscall: long, status: 403 });
    },
  ],
  [
    'an AggregateError of 1,000 AggregateErrors of 1,000',
    () => {
      const inner = Array.from({ length: 1_000 }, () => new Error('x'));
      return new AggregateError(Array.from({ length: 1_000 }, () => new AggregateError(inner)));
    },
  ],
])('takes less than 5 ms for %s', (_, make) => {
  expect(quickest(8, make())).toBeLessThan(5);
});

test('odd values are recognised as far as possible', () => {
  const said = (thrown: unknown) => {
    const { name, message } = classify(thrown, { now: 0 });
    return [name, message];
  };
  expect(said(undefined)).toEqual(['undefined', 'undefined was thrown']);
  expect(said(null)).toEqual(['null', 'null was thrown']);
  expect(said('boom')).toEqual(['string', 'boom']);
  expect(said('')).toEqual(['string', '']);
  expect(said(0)).toEqual(['number', '0 was thrown']);
  expect(said(10n)).toEqual(['bigint', '10 was thrown']);
  expect(said(Symbol('x'))).toEqual(['symbol', 'Symbol(x) was thrown']);
  expect(said(() => 1)).toEqual(['Function', 'a function without a message was thrown']);
  expect(said(unwilling())).toEqual(['function', 'a function without a message was thrown']);
});

test('a long cause chain is followed for ten levels', () => {
  const wrap = (error: unknown, levels: number): unknown =>
    levels === 0 ? error : new Error('w', { cause: wrap(error, levels - 1) });
  expect(classify(wrap({ status: 404 }, 9), { now: 0 }).reason).toBe('http.404');
  expect(classify(wrap({ status: 404 }, 10), { now: 0 }).reason).toBe('unknown');
});

test('the same error gives the same failure, whatever the time, unless it names a date', () => {
  const error = Object.assign(new Error('x'), { status: 429, headers: { 'retry-after': '5' } });
  expect(classify(error, { now: 0 })).toEqual(classify(error, { now: 1e12 }));
});

test.each(['valueOf', 'constructor', '__proto__', 'toString', 'hasOwnProperty'])(
  'what every object has is in no table: %s',
  (word) => {
    const fields = [
      'code',
      'name',
      'message',
      'sqlState',
      'errorCode',
      'type',
      'originalCode',
      'level',
      'source',
      'codeName',
    ];
    for (const field of fields) {
      for (const more of [{}, { status: 400 }, { severity: 'ERROR' }, { responseStatus: 'NO' }, { $metadata: {} }]) {
        const { reason, kind } = classify({ ...more, [field]: word }, { now: 0 });
        expect(typeof reason).toBe('string');
        expect(FAILURE_KINDS).toContain(kind);
      }
    }
    expect(classify(new Error(word), { now: 0 }).reason).toBe('unknown');
    expect(classify({ status: 400, data: { error: { code: word, type: word } } }, { now: 0 }).reason).toBe('http.4xx');
    expect(classify({ data: { ok: false, error: word } }, { now: 0 }).reason).toBe('unknown');
  },
);
