import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Cell, type Column, table } from '../../src/cli/terminal/table.ts';
import { Terminal } from '../../src/cli/terminal/terminal.ts';
import { cut, padded, widthOf } from '../../src/cli/terminal/width.ts';
import { inAscii } from '../../src/views/glyphs.ts';
import { quoted, visible, visibleLines } from '../../src/views/visible.ts';

const ESC = '\u001b';

describe('text of a task on a terminal', () => {
  test.each([
    ['colours', `${ESC}[31mred${ESC}[0m`, String.raw`\x1b[31mred\x1b[0m`],
    ['a title', `${ESC}]0;owned\u0007`, String.raw`\x1b]0;owned\x07`],
    ['C1 controls', '\u009b2J', String.raw`\x9b2J`],
    ['a line that is overwritten', 'rm -rf /\rls', String.raw`rm -rf /\rls`],
    ['several lines', 'one\ntwo', String.raw`one\ntwo`],
    ['writing turned round', 'txt.\u202eexe', String.raw`txt.\u202eexe`],
    ['invisible tags', 'a\u{e0041}b', String.raw`a\u{e0041}b`],
    ['half a surrogate pair', 'a\ud800b', String.raw`a\ud800b`],
  ])('%s: spelled out', (_, text, shown) => {
    expect(visible(text)).toBe(shown);
  });

  test('what is harmless stays as it is', () => {
    expect(visible('Žluťoučký kůň 👩‍👩‍👧 日本 ≤ ±')).toBe('Žluťoučký kůň 👩‍👩‍👧 日本 ≤ ±');
  });

  test('never holds a control character, whatever was said', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(visible(text)).not.toMatch(/[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u);
      }),
    );
  });

  test('lines stay lines where there is room for them', () => {
    expect(visibleLines(`a\r\n${ESC}b\nc\n`)).toEqual(['a', String.raw`\x1bb`, 'c']);
  });

  test('an argument is quoted as a shell wants it', () => {
    expect(['a/b-c.txt', 'two words', "it's", '', '$HOME'].map(quoted)).toEqual([
      'a/b-c.txt',
      "'two words'",
      String.raw`'it'\''s'`,
      "''",
      "'$HOME'",
    ]);
  });

  test('our own signs have a form in ASCII, and a file name keeps its letters', () => {
    expect(inAscii('✓ ↻ ✕ ⚑ → × ≤ café')).toBe('+ ~ x ! -> x <= café');
  });
});

describe('what a task printed, on a terminal', () => {
  const shown = (text: string, { isTTY = true, color = true } = {}) => {
    let written = '';
    const write = (chunk: string | Uint8Array) => {
      written += chunk;
    };
    const stdout = { isTTY, write };
    const { out } = new Terminal({ stdout, stderr: stdout, stdin: {}, env: {}, platform: 'linux' }, { color });
    out.printed(text);
    expect(out.atLineStart).toBe(text.endsWith('\n'));
    return written;
  };

  test.each([
    ['its lines and tabs stay', 'a\tb\r\n10 %\r20 %\n', 'a\tb\r\n10 %\r20 %\n'],
    ['a title is spelled out', `${ESC}]0;owned\u0007`, String.raw`\x1b]0;owned\x07`],
    ['what clears it and moves the cursor too', `${ESC}[2J${ESC}[H`, String.raw`\x1b[2J\x1b[H`],
    ['C1 controls too', '\u009b31m\u0090', String.raw`\x9b31m\x90`],
    ['writing turned round too', 'txt.\u202eexe\n', 'txt.\\u202eexe\n'],
    ['a backspace too', 'ab\b\u007f', String.raw`ab\x08\x7f`],
    ['what is only like a colour too', `${ESC}[>4;2m${ESC}[31${ESC}[38;5m`, String.raw`\x1b[>4;2m\x1b[31\x1b[38;5m`],
    ['hidden writing is shown', `${ESC}[8mx${ESC}[0;8m`, String.raw`\x1b[8mx\x1b[0;8m`],
    [
      'colours pass',
      `${ESC}[01;31mred${ESC}[0m ${ESC}[38;5;8mx${ESC}[m\n`,
      `${ESC}[01;31mred${ESC}[0m ${ESC}[38;5;8mx${ESC}[m\n`,
    ],
    ['no colour goes on after it', `${ESC}[38;2;1;2;3mred\n`, `${ESC}[38;2;1;2;3mred${ESC}[0m\n`],
  ])('%s', (_, text, expected) => {
    expect(shown(text)).toBe(expected);
  });

  test('has no colours where none are wanted', () => {
    expect(shown(`${ESC}[31mred${ESC}[0m\n`, { color: false })).toBe('red\n');
  });

  test('passes as it is where nobody looks at it', () => {
    const text = `${ESC}[2J\u009b\u202e\b\n`;
    expect(shown(text, { isTTY: false })).toBe(text);
  });
});

