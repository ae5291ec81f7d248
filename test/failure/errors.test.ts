import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { errorsPage } from '../../scripts/errors-page.mjs';
import { ERRORS } from '../../src/error-codes.ts';

test('docs/reference/errors.md has every code with its cause and next step; if not: npm run classify:docs', () => {
  expect(readFileSync(new URL('../../docs/reference/errors.md', import.meta.url), 'utf8')).toBe(errorsPage(ERRORS));
});
