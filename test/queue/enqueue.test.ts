import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { custom, defineTask, type EnqueueOptions, type Holdfast, openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();

let holdfast: Holdfast;
let before: number;
const work = defineTask('work', { run() {} });
beforeAll(async () => {
  holdfast = await openHoldfast({ store: aStore(), tasks: [work] });
});
afterAll(() => holdfast.close());
beforeEach(async () => {
  before = (await holdfast.list()).length;
});

const countOf = async () => (await holdfast.list({ limit: 1_000 })).length;

let defined = 0;
/** A type of its own: a type has one definition. */
const another = () => `work ${++defined}`;

describe('enqueue refuses', () => {
  const enqueue = (options: unknown) => refused(() => holdfast.enqueue(work, null, options as never));

  test.each(nonsense(['a text']))('%s for a task', async (_, task) => {
    expect((await refused(() => holdfast.enqueue(task as never, null))).code).toBe('invalid_input');
  });

  test.each(['', 'x'.repeat(256), 'a\nb', '\ud800'])('the type %j', async (type) => {
    expect((await refused(() => holdfast.enqueue(type, null))).message).toMatch(/type/);
  });

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date', 'a function']))(
    '%s for its options',
    async (_, options) => {
      expect((await enqueue(options)).code).toBe('invalid_input');
    },
  );

  test('options that it does not have', async () => {
    const { message } = await enqueue({ dealy: '1h' });
    expect(message).toMatch(/enqueue has no option 'dealy'\. It has: delay, at, submittedAt/);
  });

  test.each([
    ['delay', nonsense(['1.5'])],
    ['at', nonsense()],
    ['submittedAt', nonsense()],
    ['deadline', nonsense()],
    ['priority', nonsense()],
    ['queue', nonsense(['a text'])],
    ['category', nonsense(['a text'])],
    ['needs', nonsense(['an object', 'an invalid Date'])],
    ['source', nonsense(['a text'])],
    ['idempotent', nonsense(['true'])],
    ['key', nonsense(['a text'])],
  ])('nonsense for %s, naming it', async (option, values) => {
    for (const [, value] of values) expect((await enqueue({ [option]: value })).message).toContain(option);
    expect(await countOf()).toBe(before);
  });

  test.each(nonsense(['an invalid Date']))('%s for a policy', async (_, retry) => {
    expect((await enqueue({ retry })).code).toBe('invalid_policy');
  });

  test('a policy that cannot be stored', async () => {
    const backoff = custom('mine', () => 5);
    expect((await enqueue({ retry: { backoff } })).message).toMatch(/cannot hold a custom backoff/);
    expect((await enqueue({ retry: { rules: { timeout: { backoff } } } })).message).toMatch(
      /cannot hold a custom backoff/,
    );
  });

  test('`delay` together with `at`', async () => {
    expect((await enqueue({ delay: 0, at: new Date() })).message).toMatch(/either `delay` or `at`, not both/);
  });

  test('a `delay` of more than ten years, showing it', async () => {
    expect((await enqueue({ delay: '600w' })).message).toMatch(/delay must be at most ten years, got '600w'/);
  });

  test('nonsense from the functions of a definition, and what these throw', async () => {
    for (const [, value] of nonsense(['a text'])) {
      const task = defineTask(another(), { source: () => value as never, run() {} });
      expect((await refused(() => holdfast.enqueue(task, null))).message).toMatch(/source/);
    }
    for (const [, value] of nonsense(['true'])) {
      const task = defineTask(another(), { idempotent: () => value as never, run() {} });
      expect((await refused(() => holdfast.enqueue(task, null))).message).toMatch(/idempotent/);
    }
    for (const [, value] of nonsense()) {
      const fail = () => {
        throw value;
      };
      const source = defineTask(another(), { source: fail, run() {} });
      expect((await refused(() => holdfast.enqueue(source, null))).message).toMatch(/`source` of work/);
      const idempotent = defineTask(another(), { idempotent: fail, run() {} });
      expect((await refused(() => holdfast.enqueue(idempotent, null))).message).toMatch(/`idempotent` of work/);
    }
    const curious = defineTask(another(), { source: (input: { box: { name: string } }) => input.box.name, run() {} });
    const error = await refused(() => holdfast.enqueue(curious, {} as never));
    expect(error.message).toMatch(/`source` of work .*Cannot read properties of undefined/);
    expect(error.cause).toBeInstanceOf(TypeError);
    expect(await countOf()).toBe(before);
  });
});

