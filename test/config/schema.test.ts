import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { withOptionsTable } from '../../scripts/options-table.mjs';
import { problemsOf } from '../../src/config/config.ts';
import { optionData } from '../../src/config/print.ts';
import { jsonSchema } from '../../src/config/schema.ts';
import { POLICY_FIELDS, RULE_FIELDS } from '../../src/failure/policy-fields.ts';
import { BROKEN_FILES } from './broken-files.ts';

const read = (path: string) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');

const schema = JSON.parse(read('schemas/holdfast.schema.json'));
const validator = z.fromJSONSchema(schema);

/** Markdown without the spaces and dashes by which Biome aligns a table. */
function unaligned(page: string): string {
  return page.replaceAll(/ +\|/g, ' |').replaceAll(/-{3,}/g, '---');
}

/** The files that the documentation shows. */
// Examples for `policies test` are files of another kind.
const shown = [...read('docs/guides/policies.md').matchAll(/^```yaml\n(.*?)^```/gms)]
  .map(([, text]) => text as string)
  .filter((text) => !/^tests:/m.test(text));

describe('the JSON Schema that is shipped', () => {
  test('is made from what reads the file: npm run schema', () => {
    expect(schema).toEqual(JSON.parse(JSON.stringify(jsonSchema())));
  });

  test('says of options what docs/guides/policies.md says: npm run schema', () => {
    const page = read('docs/guides/policies.md');
    const made = withOptionsTable(page, { policy: POLICY_FIELDS, rule: RULE_FIELDS, data: optionData });
    expect(made).toContain('| `maxAttempts` |');
    expect(unaligned(page)).toEqual(unaligned(made));
  });

  test('says of options what editors show in code', () => {
    const table = read('src/failure/policy-fields.ts');
    for (const [name, { says }] of Object.entries({ ...POLICY_FIELDS, ...RULE_FIELDS })) {
      const comment = new RegExp(`/\\*\\* (.*) \\*/\\n  ${name}[,:]`, 'g');
      const comments = [...table.matchAll(comment)].map(([, text]) => text);
      expect(comments.length, name).toBeGreaterThan(0);
      for (const text of comments) expect(text).toContain(says);
    }
  });

  test('describes every member', () => {
    const missing: string[] = [];
    const look = (node: unknown, path: string): void => {
      if (typeof node !== 'object' || node === null) return;
      for (const [name, value] of Object.entries((node as { properties?: object }).properties ?? {})) {
        if (typeof value.description !== 'string') missing.push(`${path}/${name}`);
      }
      for (const [name, value] of Object.entries(node)) look(value, `${path}/${name}`);
    };
    look(schema, '');
    expect(missing).toEqual([]);
  });

  test('takes each of its own examples, and so does the loader', () => {
    const examples = Object.entries(schema.properties as Record<string, { examples?: unknown[] }>).flatMap(
      ([name, { examples = [] }]) => examples.map((example) => ({ [name]: example })),
    );
    const { retry, backoff } = schema.definitions;
    const ofPolicies = Object.entries(
      retry.anyOf[0].properties as Record<string, { examples?: unknown[]; default?: unknown }>,
    ).flatMap(([name, { examples = [], default: byDefault }]) =>
      [...examples, ...(byDefault === undefined ? [] : [byDefault])].map((value) => ({
        policies: { p: { [name]: value } },
      })),
    );
    expect(backoff.anyOf.length).toBeGreaterThan(5);
    expect(examples.length + ofPolicies.length).toBeGreaterThan(20);
    for (const example of [...examples, ...ofPolicies]) {
      expect(validator.safeParse(example).error, JSON.stringify(example)).toBeUndefined();
      expect(problemsOf(JSON.stringify(example)).filter(({ severity }) => severity === 'error')).toEqual([]);
    }
  });

  test('takes what the documentation shows, and the loader finds nothing to say about it', () => {
    expect(shown.length).toBeGreaterThan(4);
    for (const text of shown) {
      expect(validator.safeParse(parse(text)).error, text).toBeUndefined();
      expect(problemsOf(text), text).toEqual([]);
    }
  });

  test.each([
    'an unknown section',
    'an option in another spelling',
    'a text for a number',
    'no attempt at all',
    'a duration without a unit',
    'a duration in words',
    'an end that there is not',
    'a backoff of another kind',
    'two backoffs',
    'a jitter beyond all',
    'a status that is none',
    'an order that there is not',
    'a connector with too many attempts',
  ])('marks %s in an editor', (name) => {
    expect(validator.safeParse(parse(BROKEN_FILES[name]?.text ?? '')).success).toBe(false);
  });
});
