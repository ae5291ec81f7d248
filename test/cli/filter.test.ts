import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FILTER_KEYS, type Filter, parseFilter, printTerms } from '../../src/cli/flags/filter.ts';
import { Problem, problemLines } from '../../src/cli/problem.ts';
import { TASK_STATES } from '../../src/task.ts';

describe('a filter', () => {
  test('joins values by OR and terms by AND', () => {
    expect(parseFilter('state:dead,needs_manual  type:file_move queue:a source:cmd:rsync reason:fs.locked')).toEqual({
      states: ['dead', 'needs_manual'],
      types: ['file_move'],
      queues: ['a'],
      sources: ['cmd:rsync'],
      reasons: ['fs.locked'],
    });
  });

  test('keeps spaces, commas and quotes inside quotes', () => {
    expect(parseFilter(String.raw`source:"fs:/my nas","a,\"b\\" queue:x`)).toEqual({
      sources: ['fs:/my nas', 'a,"b\\'],
      queues: ['x'],
    });
  });

  test('is nothing for no text', () => {
    expect(parseFilter(' ')).toEqual({});
  });

  test('reads what it printed', () => {
    const values = fc.uniqueArray(fc.string({ unit: 'grapheme', minLength: 1 }), { minLength: 1, maxLength: 3 });
    const filters = fc.record(
      {
        states: fc.uniqueArray(fc.constantFrom(...TASK_STATES), { minLength: 1 }),
        types: values,
        queues: values,
        sources: values,
        reasons: values,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(filters, (filter) => {
        expect(parseFilter(printTerms(filter as Filter, FILTER_KEYS))).toEqual(filter);
      }),
    );
  });
});

describe('a filter that is wrong is pointed at', () => {
  test.each([
    [
      'state:dead conector:http:api.acme.io',
      [
        'error: unknown filter key "conector", at column 12',
        '       state:dead conector:http:api.acme.io',
        '                  ^^^^^^^^ did you mean "source"?   (exit 2)',
      ],
    ],
    [
      'state:held,ded',
      [
        'error: unknown state "ded", at column 12',
        '       state:held,ded',
        '                  ^^^ did you mean "dead"?   (exit 2)',
      ],
    ],
    [
      'state:retrying',
      [
        'error: retrying tasks are stored as scheduled, at column 7',
        '       state:retrying',
        '             ^^^^^^^^ state:scheduled   (exit 2)',
      ],
    ],
    [
      'queue:a invalid',
      [
        'error: a term is written key:value, at column 9',
        '       queue:a invalid',
        '               ^^^^^^^ for example state:dead; keys: state, type, queue, source, reason   (exit 2)',
      ],
    ],
    [
      'queue:a queue:b',
      [
        'error: "queue" is given twice, at column 9',
        '       queue:a queue:b',
        '               ^^^^^ one list instead: queue:a,b   (exit 2)',
      ],
    ],
    [
      'source:"fs:/a b',
      [
        'error: this quote is not closed, at column 8',
        '       source:"fs:/a b',
        '              ^ source:"fs:/mnt/my nas"   (exit 2)',
      ],
    ],
    [
      'state:',
      ['error: a value is missing here, at column 6', '       state:', '            ^ state:dead,held   (exit 2)'],
    ],
    [
      'type:"a"b',
      [
        'error: a space is missing after the closing quote, at column 9',
        '       type:"a"b',
        '               ^ state:dead source:"a b"   (exit 2)',
      ],
    ],
  ])('%s', (text, lines) => {
    expect(problemLines(problemFrom(() => parseFilter(text)))).toEqual(lines);
  });

  test('and nothing else is ever thrown', () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        try {
          parseFilter(text);
        } catch (error) {
          expect(error).toBeInstanceOf(Problem);
        }
      }),
    );
  });
});

function problemFrom(call: () => unknown): Problem {
  try {
    call();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
  throw new Error('It was not refused.');
}
