import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { decide, LEAST_DEFERRAL, STEPS } from '../../src/failure/decide.ts';
import { answerFor, definePolicy, type Policy } from '../../src/failure/policy.ts';
import { joinBecause, joinFailure, splitBecause, splitFailure } from '../../src/store/history-text.ts';
import { type Judged, judge, raised, stories, troubledStories } from './ledger.ts';
import { options, policies, rolls, usingEachDelay, withTimeForARetry } from './policies.ts';

/** Holds for every decision of every story under every policy. */
function always(promise: (judged: Judged, policy: Policy) => void): void {
  fc.assert(
    fc.property(policies, stories, (policy, story) => {
      for (const judged of judge(story, policy)) promise(judged, policy);
    }),
    { numRuns: 300 },
  );
}

describe('every decision', () => {
  test('is the same for the same arguments, and leaves them as they were', () => {
    fc.assert(
      fc.property(policies, stories, rolls, (policy, story, roll) => {
        for (const { facts, outcome } of judge(story, policy)) {
          const before = structuredClone([facts, outcome]);
          expect(decide(facts, outcome, policy, roll)).toEqual(decide(facts, outcome, policy, roll));
          expect([facts, outcome]).toEqual(before);
        }
      }),
    );
  });

  test('can be stored as JSON, says which policy made it, and why in a sentence', () => {
    always(({ decision }, policy) => {
      expect(JSON.parse(JSON.stringify(decision))).toEqual(decision);
      expect(decision.because.policyVersion).toBe(policy.version);
      expect(STEPS).toContain(decision.because.step);
      expect(decision.because.text).toMatch(/\.$/);
      expect(decision.because.text).not.toMatch(/NaN|undefined|Infinity/);
    });
  });

  test('is read as it was after it was stored in two parts, and its failure too', () => {
    always(({ decision, outcome }) => {
      const after = decision.next === 'scheduled' ? decision.after : null;
      const unreadable: string[] = [];
      expect(joinBecause(splitBecause(decision.because, after), after, unreadable)).toEqual(decision.because);
      if (outcome.kind === 'failure')
        expect(joinFailure(splitFailure(outcome.failure), unreadable)).toEqual(outcome.failure);
      expect(unreadable).toEqual([]);
    });
  });

  test('is read as it was, whatever was stored before it', () => {
    const other = {
      string: (one: string) => `${one}!`,
      number: (one: number) => one + 1,
      boolean: (one: boolean) => !one,
    };
    const changed = <Value extends object>(value: Value): readonly Value[] =>
      Object.entries(value).flatMap(([name, member]) => {
        if (typeof member === 'object' && !Array.isArray(member))
          return changed(member).map((each) => ({ ...value, [name]: each }));
        const change = other[typeof member as keyof typeof other] as ((one: unknown) => unknown) | undefined;
        return change ? [{ ...value, [name]: change(member) }] : [];
      });
    always(({ decision, outcome }) => {
      const after = decision.next === 'scheduled' ? decision.after : null;
      const unreadable: string[] = [];
      for (const because of [decision.because, ...changed(decision.because)]) {
        splitBecause(decision.because, after);
        expect(joinBecause(splitBecause(because, after), after, unreadable)).toEqual(because);
      }
      if (outcome.kind !== 'failure') return;
      for (const failure of [outcome.failure, ...changed(outcome.failure)]) {
        splitFailure(outcome.failure);
        expect(joinFailure(splitFailure(failure), unreadable)).toEqual(failure);
      }
    });
  });

  test('to go on has a whole delay of at least nothing', () => {
    always(({ decision }) => {
      if (decision.next !== 'scheduled') return;
      expect(Number.isSafeInteger(decision.after)).toBe(true);
      expect(decision.after).toBeGreaterThanOrEqual(0);
    });
  });

  test('to go on leaves the charged count below its limit', () => {
    always(({ facts, outcome, decision }, policy) => {
      if (decision.next !== 'scheduled' || decision.charge.to !== 'task' || outcome.kind !== 'failure') return;
      if (decision.verdict !== undefined) return;
      const { reason, kind } = outcome.failure;
      const mine = answerFor(policy, reason, kind);
      const together = raised(facts.charged, decision.charge)
        .filter((each) => answerFor(policy, each.reason, each.kind).limitedBy === mine.limitedBy)
        .reduce((sum, { count }) => sum + count, 0);
      expect(together).toBeLessThan(mine.maxAttempts);
      expect(decision.because).toMatchObject({ count: together, limit: mine.maxAttempts });
    });
  });

  test('to go on is never for a time at or after the deadline, nor later than giveUpAfter', () => {
    always(({ facts, decision }, policy) => {
      if (decision.next !== 'scheduled') return;
      if (facts.untilDeadlineMs !== undefined) expect(decision.after).toBeLessThan(facts.untilDeadlineMs);
      // A source that is down, or may be, holds the task for longer.
      if (decision.charge.to === 'source' || decision.verdict !== undefined) return;
      if (policy.giveUpAfter !== 'none' && (decision.charge.to === 'task' || facts.charged.length > 0)) {
        expect(facts.sinceFirstStartMs + decision.after).toBeLessThanOrEqual(policy.giveUpAfter);
      }
    });
  });

  test('to go on after a charged failure never makes the sum of waits longer than maxTotalDelay', () => {
    always(({ facts, decision }, policy) => {
      if (decision.next !== 'scheduled' || decision.charge.to !== 'task' || decision.verdict !== undefined) return;
      const waited = facts.charged.reduce((sum, { delayMs = 0 }) => sum + delayMs, decision.after);
      if (policy.maxTotalDelay !== 'none') expect(waited).toBeLessThanOrEqual(policy.maxTotalDelay);
    });
  });

  test('to go on waits at least as long as was asked for, and a deferral at least a second', () => {
    always(({ outcome, decision }, policy) => {
      // What waits for a verdict is not started then.
      if (decision.next !== 'scheduled' || decision.verdict !== undefined) return;
      const asked =
        (outcome.kind === 'failure' ? outcome.failure.retryAfterMs : outcome.kind === 'deferral' ? outcome.after : 0) ??
        0;
      // Where so much was asked for that the source needs a person, that person says when.
      const byPerson = decision.charge.to === 'source' && asked > policy.maxRetryAfter;
      if (!byPerson) expect(decision.after).toBeGreaterThanOrEqual(asked);
      if (decision.charge.to === 'deferrals') expect(decision.after).toBeGreaterThanOrEqual(LEAST_DEFERRAL);
    });
  });

  test('keeps deferrals in a row within their bounds', () => {
    always(({ facts, decision }, policy) => {
      if (decision.next !== 'scheduled' || decision.charge.to !== 'deferrals') return;
      expect(facts.deferralsInARow).toBeLessThan(policy.maxDeferrals);
      expect(facts.deferredForMs).toBeLessThanOrEqual(policy.maxDeferredFor);
    });
  });

  test('charges the task for failures alone, and nobody for an interruption', () => {
    always(({ outcome, decision }) => {
      if (!('charge' in decision)) return;
      if (decision.charge.to === 'task') expect(outcome.kind).toBe('failure');
      if (decision.charge.to === 'recoveries') expect(outcome.kind).toBe('loss');
      if (outcome.kind === 'interruption') expect(decision.charge.to).toBe('nobody');
    });
  });

  test('charges a lost lease only where its task was a suspect already and ran alone', () => {
    always(({ facts, outcome, decision }) => {
      if (!('charge' in decision) || outcome.kind !== 'loss') return;
      expect(decision.charge.to === 'recoveries').toBe(facts.lostInARow > 0 && outcome.how === 'alone');
    });
  });

  test('ends nothing as exhausted for which nobody was ever charged', () => {
    always(({ facts, outcome, decision }) => {
      if (!('charge' in decision) || facts.charged.length > 0 || decision.charge.to === 'task') return;
      expect(['max_attempts', 'give_up_after', 'max_total_delay']).not.toContain(decision.because.step);
      if (decision.charge.to === 'nobody' && outcome.kind !== 'failure') {
        expect(decision.next === 'dead' ? decision.because.step : 'deadline').toBe('deadline');
      }
    });
  });

  test('on a task that must not run twice never repeats what may have happened', () => {
    always(({ facts, outcome, decision }, policy) => {
      if (facts.idempotent || policy.retryAmbiguous) return;
      const perhapsDone =
        outcome.kind === 'loss' ||
        (outcome.kind === 'interruption' && outcome.started) ||
        (outcome.kind === 'failure' && outcome.failure.ambiguous);
      if (perhapsDone) expect(decision.next).not.toBe('scheduled');
    });
  });

  test('says how its delay was drawn: between the bounds, with a true density', () => {
    always(({ decision }) => {
      const { jitter } = decision.because;
      if (decision.next !== 'scheduled' || jitter === undefined) return;
      expect(decision.after).toBeGreaterThanOrEqual(jitter.low);
      expect(decision.after).toBeLessThanOrEqual(jitter.high);
      if (jitter.density !== undefined) expect(jitter.density * (jitter.high - jitter.low)).toBeCloseTo(1, 12);
      else expect(jitter.low).toBe(jitter.high);
    });
  });
});

