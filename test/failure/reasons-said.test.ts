import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ENGINE_REASONS, familyOf, REASONS } from '../../src/failure/classify/reasons.ts';
import { isKind, isReason } from '../../src/failure/outcome.ts';
import { LOG_EVENTS } from '../../src/telemetry/log-lines.ts';
import { nodesIn, readModule, readSource } from '../architecture.ts';

const KNOWN = [...Object.keys(REASONS), ...Object.keys(ENGINE_REASONS)];
const FAMILIES = new Set(KNOWN.filter((reason) => reason.includes('.')).map(familyOf));

/** Strings that look like a reason but are something else. */
const OTHERS: readonly string[] = [
  ...LOG_EVENTS,
  'api.example.com',
  'data.error',
  'reasons',
  'unique.for',
  'unique.key',
  'unique.while',
  'worker.timeout',
];

/** Where a source file names a reason: in a member `reason`, as its default, or as a string with the name of a family. */
function reasonsIn(file: string, text: string): readonly string[] {
  return nodesIn(readModule(file, text).body).flatMap((node) => {
    if (node.type === 'Property' && isNamed(node.key, 'reason')) return literalsOf(node.value);
    return literalsOf(node).filter((said) => said.includes('.') && FAMILIES.has(familyOf(said)));
  });
}

function isNamed(key: unknown, name: string): boolean {
  return (key as { name?: string }).name === name;
}

/** The functions of PostgreSQL name reasons too. */
function readFunctions(): [file: string, text: string][] {
  const folder = 'src/store/postgres/functions';
  return readdirSync(folder).map((name) => [join(folder, name), readFileSync(join(folder, name), 'utf8')]);
}

function quotedIn(text: string): readonly string[] {
  const quoted = [...text.matchAll(/'([a-z_]+\.[a-z_]+)'/g)].map(([, said]) => said as string);
  return quoted.filter((said) => FAMILIES.has(familyOf(said)));
}

function literalsOf(value: unknown): readonly string[] {
  const node = value as { type: string; value?: unknown };
  if (node.type === 'Literal') return isReason(node.value) ? [node.value] : [];
  if (node.type !== 'TemplateElement') return [];
  return quotedIn((node.value as { raw: string }).raw);
}

test('every reason in the source is in a table of reasons', () => {
  // The configuration quotes reasons of applications, and commands have documents with names such as `db.prune`.
  const unknown = readSource()
    .filter(([file]) => !/^src\/(config|cli\/commands)\//.test(file))
    .flatMap(([file, text]) => reasonsIn(file, text).map((reason) => ({ file, reason })))
    // Columns in SQL have an alias of one letter.
    .filter(({ reason }) => !/^[a-z]\./.test(reason))
    .filter(({ reason }) => !KNOWN.includes(reason) && !OTHERS.includes(reason) && !isKind(reason));
  expect(unknown).toEqual([]);
  const inSql = readFunctions().flatMap(([file, text]) => quotedIn(text).map((reason) => ({ file, reason })));
  expect(inSql.map(({ reason }) => reason)).toContain('unique.superseded');
  expect(inSql.filter(({ reason }) => !KNOWN.includes(reason))).toEqual([]);
});

test('a reason that is in no table is found, with its place', () => {
  const said = (text: string) => reasonsIn('src/handlers/x.ts', text);
  expect(said(`throw new Failed('Gone.', { reason: 'own.gone' });`)).toContain('own.gone');
  expect(said(`const gone = failed('permanent', 'process.gone');`)).toContain('process.gone');
  expect(said("const sql = `UPDATE x SET reason = 'unique.gone'`;")).toContain('unique.gone');
});

test('every reason of the engine has a meaning, and a name that no failure has', () => {
  for (const [reason, { meaning }] of Object.entries(ENGINE_REASONS)) {
    expect(isReason(reason)).toBe(true);
    expect(Object.keys(REASONS)).not.toContain(reason);
    expect(meaning).toMatch(/^[A-Z].*\.$/);
  }
});
