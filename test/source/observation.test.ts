import { describe, expect, test } from 'vitest';
import type { Failure, Outcome } from '../../src/failure/outcome.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import { observationOf } from '../../src/source/observation.ts';
import { expired, failed, interrupted, later, lost } from '../failure/given.ts';

const policy = definePolicy({ maxRetryAfter: '1h', source: { budget: false } });
const about = { task: 7, execution: 2, startedAgo: 5, probe: true, drained: false };

function seenIn(outcome: Outcome) {
  return observationOf(outcome, policy, about);
}

function kindOf(failure: Partial<Failure>) {
  return seenIn(failed(failure))?.kind;
}

describe('what an outcome tells of its source', () => {
  test('is taken from who is at fault, and of what kind the failure is', () => {
    expect(seenIn({ kind: 'success' })?.kind).toBe('success');
    expect(kindOf({ fault: 'task' })).toBe('task_failure');
    expect(kindOf({ fault: 'task', kind: 'permanent' })).toBe('task_failure');
    expect(kindOf({ fault: 'source' })).toBe('source_failure');
    expect(kindOf({ fault: 'source', kind: 'unknown' })).toBe('source_failure');
    expect(kindOf({ fault: 'source', kind: 'permanent' })).toBe('permanent_source_failure');
    expect(kindOf({ fault: 'quota' })).toBe('rate_limited');
    expect(kindOf({ fault: 'source', kind: 'rate_limited' })).toBe('rate_limited');
  });

  test('is that no answer came where the task or a signal of its own ended it because it took too long', () => {
    for (const reason of ['timeout', 'abort']) {
      expect(kindOf({ reason, fault: 'task' })).toBe('no_answer');
      expect(kindOf({ reason, fault: 'source' })).toBe('source_failure');
    }
  });

  test('is nothing where the failure is unknown or the worker’s, or the handler spoke for itself', () => {
    expect(kindOf({ kind: 'unknown' })).toBe('inconclusive');
    expect(kindOf({ fault: 'worker' })).toBe('inconclusive');
    expect(kindOf({ word: 'needs_manual' })).toBe('inconclusive');
    expect(seenIn(later(5_000))?.kind).toBe('inconclusive');
  });

  test('is not asked of what was cut off, or was no execution', () => {
    for (const outcome of [interrupted(), lost, expired, { kind: 'verdict', reason: 'net.reset' } as const]) {
      expect(seenIn(outcome)).toBeUndefined();
    }
  });

  test('comes with what the source asked for, and what the policy says', () => {
    expect(seenIn(failed({ fault: 'source', retryAfterMs: 9, message: 'x'.repeat(300) }))).toEqual({
      ...about,
      kind: 'source_failure',
      reason: 'app.broke',
      message: `${'x'.repeat(199)}…`,
      retryAfter: 9,
      maxRetryAfter: 3_600_000,
      switches: { gate: true, breaker: true, budget: false },
    });
  });
});