describe('where the memory of its source is switched off', () => {
  test('a task is judged as if nothing were known of its source', () => {
    fc.assert(
      fc.property(policies, stories, rolls, (some, story, roll) => {
        const policy = definePolicy({ source: { gate: false, breaker: false, budget: false } }, some);
        for (const { facts, outcome } of judge(story, policy)) {
          const { source, ...unknown } = facts;
          // Where another type found out that it is down, the source pays.
          if (source && source.standing !== 'open') continue;
          expect(decide(facts, outcome, policy, roll)).toEqual(decide(unknown, outcome, policy, roll));
        }
      }),
    );
  });
});

describe('a source that is known to be down', () => {
  test('pays for its failures itself: no task is charged for them', () => {
    always(({ facts, outcome, decision }) => {
      if (outcome.kind !== 'failure' || outcome.failure.fault !== 'source') return;
      if (facts.source === undefined || facts.source.standing === 'open' || !('charge' in decision)) return;
      expect(decision.charge.to).not.toBe('task');
    });
  });
});

describe('every task', () => {
  test('ends or needs a person within maxExecutions, whatever happens to it', () => {
    fc.assert(
      fc.property(policies, fc.integer({ min: 1, max: 40 }), troubledStories, (some, maxExecutions, story) => {
        const policy = definePolicy({ maxExecutions }, some);
        const judged = judge(story, policy, maxExecutions + 1);
        expect(judged.at(-1)?.decision.next).not.toBe('scheduled');
        expect(judged.length).toBeLessThanOrEqual(maxExecutions);
      }),
      { numRuns: 300 },
    );
  });

  test('that is only interrupted goes on uncharged until maxExecutions', () => {
    fc.assert(
      fc.property(policies, (some) => {
        const policy = definePolicy(
          { backoff: { kind: 'immediate' }, rules: {}, giveUpAfter: 'none', maxTotalDelay: 'none', maxExecutions: 20 },
          { ...some, rules: {} },
        );
        const story = {
          given: { idempotent: true },
          executions: [{ took: 1, outcome: { kind: 'interruption', started: true, message: '' }, roll: 0 }],
        } as const;
        const judged = judge(story, policy);
        expect(judged.length).toBe(20);
        expect(judged.at(-1)?.facts.charged).toEqual([]);
      }),
    );
  });

  test('that kills its worker each time is executed five times at most within 72 h, and is charged no attempt', () => {
    fc.assert(
      fc.property(policies, (some) => {
        const policy = definePolicy(
          { backoff: { kind: 'immediate' }, giveUpAfter: 'none', maxTotalDelay: 'none', maxExecutions: 40 },
          { ...some, rules: {} },
        );
        const story = {
          given: { idempotent: true },
          executions: [{ took: 1, outcome: { kind: 'loss', worker: 'w', how: 'alone' }, roll: 0 }],
        } as const;
        const judged = judge(story, policy);
        expect(judged.map(({ decision }) => decision.because.step)).toEqual([
          ...new Array(4).fill('recovery'),
          'crash_loop',
        ]);
        expect(judged.at(-1)?.facts.charged).toEqual([]);
      }),
    );
  });
});

