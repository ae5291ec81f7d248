import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PayloadError } from '../../src/errors.ts';
import { DEFAULT_SIZE_LIMIT, decodeJson, encodeJson } from '../../src/json.ts';

function refusal(value: unknown, limit?: number): PayloadError {
  try {
    encodeJson(value, 'payload', limit);
  } catch (error) {
    expect(error).toBeInstanceOf(PayloadError);
    return error as PayloadError;
  }
  throw new Error('It was accepted.');
}

function nested(levels: number): unknown {
  let value: unknown = 1;
  for (let i = 0; i < levels; i++) value = i % 2 ? [value] : { a: value };
  return value;
}

describe('what JSON can carry', () => {
  test('is written as JSON writes it, and read back the same', () => {
    fc.assert(
      fc.property(fc.jsonValue({ noUnicodeString: false }), (value) => {
        fc.pre(!JSON.stringify(value).includes('\\u0000') && !/\\ud[89a-f]/i.test(JSON.stringify(value)));
        const text = encodeJson(value, 'payload');
        expect(text).toBe(JSON.stringify(value));
        expect(decodeJson(text)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  test('is all that is written: anything else is refused, and what is accepted means what JSON makes of it', () => {
    const anything = fc.anything({
      withBigInt: true,
      withBoxedValues: true,
      withDate: true,
      withMap: true,
      withSet: true,
      withTypedArray: true,
      withNullPrototype: true,
      withSparseArray: true,
      withObjectString: true,
      maxDepth: 4,
    });
    fc.assert(
      fc.property(anything, (value) => {
        let text: string;
        try {
          text = encodeJson(value, 'payload');
        } catch (error) {
          expect(error).toBeInstanceOf(PayloadError);
          return;
        }
        expect(text).toBe(JSON.stringify(value) ?? 'null');
        expect(JSON.parse(text)).toEqual(JSON.parse(JSON.stringify(value) ?? 'null'));
      }),
      { numRuns: 1_000 },
    );
  });

  test.each<[string, unknown, string]>([
    ['nothing', undefined, 'null'],
    ['undefined members, which are dropped', { a: undefined, b: 1 }, '{"b":1}'],
    ['a date', new Date(0), '"1970-01-01T00:00:00.000Z"'],
    ['a URL', new URL('https://example.org/'), '"https://example.org/"'],
    ['boxed values', [Object(1), Object('x'), Object(true)], '[1,"x",true]'],
    ['an object without a prototype', Object.assign(Object.create(null), { a: 1 }), '{"a":1}'],
    ['a class instance with its own answer', { toJSON: () => ({ a: 1 }) }, '{"a":1}'],
    [
      'an answer that is the object itself',
      Object.assign(
        Object.create({
          toJSON() {
            return this;
          },
        }),
        { a: 1 },
      ),
      '{"a":1}',
    ],
    [
      'an answer with an answer of its own, which JSON does not ask for',
      { toJSON: () => Object.assign(Object.create({ toJSON: () => 'no' }), { a: 1 }) },
      '{"a":1}',
    ],
    [
      'one object in two places',
      (() => {
        const a = {};
        return { x: a, y: a };
      })(),
      '{"x":{},"y":{}}',
    ],
    ['a thousand levels', nested(1_000), JSON.stringify(nested(1_000))],
    ['pairs of surrogates', '😀', '"😀"'],
  ])('takes %s', (_, value, text) => {
    expect(encodeJson(value, 'payload')).toBe(text);
  });

  test('keeps a result with null for undefined in a list, and refuses a payload with it', () => {
    expect(encodeJson([undefined, 1], 'result')).toBe('[null,1]');
    expect(() => encodeJson({ a: [1, undefined] }, 'payload')).toThrow('undefined in a list (use null) at $.a[1]');
  });

  test('tells of the first value that comes back in another form', () => {
    const told: string[] = [];
    class Money {
      readonly amount = 5;
    }
    for (const value of [{ a: [{ at: new Date(0) }] }, { b: new Money() }, { c: 1, d: [new URL('https://x.org')] }]) {
      encodeJson(value, 'payload', undefined, (change) => told.push(change));
    }
    expect(told).toEqual([
      "the Date at $.a[0].at becomes the text '1970-01-01T00:00:00.000Z'",
      'the instance of Money at $.b becomes a plain object without its methods',
    ]);
    expect(() => encodeJson({ answer: new Response('x') }, 'result')).toThrow('an object of the class Response');
  });

  test('keeps an own __proto__ as data, and pollutes nothing', () => {
    const value = decodeJson('{"__proto__":{"admin":true},"a":1}');
    const back = decodeJson(encodeJson(value, 'payload'));
    expect(Object.keys(back as object)).toEqual(['__proto__', 'a']);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});

describe('what JSON would lose or twist', () => {
  const cycle: Record<string, unknown> = {};
  cycle.list = [{ back: cycle }];

  test.each<[string, unknown, string, string]>([
    ['a BigInt', { n: 10n }, 'a BigInt', '$.n'],
    ['a boxed BigInt', { n: Object(10n) }, 'a BigInt', '$.n'],
    ['NaN', { items: [1, { x: Number.NaN }] }, 'NaN', '$.items[1].x'],
    ['a boxed NaN', [Object(Number.NaN)], 'NaN', '$[0]'],
    ['infinity', [-Infinity], '-Infinity', '$[0]'],
    ['a function', { f: () => 1 }, 'a function', '$.f'],
    ['a symbol', Symbol('x'), 'a symbol', '$'],
    ['a boxed symbol', [Object(Symbol('x'))], 'a symbol', '$[0]'],
    ['a cycle', cycle, 'a cycle', '$.list[0].back'],
    ['a Map', { m: new Map() }, 'a Map', '$.m'],
    ['a Set', { s: new Set() }, 'a Set', '$.s'],
    ['a promise that nobody awaited', { p: Promise.resolve(1) }, 'a promise', '$.p'],
    ['an error', { e: new Error('x') }, 'an error', '$.e'],
    ['an invalid date', { d: new Date(Number.NaN) }, 'an invalid date', '$.d'],
    ['a Buffer', { b: Buffer.from('x') }, 'binary data', '$.b'],
    ['a typed array', [new Uint8Array(2)], 'binary data', '$[0]'],
    ['an ArrayBuffer', [new ArrayBuffer(2)], 'binary data', '$[0]'],
    ['NUL', { a: 'x\u0000y' }, 'a NUL character', '$.a'],
    ['NUL in a name', { a: { 'x\u0000y': 1 } }, 'a NUL character', '$.a'],
    ['a lone surrogate', ['\ud800'], 'a lone surrogate', '$[0]'],
    ['a lone surrogate in a name', { '\udc00': 1 }, 'a lone surrogate', '$'],
    ['what an answer holds', { d: { toJSON: () => ({ n: 1n }) } }, 'a BigInt', '$.d.n'],
    ['more than a thousand levels', nested(1_001), 'more than 1000 levels', ''],
    ['a name that is no word', { 'a.b': { '': Number.NaN } }, 'NaN', "$['a.b']['']"],
  ])('is refused by name and path: %s', (_, value, problem, path) => {
    const error = refusal(value);
    expect(error).toMatchObject({ code: 'payload_rejected', name: 'PayloadError' });
    expect(error.message).toContain(`The payload holds ${problem}`);
    if (path !== '') expect(error.path).toBe(path);
    expect(error.message).toContain(` at ${error.path}, which JSON cannot carry.`);
  });

  test('is refused where it cannot be read at all, with what was thrown as the cause', () => {
    const cause = new Error('no');
    const refuse = () => {
      throw cause;
    };
    const unreadable = [
      { toJSON: refuse },
      Object.defineProperty({}, 'a', { get: refuse, enumerable: true }),
      new Proxy({}, { ownKeys: refuse }),
    ];
    for (const value of unreadable) expect(refusal({ value })).toMatchObject({ code: 'payload_rejected', cause });
  });

  test('is refused even far too deep, without running out of stack', () => {
    expect(refusal(nested(100_000)).message).toContain('more than 1000 levels');
  });
});

describe('what is too large', () => {
  test('is refused with both numbers, in bytes and not in characters', () => {
    expect(encodeJson('x'.repeat(98), 'result', 100)).toHaveLength(100);
    const error = refusal('x'.repeat(99), 100);
    expect(error).toMatchObject({ code: 'payload_too_large', path: '$' });
    expect(error.message).toContain('The payload is 101 bytes of JSON, and the limit is 100.');
    expect(refusal('é'.repeat(50), 100).message).toContain('102 bytes');
    expect(encodeJson('é'.repeat(49), 'payload', 100)).toHaveLength(51);
  });

  test('is more than 1 MiB by default', () => {
    expect(DEFAULT_SIZE_LIMIT).toBe(1_048_576);
    expect(encodeJson('x'.repeat(DEFAULT_SIZE_LIMIT - 2), 'payload')).toHaveLength(DEFAULT_SIZE_LIMIT);
    expect(refusal('x'.repeat(DEFAULT_SIZE_LIMIT - 1)).message).toContain(
      '1048577 bytes of JSON, and the limit is 1048576',
    );
  });
});
