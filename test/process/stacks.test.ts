import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = fileURLToPath(new URL('stacks.mjs', import.meta.url));

// In a process of its own, because the test runner replaces how Node makes the text of stacks.
test('the text of a stack is the one that Node makes, wherever an error was thrown before', () => {
  const said = execFileSync(process.execPath, [PROGRAM], { encoding: 'utf8' })
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  const cases = said.filter(({ what }) => what !== undefined);
  expect(cases.flatMap(({ what, differs }) => differs.map((texts: unknown) => [what, texts]))).toEqual([]);
  expect(cases.length).toBeGreaterThan(12);
  expect(said).toContainEqual({ restored: true });
  expect(said).toContainEqual({ byAnother: ['same of another tool, true'] });
});
