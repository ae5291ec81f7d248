import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { parseConfig, problemsOf } from '../../src/config/config.ts';
import { at, type Block, blocksOf } from '../docs/blocks.ts';

/** Files of YAML that are no configuration, by a key that they all have, and the test that reads them. */
const OTHERS: Readonly<Record<string, string>> = {
  tests: 'test/docs/policies.test.ts', // examples of policies
  format: 'test/docs/importing.test.ts', // how to read an old queue
  moves: 'examples/tidy/test/', // the plan of an example
};

function isConfiguration({ code }: Block): boolean {
  const document: unknown = parse(code);
  return !Array.isArray(document) && !Object.keys(OTHERS).some((key) => key in (document as object));
}

test('each configuration that a page shows is accepted, without a warning', () => {
  const configurations = blocksOf('yaml').filter(isConfiguration);
  expect(configurations.length).toBeGreaterThan(12);
  const problems = configurations.flatMap((block) =>
    problemsOf(block.code).map(({ line, message }) => `${at(block)}, line ${line}: ${message}`),
  );
  expect(problems).toEqual([]);
});

test('each block of JSON in a page is JSON', () => {
  const blocks = blocksOf('json');
  expect(blocks.length).toBeGreaterThan(2);
  for (const block of blocks) expect(() => JSON.parse(block.code.replace(/^\/\/.*\n/, '')), at(block)).not.toThrow();
});

test('the errors that the page of policies shows are those of such a file', () => {
  const file = `types:
  sync:
    retry:
      maxAttempts: 3
      backoff: { schedule: [5m, 15m, 1h] }
queues:
  slow:
    retry:
      backoff: { linear: { step: 1h, cap: 30m } }
defaults:
  retry:
    maxAttempts: 9
    rules:
      fs.lokced: { maxAttempts: 3 }
`;
  const shown = blocksOf('text')
    .find(({ code }) => code.includes('is refused'))
    ?.code.trim();
  expect(() => parseConfig(file)).toThrow(shown);
});