function charactersBetween(from = '', to = ''): string[] {
  const [first, last] = [from.charCodeAt(0), to.charCodeAt(0)];
  return Array.from({ length: last - first + 1 }, (_, i) => String.fromCharCode(first + i));
}

describe('widths', () => {
  test('wide characters and emoji take two columns, marks none', () => {
    expect(['abc', '日本', '👍', 'e\u0301', '⏸', '👩‍👩‍👧'].map(widthOf)).toEqual([3, 4, 2, 1, 1, 2]);
  });

  test('a cut text ends in an ellipsis and is never too wide', () => {
    expect([cut('abcdef', 4), cut('日本語', 4), cut('abc', 3), cut('abc', 0)]).toEqual(['abc…', '日…', 'abc', '']);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.integer({ min: 0, max: 30 }), (text, columns) => {
        expect(widthOf(cut(text, columns))).toBeLessThanOrEqual(columns);
      }),
    );
  });

  test('signs and Latin letters are counted without the segmenter as with it', () => {
    const ranges = [' ~', '¡¬', '®ʯ', '‐‧', '‰⁞', '←⯿'];
    const unit = fc.constantFrom(...ranges.flatMap(([from, to]) => charactersBetween(from, to)));
    fc.assert(fc.property(fc.string({ unit }), (text) => widthOf(`${text}日`) === widthOf(text) + 2));
  });

  test('padding counts columns', () => {
    expect(padded('日', 4)).toBe('日  ');
  });
});

describe('a table', () => {
  const columns: readonly Column[] = ['#', ['TASK', 6], ['ERROR', 6]];
  const rows = [
    [1, 'rsync -a ./out nas:/backup', 'no route to host'],
    [12, 'true', ''],
  ];
  const paint = (style: string, text: string) => `<${style} ${text}>`;

  test('is as wide as its cells', () => {
    expect(table(columns, rows, { columns: Number.POSITIVE_INFINITY, paint })).toEqual([
      '#   TASK                        ERROR',
      '1   rsync -a ./out nas:/backup  no route to host',
      '12  true',
    ]);
  });

  test('cuts the widest of the columns that may be cut', () => {
    const lines = table(columns, rows, { columns: 30, paint });
    expect(lines[1]).toBe('1   rsync -a ./…  no route to…');
    expect(Math.max(...lines.map(widthOf))).toBeLessThanOrEqual(30);
  });

  test('leaves out columns without text, and those that may be, rather than cut what must be read', () => {
    const [wide, narrow] = [100, 44].map((available) =>
      table(
        ['#', ['TASK', 6], ['SOURCE', 0, 12], 'NONE', ['ERROR', 10, 20]],
        [[1, 'order.push', 'http:api.example', '', 'getaddrinfo ENOTFOUND api.example.com, and more of it']],
        { columns: available, paint },
      ),
    );
    expect(wide).toEqual([
      '#  TASK        SOURCE            NONE  ERROR',
      '1  order.push  http:api.example        getaddrinfo ENOTFOUND api.example.com, and more of it',
    ]);
    expect(narrow).toEqual(['#  TASK        ERROR', '1  order.push  getaddrinfo ENOTFOUND api.ex…']);
  });

  test('paints a cell after it was measured', () => {
    const painted: readonly Cell[][] = [[{ text: '1', style: 'ok' }, 'a', 'b']];
    expect(table(columns, painted, { columns: 80, paint })[1]).toBe('<ok 1>  a     b');
  });
});
