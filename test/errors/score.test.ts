import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, test } from 'vitest';
import { classify } from '../../src/failure/classify/classify.ts';
import type { Failure, FailureKind } from '../../src/failure/outcome.ts';
import { rebuild } from './rebuild.mjs';

interface Label {
  readonly kind: FailureKind;
  readonly reason: string;
  readonly retryAfterMs?: number;
}

interface Case {
  readonly id: string;
  readonly now: number;
  readonly error: unknown;
  readonly expect: Label;
  readonly alt?: readonly Label[];
}

const CASES = readFileSync(new URL('cases.dev.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Case);

/** What a fair judge accepts. */
function accepted({ expect: label, alt = [] }: Case): readonly Label[] {
  return [label, ...alt];
}

describe('of the errors that were recorded from real libraries', () => {
  let results: readonly { readonly each: Case; readonly failure: Failure }[];
  beforeAll(() => {
    results = CASES.map((each) => ({ each, failure: classify(rebuild(each.error), { now: each.now }) }));
  });

  const missing = (holds: (each: Case, failure: Failure) => boolean) =>
    results
      .filter(({ each, failure }) => !holds(each, failure))
      .map(({ each, failure }) => `${each.id}: ${failure.kind} ${failure.reason}`);

  test('none that may pass is called permanent', () => {
    expect(
      missing((each, { kind }) => kind !== 'permanent' || accepted(each).some((label) => label.kind === kind)),
    ).toEqual([]);
  });

  test('at least 98 in 100 get a kind that a fair judge accepts', () => {
    const wrong = missing((each, { kind }) => accepted(each).some((label) => label.kind === kind));
    expect(wrong.length, wrong.join('\n')).toBeLessThanOrEqual(CASES.length * 0.02);
  });

  test('at least 96 in 100 get a reason that a fair judge accepts', () => {
    const widened = (reason: string) => reason.replace(/^http\.4(?!xx)\d\d$/, 'http.4xx');
    const wrong = missing((each, { reason }) =>
      accepted(each).some((label) => widened(label.reason) === widened(reason)),
    );
    expect(wrong.length, wrong.join('\n')).toBeLessThanOrEqual(CASES.length * 0.04);
  });

  test('all get the wait that they ask for, and none where none is asked for', () => {
    const near = (got?: number, wanted?: number) =>
      got === undefined || wanted === undefined
        ? got === wanted
        : Math.abs(got - wanted) <= Math.max(1_000, wanted / 100);
    expect(
      missing((each, { retryAfterMs }) => accepted(each).some((label) => near(retryAfterMs, label.retryAfterMs))),
    ).toEqual([]);
  });

  test('each stays what it is inside a wrapper that says nothing itself', () => {
    const changed = results.filter(({ each, failure }) => {
      const wrapped = classify(new Error('could not sync', { cause: rebuild(each.error) }), { now: each.now });
      const { kind, reason, ambiguous, retryAfterMs } = failure;
      const same =
        wrapped.kind === kind &&
        wrapped.reason === reason &&
        wrapped.ambiguous === ambiguous &&
        wrapped.retryAfterMs === retryAfterMs;
      return !same;
    });
    expect(changed.map(({ each }) => each.id)).toEqual([]);
  });

  test('those whose effect may have happened are ambiguous, and no others but some that only read', () => {
    const maybeDone = new Set(
      JSON.parse(readFileSync(new URL('maybe-done.json', import.meta.url), 'utf8')) as string[],
    );
    expect(missing((each, { ambiguous }) => ambiguous || !maybeDone.has(each.id))).toEqual([]);
    expect(missing((each, { ambiguous }) => !ambiguous || maybeDone.has(each.id))).toEqual([
      'fs-enomem: transient resource.memory',
      'dns-resolve-cancelled: transient abort',
      'zlib-bad-header: permanent data.parse',
      'crypto-bad-decrypt: permanent data.parse',
      'text-decoder: permanent data.parse',
    ]);
  });
});
