import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { filterFrom } from '../src/cli/flags/filter.ts';
import { type Problem, problemLines, problemOf } from '../src/cli/problem.ts';
import { isFilter, parseFilter, printFilter, type TaskFilter } from '../src/filter.ts';
import { TASK_STATES } from '../src/task.ts';

const NOW = new Date(2026, 5, 15, 14, 0, 0);
const read = (text: string) => parseFilter(text, NOW);

describe('a filter', () => {
  test.each<[string, TaskFilter]>([
    [' ', {}],
    [
      'state:dead,needs_manual  type:file_move queue:a source:cmd:rsync reason:fs.locked fingerprint:1:0',
      {
        states: ['dead', 'needs_manual'],
        types: ['file_move'],
        queues: ['a'],
        sources: ['cmd:rsync'],
        reasons: ['fs.locked'],
        fingerprints: ['1:0'],
      },
    ],
    [String.raw`source:"fs:/my nas","a,\"b\\" queue:x`, { sources: ['fs:/my nas', 'a,"b\\'], queues: ['x'] }],
    ['error:"timed out",refused', { errors: ['timed out', 'refused'] }],
    ['reason:http.*,fs.locked', { reasons: ['fs.locked'], families: ['http'] }],
    ['source:imap:*,x type:"a*"', { sources: ['x'], like: { sources: ['imap:*'] }, types: ['a*'] }],
    ['source:a* queue:b*', { sources: [], queues: [], like: { sources: ['a*'], queues: ['b*'] } }],
    [
      'attempts:>=3 executions:4..9,12 priority:<100 -attempts:>7',
      {
        attempts: [{ from: 3 }],
        executions: [
          { from: 4, to: 9 },
          { from: 12, to: 12 },
        ],
        priority: [{ to: 99 }],
        not: { attempts: [{ from: 8 }] },
      },
    ],
    ['attempts:3..,..1,=7', { attempts: [{ from: 3 }, { to: 1 }, { from: 7, to: 7 }] }],
    ['-type:a -reason:fs.* -error:x', { not: { types: ['a'], reasons: [], families: ['fs'], errors: ['x'] } }],
    ['type:a* -type:ab', { types: [], like: { types: ['a*'] }, not: { types: ['ab'] } }],
    ['state:dead,held -state:held', { states: ['dead'] }],
    ['-state:succeeded,dead', { states: TASK_STATES.filter((state) => state !== 'succeeded' && state !== 'dead') }],
    ['since:2h', { endedFrom: NOW.getTime() - 7_200_000 }],
    [
      'since:today until:13:30',
      { endedFrom: new Date(2026, 5, 15).getTime(), endedBefore: new Date(2026, 5, 15, 13, 30).getTime() },
    ],
    ['since:"yesterday 9:00"', { endedFrom: new Date(2026, 5, 14, 9).getTime() }],
  ])('%s', (text, filter) => {
    expect(read(text)).toEqual(filter);
    expect(read(printFilter(filter))).toEqual(filter);
  });

  test('is read as it was printed', () => {
    const values = fc.uniqueArray(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1, maxLength: 3 });
    const range = fc.oneof(
      fc.record({ from: fc.nat() }),
      fc.record({ to: fc.nat() }),
      fc.record({ from: fc.nat(), to: fc.nat() }),
    );
    const ranges = fc.array(range, { minLength: 1, maxLength: 3 });
    const numbers = { attempts: ranges, executions: ranges, priority: ranges };
    const traits = { ...numbers, types: values, queues: values, sources: values, reasons: values, errors: values };
    const filters = fc.record(
      {
        states: fc.uniqueArray(fc.constantFrom(...TASK_STATES), { minLength: 1 }),
        ...traits,
        not: fc.record(traits, { requiredKeys: ['types'] }),
        endedFrom: fc.nat(),
        endedBefore: fc.nat(),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(filters, (filter) => {
        expect(read(printFilter(filter as TaskFilter))).toEqual(filter);
      }),
    );
  });

  test.each([
    [['error:timed out'], 'error:"timed out"'],
    [['-source:fs:/my nas', 'state:dead'], '-source:"fs:/my nas" state:dead'],
    [['state:dead type:a'], 'state:dead type:a'],
    [['error:"timed out" x'], 'error:"timed out" x'],
  ])('has the quotes again that a shell removed: %j', (args, text) => {
    expect(filterFrom(args)).toBe(text);
  });

  test.each([
    ['state:dead', true],
    ['-type:a', true],
    ['key:a', false],
    ['12', false],
    ['imap:INBOX', false],
  ])('is told from the number or key of a task: %s', (text, is) => {
    expect(isFilter(text)).toBe(is);
  });
});

const KEYS = 'state, type, queue, source, reason, fingerprint, error, attempts, executions, priority, since, until';
const TIMES = '14:30 (its last time), yesterday 9:00, 2h (so long ago), or 2026-01-31T09:00:00Z';

describe('a filter that is wrong is pointed at', () => {
  test.each([
    ['state:dead conector:http:api.acme.io', 12, 8, 'unknown filter key "conector"', 'did you mean "source"?'],
    ['grup:1', 1, 4, 'unknown filter key "grup"', 'did you mean "fingerprint"?'],
    ['state:held,ded', 12, 3, 'unknown state "ded"', 'did you mean "dead"?'],
    ['state:retrying', 7, 8, 'retrying tasks are stored as scheduled', 'state:scheduled'],
    ['queue:a invalid', 9, 7, 'a term is written key:value', `for example state:dead; keys: ${KEYS}`],
    ['queue:a queue:"b c"', 9, 5, '"queue" is given twice', 'one list instead: queue:a,"b c"'],
    ['source:"fs:/a b', 8, 1, 'this quote is not closed', 'source:"fs:/mnt/my nas"'],
    ['attempts:', 9, 1, 'a value is missing here', "attempts:3.. or 'attempts:>=3'"],
    ['priority:1,high', 12, 4, '"high" is not a number', "priority:3, priority:3..5, priority:3.. or 'priority:>=3'"],
    ['state:', 6, 1, 'a value is missing here', 'state:dead,held'],
    ['type:"a"b', 9, 1, 'a space is missing after the closing quote', 'state:dead source:"a b"'],
    ['since:soon', 7, 4, '"soon" is not a time', `times: ${TIMES}`],
    ['since:1h,2h', 10, 2, '"since" takes one time', 'since:2h'],
    ['-since:1h', 2, 5, '"since" cannot be excluded', 'until:1h'],
  ])('%s', (text, column, length, what, hint) => {
    expect(problemLines(problemFrom(() => read(text)))).toEqual([
      `error: ${what}, at column ${column}`,
      `       ${text}`,
      `       ${' '.repeat(column - 1)}${'^'.repeat(length)} ${hint}   (exit 2)`,
    ]);
  });

  test('and nothing else is ever thrown', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          read(text);
        } catch (error) {
          expect(problemOf(error)).toMatchObject({ code: 'invalid_input' });
        }
      }),
    );
  });
});

function problemFrom(call: () => unknown): Problem {
  try {
    call();
  } catch (error) {
    return problemOf(error);
  }
  throw new Error('It was not refused.');
}
