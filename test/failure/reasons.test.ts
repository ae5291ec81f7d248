import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { reasonsPage } from '../../scripts/reasons-page.mjs';
import { describeBackoff } from '../../src/failure/backoff.ts';
import { FAMILIES } from '../../src/failure/classify/families/index.ts';
import { type Answer, meaningOf, type Table } from '../../src/failure/classify/meaning.ts';
import { ENGINE_REASONS, REASONS } from '../../src/failure/classify/reasons.ts';
import { FAILURE_KINDS, FAULTS, isReason } from '../../src/failure/outcome.ts';
import { answerFor, standard } from '../../src/failure/policy.ts';

test('docs/reference/reasons.md is up to date; if not: npm run classify:docs', () => {
  const page = reasonsPage({
    reasons: REASONS,
    engineReasons: ENGINE_REASONS,
    answer: (reason, kind) => answerFor(standard, reason, kind),
    backoff: describeBackoff,
  });
  expect(readFileSync(new URL('../../docs/reference/reasons.md', import.meta.url), 'utf8')).toBe(page);
});

test.each(Object.entries(REASONS))(
  '%s has a name that a rule can use, a kind, a fault and a meaning',
  (reason, info) => {
    expect(isReason(reason)).toBe(true);
    expect(FAILURE_KINDS).toContain(info.kind);
    expect(FAULTS).toContain(info.fault);
    expect(info.meaning).toMatch(/^[A-Z“].*\.$/);
  },
);

describe('whose fault it is', () => {
  test.each([
    ['source', ['net.refused', 'net.dns', 'http.5xx', 'grpc.unavailable', 'db.unavailable', 'smtp.4xx']],
    ['quota', ['http.429', 'throttled', 'quota.exhausted']],
    ['task', ['http.4xx', 'validation', 'not_found', 'code.bug', 'db.unique']],
    ['worker', ['resource.memory', 'fs.no_space', 'fs.too_many_files']],
  ] as const)('%s', (fault, reasons) => {
    for (const reason of reasons) expect(REASONS[reason].fault).toBe(fault);
  });
});

describe.each(FAMILIES.map((family) => [family.name, family] as const))('the tables of %s', (_, family) => {
  const tables: readonly (readonly [string, Table | undefined])[] = [
    ['vendorCodes', family.vendorCodes],
    ['vendorNames', family.vendorNames],
    ['bodyCodes', family.bodyCodes],
    ['codes', family.codes],
    ['vagueCodes', family.vagueCodes],
    ['names', family.names],
  ];
  test('give reasons that are in the table of reasons', () => {
    for (const [part, table] of tables) {
      for (const [code, answer] of Object.entries(table ?? {})) {
        const { reason, kind } = meaningOf(answer as Answer);
        expect(Object.keys(REASONS), `${part}.${code}`).toContain(reason);
        if (kind !== undefined) expect(FAILURE_KINDS, `${part}.${code}`).toContain(kind);
      }
    }
  });
});
