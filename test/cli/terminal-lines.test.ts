import { describe, expect, test } from 'vitest';
import { KeyReader } from '../../src/cli/terminal/keys.ts';
import { widthOf, wrapped } from '../../src/cli/terminal/width.ts';

/** The keys that a terminal sends in these parts. */
function keysIn(...parts: readonly string[]) {
  const reader = new KeyReader();
  return parts.flatMap((part) => reader.read(Buffer.from(part)));
}

describe('KeyReader', () => {
  test('names keys, and keeps the others as they were typed', () => {
    expect(keysIn('j\u001b[A\u001bOBé\r\u001b\u0003\u001a')).toEqual([
      { typed: 'j' },
      { name: 'up' },
      { name: 'down' },
      { typed: 'é' },
      { name: 'enter' },
      { name: 'escape' },
      { name: 'interrupt' },
      { name: 'suspend' },
    ]);
  });

  test('takes a pasted text as one key, so that it gives no commands', () => {
    expect(keysIn('\u001b[200~r\ny\u001b[201~q')).toEqual([{ pasted: 'r\ny' }, { typed: 'q' }]);
  });

  test('takes a pasted text as one key also if it comes in parts, of which none is a command', () => {
    const reader = new KeyReader();
    expect(reader.read(Buffer.from('\u001b[200~r\ny'))).toEqual([]);
    expect(reader.read(Buffer.from('q\u001b[20'))).toEqual([]);
    expect(reader.read(Buffer.from('1~j'))).toEqual([{ pasted: 'r\nyq' }, { typed: 'j' }]);
  });

  test('hears Ctrl-C in a pasted text that never ends', () => {
    expect(keysIn('\u001b[200~never', '\u0003', 'q')).toEqual([{ name: 'interrupt' }, { typed: 'q' }]);
  });

  test('puts together a sequence and a character that come in parts', () => {
    expect(keysIn('\u001b[', 'B\u001b[6', '~')).toEqual([{ name: 'down' }, { name: 'page_down' }]);
    const reader = new KeyReader();
    expect([0xc3, 0xa9].flatMap((byte) => reader.read(Uint8Array.of(byte)))).toEqual([{ typed: 'é' }]);
  });

  test('leaves out sequences and control characters that mean nothing here', () => {
    expect(keysIn('\u001b[1;5C\u001b[15~\u0001x')).toEqual([{ typed: 'x' }]);
  });
});

describe('wrapped', () => {
  test('leaves a line as it is that fits', () => {
    expect(wrapped('\u001b[31mred\u001b[0m', 3)).toEqual(['\u001b[31mred\u001b[0m']);
  });

  test('breaks at spaces, goes on in the colour, and is never wider', () => {
    expect(wrapped('  why  \u001b[31mthe connection was refused\u001b[0m', 20)).toEqual([
      '  why  \u001b[31mthe\u001b[0m',
      '    \u001b[31mconnection was\u001b[0m',
      '    \u001b[31mrefused\u001b[0m',
    ]);
  });

  test('breaks a long word, and counts wide characters', () => {
    for (const line of wrapped('日本語'.repeat(20), 15)) expect(widthOf(line)).toBeLessThanOrEqual(15);
    expect(wrapped('x'.repeat(25), 10)).toEqual(['xxxxxxxxxx', '  xxxxxxxx', '  xxxxxxx']);
  });
});
