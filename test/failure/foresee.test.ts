import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide } from '../../src/failure/decide.ts';
import { failureOf, foresee, scheduleOf } from '../../src/failure/foresee.ts';
import { definePolicy, type Policy } from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';
import { UNTRIED } from '../../src/failure/untried.ts';
import { outcomes, policies, rolls } from '../property/policies.ts';
import { fateOf, HOUR, MINUTE, SECOND } from './given.ts';

const failing = (name: string) => ({ kind: 'failure', failure: failureOf(name) }) as const;
const nominal = (policy: Policy, name: string) =>
  scheduleOf(policy, failing(name)).retries.map((retry) => retry.nominal);

describe('a forecast', () => {
  test('is the decision, with bounds that hold for every random number', () => {
    fc.assert(
      fc.property(policies, outcomes, rolls, (some, outcome, roll) => {
        // Near these two limits the random number decides whether a task ends; a forecast is without chance.
        const policy = definePolicy({ giveUpAfter: 'none', maxTotalDelay: 'none' }, some);
        const decision = decide(UNTRIED, outcome, policy, roll);
        const { decision: foreseen, delay } = foresee(UNTRIED, outcome, policy);
        expect([foreseen.next, foreseen.because.step]).toEqual([decision.next, decision.because.step]);
        expect(foreseen.because.policyVersion).toBe(policy.version);
        if (decision.next !== 'scheduled' || foreseen.next !== 'scheduled') return;
        expect(foreseen.charge).toEqual(decision.charge);
        expect(decision.after).toBeGreaterThanOrEqual(delay?.low as number);
        expect(decision.after).toBeLessThanOrEqual(delay?.high as number);
      }),
      { numRuns: 500 },
    );
  });

  test('does not depend on chance near the give-up time', () => {
    const policy = definePolicy({
      backoff: { kind: 'fixed', delay: HOUR },
      jitter: { kind: 'equal' },
      giveUpAfter: '1h',
    });
    expect(foresee(UNTRIED, failing('timeout'), policy)).toMatchObject({
      decision: { next: 'scheduled' },
      delay: { nominal: HOUR, low: HOUR / 2, high: HOUR },
    });
  });

  test('does not depend on chance near the longest wait in all', () => {
    const policy = definePolicy({
      backoff: { kind: 'fixed', delay: HOUR },
      jitter: { kind: 'proportional', factor: 0.1 },
      maxTotalDelay: '1h',
    });
    expect(decide(UNTRIED, failing('timeout'), policy, 0)).toMatchObject({ next: 'scheduled' });
    expect(decide(UNTRIED, failing('timeout'), policy, 0.9)).toMatchObject({ because: { step: 'max_total_delay' } });
    expect(foresee(UNTRIED, failing('timeout'), policy)).toMatchObject({
      decision: { next: 'scheduled' },
      delay: { nominal: HOUR, low: 54 * MINUTE, high: 66 * MINUTE },
    });
  });
});

describe('a schedule', () => {
  test('has the delays of the documents, and their ends', () => {
    expect(nominal(presets.analysis, 'unknown')).toEqual([300 * SECOND, 900 * SECOND, 3_600 * SECOND]);
    expect(nominal(presets.fileMove, 'fs.permission')).toEqual([MINUTE, 2 * MINUTE]);
    expect(nominal(presets.fileMove, 'fs.dest_exists')).toEqual([]);
    expect(nominal(presets.imapMailbox, 'transient')).toHaveLength(6);
    expect(scheduleOf(presets.fileMove, failing('fs.permission')).end).toMatchObject({ next: 'needs_manual' });
    expect(scheduleOf(presets.analysis, failing('unknown')).end).toMatchObject({ next: 'dead', because: { count: 4 } });
  });

  test('is what happens to a task that always fails like that, for every preset', () => {
    for (const preset of Object.values(presets)) {
      const still = definePolicy({ ...preset, jitter: { kind: 'none' } });
      const { delays, end } = fateOf(still, { reason: 'app.broke', kind: 'transient' }, 0);
      const { retries, end: last } = scheduleOf(preset, failing('transient'));
      expect([retries.map((retry) => retry.nominal), last?.next]).toEqual([delays, end]);
    }
  });

  test('adds up its delays, and stops at giveUpAfter', () => {
    const policy = definePolicy({
      maxAttempts: 9,
      backoff: { kind: 'fixed', delay: HOUR },
      jitter: { kind: 'none' },
      giveUpAfter: '3h',
    });
    const { retries, end } = scheduleOf(policy, failing('timeout'));
    expect(retries.map(({ cumulative }) => cumulative)).toEqual([HOUR, 2 * HOUR, 3 * HOUR]);
    expect(end).toMatchObject({ next: 'dead', because: { step: 'give_up_after' } });
  });

  test('of uncharged outcomes ends with the last deferral', () => {
    const { retries, end } = scheduleOf(presets.standard, failing('rate_limited'));
    expect(retries.every(({ charge }) => charge === 'deferrals')).toBe(true);
    expect(end).toMatchObject({ next: 'needs_manual' });
  });

  test('is cut off if the policy continues for very long', () => {
    const policy = definePolicy({ maxAttempts: 1_000_000, maxExecutions: 1_000_000, backoff: { kind: 'immediate' } });
    const { retries, end } = scheduleOf(policy, failing('timeout'));
    expect([retries.length, end]).toEqual([1_000, undefined]);
  });
});
