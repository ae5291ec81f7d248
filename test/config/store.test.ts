import { expect, test } from 'vitest';
import { problemsOf } from '../../src/config/config.ts';
import { storeNamedIn } from '../../src/config/store.ts';

const named = (text: string) => storeNamedIn(text, 'holdfast.yaml');

test.each([
  ['store: ./tasks.db', './tasks.db'],
  ['{"store": "postgres://eva@db/app"}', 'postgres://eva@db/app'],
  ['version: 1', undefined],
  ['types: { store: { retry: standard } }', undefined],
  // What is wrong elsewhere leads nobody to another store.
  ['store: a.db\ntypes: { a: { rety: {} } }', 'a.db'],
  ['types: [', undefined],
])('%s names the store %s', (text, store) => {
  expect(named(text)).toBe(store);
});

test.each([
  ['store: 5', 'It must be a text'],
  ["store: ''", 'A store is empty.'],
  ["store: ':memory:'", 'A store :memory: would be forgotten'],
  ['store: mysql://eva:secret@host/db', 'A store cannot be mysql://…'],
  ['store: "postgres://eva:se#cret@host/db"', 'A store is no URL of PostgreSQL.'],
])('%s is refused, and not repeated', (text, message) => {
  expect(() => named(text)).toThrow(message);
  expect(() => named(text)).not.toThrow('secret');
  expect(problemsOf(text)).toMatchObject([{ severity: 'error', path: 'store', value: '' }]);
});

test('a file that cannot be read, and names a store, is refused: nobody can tell which', () => {
  expect(() => named('store: a.db\ntypes: [')).toThrow();
});
