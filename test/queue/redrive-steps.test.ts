import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nextStep, type RedriveProgress, type RedriveStep, redriveTime, type StageCounts } from '../../src/redrive.ts';

const stage = (number: number, putBack: number, undecided = 0, failedAgain = 0): StageCounts => ({
  stage: number,
  putBack,
  undecided,
  failedAgain,
});

function progress(stages: readonly StageCounts[] = [], more: Partial<RedriveProgress> = {}): RedriveProgress {
  return {
    left: 1_000,
    undecided: stages.reduce((sum, each) => sum + each.undecided, 0),
    stages,
    nextIn: -60_000,
    ...more,
  };
}

describe('the stages', () => {
  test.each<[string, readonly StageCounts[], object]>([
    ['the first task', [], { do: 'put_back', stage: 1, count: 1 }],
    ['nothing while it is not known how that went', [stage(1, 1, 1)], { do: 'wait' }],
    ['some of five', [stage(1, 1)], { do: 'put_back', stage: 2, count: 3 }],
    ['the rest of five', [stage(1, 1), stage(2, 3, 3)], { do: 'put_back', stage: 2, count: 2 }],
    ['nothing while one of five is undecided', [stage(1, 1), stage(2, 5, 1)], { do: 'wait' }],
    ['some of 25', [stage(1, 1), stage(2, 5)], { do: 'put_back', stage: 3, count: 3 }],
    ['nothing while one of 25 is undecided', [stage(2, 5), stage(3, 25, 1)], { do: 'wait' }],
    ['the stage after the canary', [stage(2, 5), stage(3, 25)], { do: 'put_back', stage: 4, count: 3 }],
    ['the next stage while the one before is undecided', [stage(4, 50, 50)], { do: 'put_back', stage: 5, count: 3 }],
    ['nothing while two stages are undecided', [stage(4, 50, 50), stage(5, 50, 50)], { do: 'wait' }],
  ])('put back %s', (_, stages, step) => {
    expect(nextStep(progress(stages), 10)).toMatchObject(step);
  });

  test('are larger at a higher rate', () => {
    expect(nextStep(progress([stage(4, 50)]), 10)).toMatchObject({ stage: 5 });
    expect(nextStep(progress([stage(4, 50)]), 100)).toMatchObject({ stage: 4 });
  });
});

describe('the pace', () => {
  test('makes one wait for its time, and no shorter than is worth a step', () => {
    expect(nextStep(progress([stage(4, 3)], { nextIn: 90_000 }), 1 / 120)).toEqual({ do: 'wait', for: 90_000 });
    expect(nextStep(progress([stage(4, 3)], { nextIn: 1 }), 10)).toEqual({ do: 'wait', for: 250 });
  });

  test('puts back what fits since the last one, and says when the next one may come', () => {
    const step = (nextIn: number, perSecond: number) => nextStep(progress([stage(4, 3)], { nextIn }), perSecond);
    expect(step(0, 10)).toMatchObject({ stage: 4, count: 1, nextIn: 100, pause: 250 });
    expect(step(-150, 10)).toMatchObject({ stage: 4, count: 2, nextIn: 50 });
    expect(step(-60_000, 10)).toMatchObject({ stage: 4, count: 3, nextIn: 100 });
    expect(step(-60_000, 1 / 60)).toMatchObject({ count: 1, nextIn: 60_000, pause: 1_000 });
    expect(step(-60_000, 100_000)).toMatchObject({ count: 100, pause: 1 });
  });

  test('is never exceeded, however late the steps come', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 0.1, max: 400, noNaN: true }),
        fc.array(fc.integer({ min: 0, max: 5_000 }), { minLength: 1, maxLength: 60 }),
        (perSecond, pauses) => {
          let [now, nextAt, done] = [0, 0, 0];
          let number = 4;
          let inStage = 0;
          for (const pause of pauses) {
            now += pause;
            const step = nextStep(progress([stage(number, inStage)], { nextIn: nextAt - now }), perSecond);
            if (step.do !== 'put_back') continue;
            inStage = step.stage === number ? inStage + step.count : step.count;
            number = step.stage;
            done += step.count;
            nextAt = now + step.nextIn;
            expect(done).toBeLessThanOrEqual((now / 1_000) * perSecond + perSecond / 4 + 2);
          }
        },
      ),
    );
  });

  test('gives the least time that a redrive takes', () => {
    expect(redriveTime(0, 10)).toBe(0);
    expect(redriveTime(1, 10)).toBe(0);
    expect(redriveTime(601, 10)).toBe(60_000);
  });
});

describe('it stops itself', () => {
  test.each<[string, readonly StageCounts[], number]>([
    ['the only task of the first stage', [stage(1, 1, 0, 1)], 1],
    ['three of five, before the others are known', [stage(1, 1), stage(2, 5, 2, 3)], 3],
    ['13 of 25', [stage(3, 25, 12, 13)], 13],
    ['half of a larger stage, also where the next one has begun', [stage(4, 50, 25, 25), stage(5, 10, 10)], 25],
  ])('when these failed again: %s', (_, stages, failed) => {
    const step = nextStep(progress(stages), 10) as Extract<RedriveStep, { do: 'end' }>;
    expect(step).toMatchObject({ do: 'end', state: 'stopped' });
    expect(step.because).toMatch(failed === 1 ? /^The first task / : new RegExp(`^${failed} of \\d+ tasks `));
    expect(step.because).toMatch('failed again as before, so the 1000 that are left stay as they are.');
  });

  test.each<[string, readonly StageCounts[]]>([
    ['two of five', [stage(2, 5, 0, 2)]],
    ['12 of 25', [stage(3, 25, 0, 12)]],
    ['a few of a stage that is not full yet', [stage(4, 20, 0, 20)]],
  ])('and not when only these failed again: %s', (_, stages) => {
    expect(nextStep(progress(stages), 10).do).toBe('put_back');
  });

  test('and not when no task is left that it could spare', () => {
    const step = nextStep(progress([stage(1, 1, 0, 1)], { left: 0 }), 10);
    expect(step).toMatchObject({ do: 'end', state: 'done' });
  });
});

test('it is done when it is known how the last task went', () => {
  expect(nextStep(progress([stage(1, 1, 1)], { left: 0 }), 10).do).toBe('wait');
  expect(nextStep(progress([stage(1, 1)], { left: 0 }), 10)).toMatchObject({ do: 'end', state: 'done' });
  expect(nextStep(progress([], { left: 0 }), 10)).toMatchObject({ do: 'end', state: 'done' });
});