describe('enqueue', () => {
  test('takes a policy with a rule that is undefined', async () => {
    const retry = { rules: { timeout: undefined } } as never;
    expect(await holdfast.enqueue(work, null, { retry })).toMatchObject({ created: true });
  });

  test('takes names of 255 characters of any script, and priorities to 4,095', async () => {
    const name = '😀'.repeat(127);
    const options: EnqueueOptions = { queue: name, source: name, category: name, key: name, priority: 4_095 };
    const { id } = await holdfast.enqueue(work, null, options);
    expect(await holdfast.get(id)).toMatchObject(options);
    expect(await holdfast.find(name)).toMatchObject({ id });
  });

  test('takes any time that a Date can hold', async () => {
    const far = new Date(8.64e15);
    const { id } = await holdfast.enqueue(work, null, { at: far, deadline: far, submittedAt: new Date(-8.64e15) });
    expect(await holdfast.get(id)).toMatchObject({ state: 'scheduled', dueAt: far, deadline: far });
    const past = await holdfast.enqueue(work, null, { at: new Date(-8.64e15) });
    expect(await holdfast.get(past.id)).toMatchObject({ state: 'ready' });
  });

  test('answers the first task for a key that its type has, and takes the key for another type', async () => {
    const first = await holdfast.enqueue(work, 1, { key: 'k' });
    expect(await holdfast.enqueue(work, 2, { key: 'k' })).toEqual({ id: first.id, created: false, state: 'ready' });
    expect(await holdfast.enqueue('elsewhere', 3, { key: 'k' })).toMatchObject({ created: true });
    expect(await holdfast.get(first.id)).toMatchObject({ input: 1 });
  });

  test('takes a type by text that nothing here defines, whatever it is called', async () => {
    for (const type of ['elsewhere', '__proto__', 'constructor', 'toString', "'; DROP TABLE hf_tasks; --"]) {
      const { id } = await holdfast.enqueue(type, null);
      expect(await holdfast.get(id)).toMatchObject({ type, state: 'ready' });
    }
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });
});

