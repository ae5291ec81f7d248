import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { scanJson } from '../../src/cli/import/json-scan.ts';
import { type Line, linesIn } from '../../src/cli/import/lines.ts';
import { ImportReader, type ReaderOptions } from '../../src/cli/import/reader.ts';
import { SeenKeys } from '../../src/cli/import/seen-keys.ts';
import { ProgressBar } from '../../src/cli/terminal/progress-bar.ts';
import { Terminal } from '../../src/cli/terminal/terminal.ts';
import { exponential, schedule } from '../../src/failure/backoff.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import type { Task } from '../../src/queue/task-view.ts';
import { policyOptions, taskJson } from '../../src/views/json-shapes.ts';

const NOW = Date.UTC(2026, 4, 30);

function reader(options: Partial<ReaderOptions> = {}): ImportReader {
  return new ImportReader({ actor: 'eva', file: 'old.jsonl', now: () => NOW, ...options });
}

const line = (text: string, number = 1): Line => ({ number, end: 0, bytes: text.length, text });
const read = (content: object | string, options?: Partial<ReaderOptions>) =>
  reader(options).read(line(typeof content === 'string' ? content : JSON.stringify(content)));

describe('a line', () => {
  test('says all that a task is, in the words of --json, where null is what is not known', async () => {
    const task = {
      type: 'charge',
      key: 'k',
      payload: { camelCase: null },
      queue: 'billing',
      source: 'api:x',
      priority: 9,
      category: 'nightly',
      needs: { gpu: true },
      due_at: '2030-01-31T09:00:00.123456+01:00',
      submitted_at: '2026-01-01T00:00:00Z',
      deadline: null,
      idempotent: false,
      retry: { max_attempts: 3, timeout_ms: null, rules: { rate_limited: { max_attempts: 9 } } },
      state: 'scheduled',
      charged: { 'fs.locked': 2 },
      deferrals: 1,
      error: 'EBUSY',
      note: 'was 17',
    };
    expect(await read(task)).toEqual({
      task: {
        type: 'charge',
        key: 'k',
        payload: '{"camelCase":null}',
        queue: 'billing',
        source: 'api:x',
        priority: 9,
        category: 'nightly',
        needs: { gpu: true },
        delay: 0,
        dueAt: Date.UTC(2030, 0, 31, 8, 0, 0, 123),
        submittedAt: Date.UTC(2026, 0, 1),
        idempotent: false,
        policy: '{"maxAttempts":3,"timeout":"none","rules":{"rate_limited":{"maxAttempts":9}}}',
        stands: 'waiting',
        charged: [{ reason: 'fs.locked', kind: 'transient', count: 2 }],
        deferrals: 1,
        executions: 3,
        reason: 'fs.locked',
        error: 'EBUSY',
        by: { actor: 'eva', note: 'was 17' },
      },
    });
  });

  test('needs nothing but a type and a key, and tells in its history where it stood', async () => {
    expect(await read({ type: 'a', key: 'k' })).toMatchObject({
      task: { payload: 'null', queue: 'default', source: 'a', by: { actor: 'eva', note: 'old.jsonl, line 1' } },
    });
    expect(await read({ type: 'a', key: 'k' }, { note: 'moved' })).toMatchObject({ task: { by: { note: 'moved' } } });
  });

  test('of a command or a move is checked as that is, and gets its source', async () => {
    const moved = await read({ type: 'file_move', key: 'm', payload: { from: '/nowhere/a', to: '/nowhere/b' } });
    expect(moved).toMatchObject({ task: { source: 'fs:/' } });
    const ran = await read({ type: 'shell_command', key: 'c', payload: { argv: ['/bin/rsync', 'x'], cwd: '/' } });
    expect(ran).toMatchObject({ task: { source: 'cmd:rsync', idempotent: true } });
  });

  test('on which nothing stands is passed over', async () => {
    expect(await read('')).toBeUndefined();
    expect(await read(' \t\r')).toBeUndefined();
  });

  test('without a key gets one of its number and content, under the name of the import', async () => {
    const keyOf = async (text: string, number: number, keys = 'may') => {
      const reading = await reader({ keys }).read(line(text, number));
      return (reading as { task: { key: string } }).task.key;
    };
    const text = '{"type":"a"}';
    expect(await keyOf(text, 7)).toMatch(/^may:7:[\da-f]{12}$/);
    expect(await keyOf(`${text} `, 7)).toBe(await keyOf(text, 7));
    const others = [await keyOf(text, 8), await keyOf('{"type":"b"}', 7), await keyOf(text, 7, 'june')];
    expect(new Set([...others, await keyOf(text, 7)]).size).toBe(4);
    expect(await keyOf('{"type":"a","key":"own"}', 7)).toBe('own');
  });

  const base = { type: 'a', key: 'k' };
  test.each<[string, object | string, string, number | string | undefined]>([
    ['that is cut off', '{"type":"a","key":', 'it is not JSON: a value was expected here', 19],
    ['with a comma too many', '{"type":"a",}', 'a text in double quotes was expected', 13],
    ['with an emoji before the slip', '{"type":"🎉" "key"}', 'a comma or } was expected', 13],
    ['that is no object', '[1]', 'each line is one task', undefined],
    ['with a number that would become another', '{"payload":[12345678901234567890]}', 'write it as a text', 13],
    ['without a type', { key: 'k' }, 'type is missing', undefined],
    ['without a key', { type: 'a' }, 'key is missing', undefined],
    ['with a slip in a name', { ...base, prioritty: 1 }, 'did you mean "priority"?', 'prioritty'],
    ['in the words of another queue', { ...base, status: 'x' }, 'did you mean "state"?', 'status'],
    ['that means its policy', { ...base, max_attempts: 5 }, 'it is part of retry', 'max_attempts'],
    ['that nobody understands', { ...base, xyzzy: 5 }, 'There are: type, payload, key,', 'xyzzy'],
    ['with a state of another queue', { ...base, state: 'abandoned' }, 'Is it dead here?', 'state'],
    ['that runs', { ...base, state: 'running' }, "state cannot be 'running'", 'state'],
    [
      'with a time without its zone',
      { ...base, due_at: '2026-01-01T09:00:00' },
      'due_at must be a time with its zone',
      'due_at',
    ],
    ['with a time as a number', { ...base, ended_at: 1e12 }, 'ended_at must be a time', 'ended_at'],
    ['with two times', { ...base, due_at: '2026-01-01T09:00Z', delay: '1h' }, 'contradict each other', 'delay'],
    ['with a policy that cannot be', { ...base, retry: { max_attempts: 0 } }, 'max_attempts must be', 'retry'],
    ['with a policy that is none', { ...base, retry: 5 }, 'A policy must be an object', 'retry'],
    [
      'with an end before its time',
      { ...base, state: 'held', ended_at: '2026-01-01T09:00Z' },
      'ended_at goes with',
      'ended_at',
    ],
    ['with a count that is none', { ...base, charged: { x: 0 } }, 'charged[0].count must be', 'charged'],
    [
      'with a move that has no end',
      { ...base, type: 'file_move', payload: {} },
      'The payload of file_move is refused',
      'payload',
    ],
    [
      'with a relative move',
      { ...base, type: 'file_move', payload: { from: 'a', to: '/b' } },
      'absolute paths',
      'payload',
    ],
  ])('%s is refused by name and column', async (_, content, words, column) => {
    const reading = await read(content);
    const place = typeof column === 'string' ? JSON.stringify(content).indexOf(`"${column}":`) + 1 : column;
    expect(reading).toMatchObject({ objections: [{ line: 1, text: expect.stringContaining(words) }] });
    const [objection] = reading && 'objections' in reading ? reading.objections : [];
    expect(objection?.column).toBe(place);
  });

  test('tells of all names that it does not know at once', async () => {
    const reading = await read({ id: 1, attempts: 2, type: 'a', key: 'k' });
    expect(reading).toMatchObject({ objections: [{ member: 'id' }, { member: 'attempts' }] });
  });

  test('with the key of an earlier one of its type is refused, and names that one', async () => {
    const one = reader();
    expect(await one.read(line('{"type":"a","key":"k"}', 3))).toHaveProperty('task');
    expect(await one.read(line('{"type":"b","key":"k"}', 4))).toHaveProperty('task');
    expect(await one.read(line('{"type":"a","key":"k"}', 5))).toMatchObject({
      objections: [{ line: 5, column: 13, text: expect.stringContaining('line 3 has this key of this type already') }],
    });
  });
});

