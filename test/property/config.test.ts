import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConfig, problemsOf } from '../../src/config/config.ts';
import { policyData, printPolicy } from '../../src/config/print.ts';
import { layersOf, policyFrom, UNSAID } from '../../src/failure/layers.ts';
import type { Policy } from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';
import { BROKEN_FILES } from '../config/broken-files.ts';
import { policies } from './policies.ts';

const BACKOFFS = {
  squares: (k: number) => k * k * 1_000,
  nonsense: () => Number.NaN,
  'for ever': () => Number.POSITIVE_INFINITY,
};
/** What rules may be called in the tests of policies, beside our own reasons. */
const REASONS = '[app.broke, constructor]';

function loaded(text: string): Policy {
  const config = parseConfig(text, { backoffs: BACKOFFS });
  return policyFrom(layersOf('t', { ...UNSAID, type: config.policies.get('t') ?? [] }));
}

/** Nonsense is refused, and these policies are made without sense. */
function isSane(text: string): boolean {
  return problemsOf(text, { backoffs: BACKOFFS }).every(({ severity }) => severity === 'warning');
}

describe('a policy that was printed', () => {
  test('is read as the same policy', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const text = `reasons: ${REASONS}\npolicies:\n  t:\n${printPolicy(policy).replaceAll(/^/gm, '    ')}`;
        fc.pre(isSane(text));
        expect(loaded(text).version).toBe(policy.version);
      }),
    );
  });

  test('is the same in JSON', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        const text = JSON.stringify({ reasons: ['app.broke', 'constructor'], policies: { t: policyData(policy) } });
        fc.pre(isSane(text));
        expect(loaded(text).version).toBe(policy.version);
      }),
    );
  });

  test('is each preset', () => {
    for (const policy of Object.values(presets)) {
      expect(loaded(`policies:\n  t:\n${printPolicy(policy).replaceAll(/^/gm, '    ')}`).version).toBe(policy.version);
    }
  });
});

/** Problems must be told of things that are there. */
function expectProblems(text: string): void {
  const problems = problemsOf(text);
  const lines = text.split('\n').length;
  for (const { line, column, message } of problems) {
    expect(line).toBeGreaterThanOrEqual(1);
    expect(line).toBeLessThanOrEqual(lines);
    expect(column).toBeGreaterThanOrEqual(1);
    expect(message).not.toBe('');
  }
}

describe('no text crashes or hangs the loader', () => {
  test('that is anything', () => {
    fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 400 }), expectProblems));
  });

  test('that is made of what YAML is made of', () => {
    const parts = [
      '- ',
      ': ',
      '? ',
      '[',
      ']',
      '{',
      '}',
      ',',
      '&a ',
      '*a',
      '!t ',
      '|\n',
      '>\n',
      '"',
      "'",
      '#',
      '\n',
      '\n  ',
      '\t',
      '%',
      '---\n',
      '...\n',
      '<<',
      'types',
      'retry',
      'a',
      '1',
      '~',
      '\\',
      '\r',
      '\u0000',
      '\ufeff',
      '__proto__',
    ];
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom(...parts), { maxLength: 120 }).map((each) => each.join('')),
        expectProblems,
      ),
    );
  });

  test('that is a broken file with some of it gone, doubled or moved', () => {
    const files = fc.constantFrom(...Object.values(BROKEN_FILES).map(({ text }) => text.slice(0, 2_000)));
    const edits = fc.array(fc.tuple(fc.nat(2_000), fc.nat(40), fc.nat(2_000)), { maxLength: 4 });
    const edited = fc
      .tuple(files, edits)
      .map(([text, each]) =>
        each.reduce(
          (now, [from, length, to]) => now.slice(0, to) + now.slice(from, from + length) + now.slice(to + (length % 7)),
          text,
        ),
      );
    fc.assert(fc.property(edited, expectProblems));
  });

  test.each([
    ['policies in a row', (i: number) => `  p${i}: { extends: p${i + 1} }`, 'policies:', 3_500],
    ['policies that are not there', (i: number) => `  p${i}: { extends: q${i} }`, 'policies:', 3_500],
    [
      'rules of reasons of its own',
      (i: number) => `      own${i}.reason${i}: {}`,
      'types:\n  a:\n    retry:\n     rules:',
      7_000,
    ],
    [
      'rules about errors',
      (i: number) => `  - { when: { status: 503, code: E${i} }, reason: a.b }`,
      'classify:',
      3_000,
    ],
    ['unknown names', (i: number) => `unknown${i}: 1`, 'version: 1', 8_000],
    [
      'attempts without end',
      (i: number) => `  t${i}: { retry: { maxAttempts: 900000000, giveUpAfter: 9w } }`,
      'types:',
      3_000,
    ],
  ])(
    'that has thousands of %s',
    (_, line, head, count) => {
      expectProblems([head, ...Array.from({ length: count }, (_, i) => line(i))].join('\n'));
    },
    30_000,
  );

  test('that is long and repeats itself', () => {
    const pieces = [
      'a: ',
      'a: 1\n',
      '- ',
      '[',
      '{a: ',
      '"',
      '&a ',
      '*a ',
      '!a ',
      '? ',
      '%a\n',
      '---\n',
      '#\n',
      ' ',
      '\n',
      'k,',
      '|\n',
      ': ',
    ];
    for (const piece of pieces) expectProblems(piece.repeat(Math.floor(200_000 / piece.length)));
  }, 60_000);
});
