import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Packages whose types a user need not have: better-sqlite3 ships none, the others are optional. */
const UNNAMED = /\b(?:from|import|require)\s*\(?\s*(["'])(better-sqlite3|pg|@opentelemetry\/api)(\/[^"']*)?\1/;

test('our declarations name no type of a package that a user may lack', () => {
  const declarations = readdirSync('dist', { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.d.ts'),
  );
  expect(declarations).not.toEqual([]);

  const naming = declarations.filter((file) => UNNAMED.test(readFileSync(join('dist', file), 'utf8')));
  expect(naming).toEqual([]);
});