test('a policy that --json wrote is read back as the same, and spans as people write them too', () => {
  const retry = {
    maxAttempts: 3,
    giveUpAfter: 'none',
    timeout: '5m',
    backoff: exponential({ base: '1s', cap: '1m' }),
    rules: { 'fs.locked': { backoff: schedule(['1s', '2s']), onExhausted: 'dead' }, rate_limited: { charge: false } },
  } as const;
  const { policy } = taskJson({ submittedAt: 0, createdAt: 0, retry } as unknown as Task) as { policy: unknown };
  expect(definePolicy(policyOptions(policy) as object)).toEqual(definePolicy(retry));
  const byHand = { max_attempts: 3, backoff: { kind: 'exponential', base: '1s', cap: '1m' }, timeout: 'none' };
  expect(policyOptions(byHand)).toEqual({
    maxAttempts: 3,
    backoff: { kind: 'exponential', base: '1s', cap: '1m' },
    timeout: 'none',
  });
});

describe('the lines of a stream', () => {
  async function all(chunks: readonly (string | Buffer)[], longest = 1_000): Promise<Line[]> {
    const lines: Line[] = [];
    const stream = (async function* () {
      for (const chunk of chunks) yield Buffer.from(chunk);
    })();
    for await (const some of linesIn(stream, longest)) lines.push(...some);
    return lines;
  }

  test('are the same wherever its chunks are cut', async () => {
    const text = '{"a":"é🎉"}\r\n\n{"b":"\u2028 no line end"}\nlast';
    await fc.assert(
      fc.asyncProperty(fc.array(fc.nat({ max: Buffer.byteLength(text) }), { maxLength: 6 }), async (cuts) => {
        const bytes = Buffer.from(text);
        const at = [0, ...cuts.toSorted((a, b) => a - b), bytes.length];
        const lines = await all(at.slice(1).map((end, i) => bytes.subarray(at[i], end)));
        expect(lines.map((each) => each.text)).toEqual(text.split('\n'));
        expect(lines.map(({ number }) => number)).toEqual([1, 2, 3, 4]);
        expect(lines.at(-1)?.end).toBe(bytes.length);
      }),
    );
  });

  test('that are too long or no UTF-8 are named, and those after them are read', async () => {
    expect(await all(['x'.repeat(8), 'xxx\n', Buffer.from([0xff, 10]), 'ok\n'], 10)).toMatchObject([
      { number: 1, bytes: 11, wrong: 'too_long' },
      { number: 2, wrong: 'not_utf8' },
      { number: 3, text: 'ok', end: 17 },
    ]);
  });

  test('begin after the mark that some programs write, and none is made by a last line end', async () => {
    expect(await all(['\ufeff{}\n'])).toMatchObject([{ text: '{}' }]);
    expect(await all([])).toEqual([]);
  });
});