describe('the rules of a policy', () => {
  test('mean the same in whatever order they are written', () => {
    fc.assert(
      fc.property(options, stories, fc.nat(), (some, story, seed) => {
        const rules = Object.entries(some.rules ?? {});
        const turn = rules.length === 0 ? 0 : seed % rules.length;
        const turned = [...rules.slice(turn), ...rules.slice(0, turn)].reverse();
        const [one, other] = [definePolicy(some), definePolicy({ ...some, rules: Object.fromEntries(turned) })];
        expect(other.version).toBe(one.version);
        expect(judge(story, other)).toEqual(judge(story, one));
      }),
    );
  });

  test('that say nothing change nothing', () => {
    fc.assert(
      fc.property(options, stories, (some, story) => {
        const empty = { 'app.other': {}, 'net.*': {} };
        const without = judge(story, definePolicy({ ...some, rules: some.rules ?? {} }));
        const withEmpty = judge(story, definePolicy({ ...some, rules: { ...some.rules, ...empty } }));
        const decisions = (judged: Judged[]) =>
          judged.map(({ decision }) => ({ ...decision, because: { ...decision.because, policyVersion: '' } }));
        expect(decisions(withEmpty)).toEqual(decisions(without));
      }),
    );
  });
});

describe('the version of a policy', () => {
  test('changes when its content does, and only then', () => {
    fc.assert(
      fc.property(options, options, fc.boolean(), (a, b, twice) => {
        const [one, other] = [
          definePolicy(a),
          definePolicy(twice ? { ...a } : withTimeForARetry(usingEachDelay({ ...a, ...b }))),
        ];
        const content = ({ version: _, ...rest }: Policy) => rest;
        expect(one.version === other.version).toBe(isDeepStrictEqual(content(one), content(other)));
      }),
      { numRuns: 300 },
    );
  });

  test('survives a trip through JSON, where nothing is a function', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        fc.pre(!JSON.stringify(policy).includes('"custom"'));
        expect(definePolicy(JSON.parse(JSON.stringify(policy)))).toEqual(policy);
      }),
    );
  });
});

test('a policy laid over itself is itself', () => {
  fc.assert(
    fc.property(policies, (policy) => {
      expect(definePolicy(policy, policy)).toEqual(policy);
      expect(definePolicy({}, policy)).toEqual(policy);
    }),
  );
});