describe('a payload', () => {
  const refusedPayload = (input: unknown) => refused(() => holdfast.enqueue(work, input));
  const roundTrip = async (input: unknown) => {
    const { id } = await holdfast.enqueue(work, input);
    return (await holdfast.get(id)).input;
  };

  test('of exactly 1 MiB of JSON is taken, and one byte more is refused, with both numbers', async () => {
    const most = 1_048_576;
    const input = 'x'.repeat(most - 2);
    expect(await roundTrip(input)).toBe(input);

    const error = await refusedPayload(`${input}x`);
    expect(error).toMatchObject({ code: 'payload_too_large', path: '$' });
    expect(error.message).toMatch(/1048577 bytes.*1048576/);
  });

  test('is measured in bytes of UTF-8, not in characters', async () => {
    const limited = await openHoldfast({ store: aStore(), maxPayloadBytes: 100 });
    expect(await limited.enqueue('work', '€'.repeat(32))).toMatchObject({ created: true });
    expect(await refused(() => limited.enqueue('work', '€'.repeat(33)))).toMatchObject({
      code: 'payload_too_large',
      message: expect.stringMatching(/101 bytes.*100/),
    });
    await limited.close();
  });

  const cycle: Record<string, unknown> = { name: 'me' };
  cycle.items = [{ back: cycle }];
  const deep = (levels: number) => {
    let value: unknown = 'bottom';
    for (let level = 0; level < levels; level++) value = level % 2 ? [value] : { a: value };
    return value;
  };

  test.each<[string, unknown, string, RegExp]>([
    ['a BigInt', { n: 10n }, '$.n', /BigInt.*string/],
    ['a cycle', cycle, '$.items[0].back', /cycle/],
    ['NaN', { a: [1, Number.NaN] }, '$.a[1]', /NaN/],
    ['Infinity', Number.NEGATIVE_INFINITY, '$', /-Infinity/],
    ['a function', { run() {} }, '$.run', /function/],
    ['a symbol', [Symbol('s')], '$[0]', /symbol/],
    ['a Map', { m: new Map() }, '$.m', /Map/],
    ['a Set', new Set(), '$', /Set/],
    ['a Buffer', { file: Buffer.from('x') }, '$.file', /binary.*base64/],
    ['a typed array', new Float64Array(2), '$', /binary/],
    ['an ArrayBuffer', new ArrayBuffer(2), '$', /binary/],
    ['a promise', { later: Promise.resolve() }, '$.later', /promise.*await/],
    ['an error', { error: new Error('x') }, '$.error', /error/],
    ['an invalid date', { at: new Date(Number.NaN) }, '$.at', /date/],
    ['a lone surrogate', { text: 'a\ud800' }, '$.text', /surrogate/],
    ['a lone surrogate in a name', { 'a\udc00': 1 }, '$', /surrogate/],
    ['NUL', ['a\u0000b'], '$[0]', /NUL/],
    ['1,001 levels', deep(1_001), '$', /1000 levels/],
    ['200,000 levels', deep(200_000), '$', /1000 levels/],
    ['a boxed BigInt', { n: Object(1n) }, '$.n', /BigInt/],
  ])('is refused for %s, with its place', async (_, input, path, message) => {
    const error = await refusedPayload(input);

    expect(error.code).toBe('payload_rejected');
    expect((error as { path?: string }).path?.startsWith(path)).toBe(true);
    expect(error.message).toMatch(message);
    expect(await countOf()).toBe(before);
  });

  test('that throws when it is read is refused', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {});
    revoke();
    const throwing = (thrown: unknown) => ({
      get member() {
        throw thrown;
      },
    });
    const inputs = [
      proxy,
      { proxy },
      { toJSON: () => 10n },
      {
        toJSON() {
          throw new Error('not me');
        },
      },
      new Proxy({}, { ownKeys: () => [1] as never }),
      ...nonsense().map(([, thrown]) => throwing(thrown)),
    ];
    for (const input of inputs) expect((await refusedPayload(input)).code).toBe('payload_rejected');
    expect(await countOf()).toBe(before);
  });

  test('that reads differently the second time is refused, or kept as one of both', async () => {
    let reads = 0;
    const shifty = {
      get member() {
        reads += 1;
        return reads === 1 ? 1 : 10n;
      },
    };
    expect((await refusedPayload(shifty)).code).toBe('payload_rejected');
  });

  test('comes back as JSON carries it', async () => {
    const input = {
      text: '“ä€😀”\u2028\n\t',
      list: [null, true, 0, -0.5, 1e21, []],
      nested: { '': { ' ': 1 } },
      at: new Date(0),
    };
    expect(await roundTrip(input)).toEqual({ ...input, at: '1970-01-01T00:00:00.000Z' });
    expect(await roundTrip(deep(1_000))).toEqual(deep(1_000));
    expect(await roundTrip({ gone: undefined, list: [null] })).toEqual({ list: [null] });
    expect(await roundTrip(undefined)).toBeNull();
  });

  test('keeps `__proto__` as data, and pollutes nothing', async () => {
    const input = JSON.parse('{"__proto__":{"admin":true},"constructor":{"prototype":{"admin":true}}}');
    const back = (await roundTrip(input)) as object;

    expect(JSON.stringify(back)).toBe(JSON.stringify(input));
    expect(Object.hasOwn(back, '__proto__')).toBe(true);
    expect(({} as { admin?: boolean }).admin).toBeUndefined();
  });
});