test.each([
  ['a member', '{"type":"t","key":"k1","key":"k2"}', 'key', 24],
  ['a member that is null at last', '{"type":"t","key":"k1","note":"a","note":null}', 'note', 35],
  ['a member of its payload', '{"type":"t","key":"k1","payload":{"é🎉":1,"é🎉":2}}', 'é🎉', 42],
])('a line that gives %s twice is refused, and the place of the second is told', async (_, text, member, column) => {
  expect(await read(text)).toEqual({
    objections: [{ line: 1, column, code: 'invalid_input', text: `the member "${member}" is given twice` }],
  });
});

test('a refused line of ten million characters is refused with its place', async () => {
  const long = 'x'.repeat(10_000_000);
  expect(await read(`{"type":"t","key":"k","payload":"${long}","nothing":1}`)).toMatchObject({
    objections: [{ line: 1, column: long.length + 36, member: 'nothing' }],
  });
  expect(await read(`{"type":"t","payload":"${long}`)).toMatchObject({
    objections: [{ line: 1, code: 'invalid_input' }],
  });
});

describe('a look at JSON', () => {
  test('says that it is none exactly where JSON.parse says so', () => {
    const broken = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom('', ',', '"', '}', ']', '\\', '0', 'e', '\u0001', ':'),
    );
    fc.assert(
      fc.property(broken, ([json, at, sign]) => {
        const place = at % (json.length + 1);
        const text = json.slice(0, place) + sign + json.slice(place + (sign === '' ? 1 : 0));
        let valid = true;
        try {
          JSON.parse(text);
        } catch {
          valid = false;
        }
        expect(scanJson(text).wrong === undefined, text).toBe(valid);
      }),
      { numRuns: 2_000 },
    );
  });

  test('finds the members of the outermost object, and numbers that would be twisted', () => {
    const { members, twisted } = scanJson('{"a":{"b":9007199254740993},"c\\n":"12345678901234567890", "d" :1e400}');
    expect([...members]).toEqual([
      ['a', 1],
      ['c\n', 28],
      ['d', 58],
    ]);
    expect(twisted).toEqual([{ token: '9007199254740993', at: 10 }]);
  });

  test('takes a text of any length, of plain characters or of escapes', () => {
    for (const long of ['x'.repeat(12_000_000), '\\n'.repeat(6_000_000), '\\u00e9x'.repeat(1_500_000)]) {
      expect(scanJson(`{"a":"${long}"}`).wrong).toBeUndefined();
      expect(scanJson(`{"a":"${long}\\q"}`).wrong?.at).toBe(long.length + 6);
      expect(scanJson(`{"a":"${long}`).wrong).toEqual({ at: long.length + 6, expected: 'a closing "' });
    }
  });

  test('finds the second of two members of one name, in any object, however it is written', () => {
    expect(scanJson('{"a":1,"b":{"a":2},"c":[{"a":3},{"a":4}]}').twice).toBeUndefined();
    expect(scanJson('{"a":1,"\\u0061":2,"a":3}').twice).toEqual({ name: 'a', at: 7 });
    expect(scanJson('{"p":[{"__proto__":1,"__proto__":2}]}').twice).toEqual({ name: '__proto__', at: 21 });
  });

  test('does not go deeper than anything that is taken', () => {
    expect(scanJson('['.repeat(100_000)).wrong?.expected).toContain('levels');
  });
});

