import { expect, test } from 'vitest';
import { defineTask, openHoldfast } from '../../src/index.ts';
import { encodeJson } from '../../src/json.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { refused } from './refused.ts';

test('a small value that JSON would write endlessly is refused before it is walked to its end', () => {
  let value: unknown = 'x';
  for (let level = 0; level < 60; level++) value = [value, value];
  expect(() => encodeJson(value, 'payload')).toThrow(expect.objectContaining({ code: 'payload_too_large' }));
  expect(() => encodeJson(new Array(2_000_000).fill(null), 'payload')).toThrow(
    expect.objectContaining({ code: 'payload_too_large' }),
  );
});

test('needs are few, and named like everything else', async () => {
  const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`n${n}`, n]));
  for (const needs of [many, { 'a\u0000': 1 }, { gpu: 'x'.repeat(256) }]) {
    expect((await refused(() => defineTask('work', { needs, run() {} }))).code).toBe('invalid_input');
  }
});

test.each(['a\0b', ' ', ' tasks.db', 'tasks.db '])(
  'a path that the library would read differently is refused: %j',
  async (path) => {
    expect((await refused(() => openHoldfast({ store: sqlite(path) }))).code).toBe('invalid_input');
  },
);
