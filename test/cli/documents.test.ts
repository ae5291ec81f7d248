import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FAILURE_VERBS } from '../../src/failure/groups.ts';
import { checkDocuments, DOCUMENTS, validatorOf } from '../process/documents.ts';

const ACTIONS = ['retry', 'cancel', 'hold', 'release'];

/** The names that are not written out where a document is made. */
const COMPOSED = [
  ...ACTIONS,
  ...[...ACTIONS, 'resolve'].map((verb) => `${verb}.filter`),
  ...['run', 'mv', 'http'],
  // The lines that a worker logs.
  'worker',
  ...FAILURE_VERBS.map((verb) => `failures.${verb}`),
  ...['pause', 'resume', 'cancel'].map((verb) => `redrives.${verb}`),
  ...['pause', 'resume'].map((verb) => `schedules.${verb}`),
  ...['hold', 'release', 'probe', 'limit'].map((verb) => `sources.${verb}`),
  ...['pause', 'resume', 'order', 'limit'].map((verb) => `queues.${verb}`),
];

test('every document of --json has a schema, and every schema a document', () => {
  const files = readdirSync('src/cli', { recursive: true, encoding: 'utf8' }).filter((path) => path.endsWith('.ts'));
  const written = files.flatMap((path) => {
    const code = readFileSync(join('src/cli', path), 'utf8');
    return [...code.matchAll(/(?:terminal\.answer|documentOf)\(\s*'([\w.]+)'/g)].map(([, name]) => name as string);
  });
  expect([...DOCUMENTS].sort()).toEqual([...new Set([...written, ...COMPOSED, 'problem'])].sort());
});

test.each([...DOCUMENTS])('the schema of %s is a sound one', (name) => {
  expect(validatorOf(name)).toBeTypeOf('function');
});

test('a document that does not fit its schema is told from one that does', () => {
  const waited = { schema: 'holdfast.wait/v1', exit: 0, items: [] };
  expect(() => checkDocuments(JSON.stringify(waited))).not.toThrow();
  expect(() => checkDocuments(JSON.stringify({ ...waited, more: 1 }))).not.toThrow();
  expect(() => checkDocuments(JSON.stringify({ ...waited, exit: '0' }))).toThrow('must be integer');
  expect(() => checkDocuments(JSON.stringify({ ...waited, items: undefined }))).toThrow("required property 'items'");
  expect(() => checkDocuments('{"schema":"holdfast.unknown/v1"}')).toThrow('schemas/documents/unknown.schema.json');
});