test('the keys that were seen answer the line that had a key first, of a hundred thousand', () => {
  const seen = new SeenKeys();
  const before = Array.from({ length: 100_000 }, (_, i) => seen.add('t', `k${i}`, i + 1));
  expect(before.filter((line) => line !== undefined)).toEqual([]);
  for (let n = 0; n < 100_000; n += 997) expect(seen.add('t', `k${n}`, 7)).toBe(n + 1);
  expect(seen.add('u', 'k1', 8)).toBeUndefined();
});

describe('the progress bar', () => {
  function shown(options: { isTTY?: boolean; quiet?: boolean; TERM?: string }): string {
    let said = '';
    const sink = { isTTY: options.isTTY ?? true, columns: 60, write: (chunk: string | Uint8Array) => (said += chunk) };
    const environment = { TERM: options.TERM };
    const quiet = options.quiet ?? false;
    const streams = { stdout: sink, stderr: sink, stdin: {}, env: environment, platform: 'linux' } as const;
    const terminal = new Terminal(streams, { quiet, color: false, input: false });
    const bar = new ProgressBar(terminal, environment);
    bar.update(0.5, () => 'importing line 10');
    bar.update(0.6, () => 'too soon to be seen');
    bar.clear();
    bar.clear();
    terminal.note('done');
    return said;
  }

  test('is one line of a terminal that goes away again', () => {
    expect(shown({})).toBe(`\r[${'#'.repeat(12)}${'-'.repeat(12)}]  50%  importing line 10\u001b[K\r\u001b[Kdone\n`);
  });

  test('is not there where nobody looks, with --quiet, and on a terminal that cannot', () => {
    expect(shown({ isTTY: false })).toBe('done\n');
    expect(shown({ quiet: true })).toBe('');
    expect(shown({ TERM: 'dumb' })).toBe('done\n');
  });
});
