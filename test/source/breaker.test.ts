import { describe, expect, test } from 'vitest';
import { DAY, down, HOUR, MINUTE, ramping, SECOND, Told } from './given.ts';

describe('a source counts as down', () => {
  test('after two failures of different tasks, one after the other, with no success between', () => {
    const source = new Told();
    expect(source.after(0, 'source_failure', { task: 1 }).source.standing).toBe('open');
    const second = source.after(SECOND, 'source_failure', { task: 2 });
    expect(second.source).toEqual({ standing: 'down', shutFor: 5 * SECOND });
    expect(second.change?.restriction).toEqual({ cause: 'breaker', probing: true, shutFor: 5 * SECOND });
  });

  test('not by one task, however often it fails', () => {
    const source = new Told();
    for (let execution = 1; execution < 50; execution++) source.after(MINUTE, 'source_failure', { execution });
    expect(source.phase).toBe('closed');
  });

  test('not by failures whose executions overlapped: they are one event', () => {
    const source = new Told();
    for (let task = 1; task <= 20; task++) {
      source.after(task * 10, 'source_failure', { task, startedAgo: 30 * SECOND });
    }
    expect(source.phase).toBe('closed');
    source.after(SECOND, 'source_failure', { task: 21, startedAgo: SECOND / 2 });
    expect(source.phase).toBe('probing');
  });

  test('not where a success, a failure at the task’s fault or a rate limit came between', () => {
    for (const between of ['success', 'task_failure', 'rate_limited'] as const) {
      const source = new Told();
      source.after(0, 'source_failure', { task: 1 });
      source.after(SECOND, between, { task: 2 });
      source.after(SECOND, 'source_failure', { task: 3 });
      expect(source.phase, between).toBe('closed');
    }
  });

  test('also where what came between tells nothing of the source', () => {
    const source = new Told();
    source.after(0, 'source_failure', { task: 1 });
    source.after(SECOND, 'inconclusive', { task: 2 });
    source.after(SECOND, 'no_answer', { task: 2 });
    source.after(SECOND, 'source_failure', { task: 3 });
    expect(source.phase).toBe('probing');
  });

  test('not if the failure before was longer ago than an hour', () => {
    const source = new Told();
    source.after(0, 'source_failure', { task: 1 });
    source.after(HOUR + 1, 'source_failure', { task: 2 });
    expect(source.phase).toBe('closed');
  });

  test('never by failures at the task’s fault or by rate limits', () => {
    const source = new Told();
    for (let task = 1; task <= 100; task++) {
      source.after(SECOND, task % 2 === 0 ? 'task_failure' : 'rate_limited', { task });
    }
    expect(source.memory).toBeUndefined();
  });

  /** Failures of tasks, each so long after the one before, until it counts as down. Answers how many it took. */
  function failuresUntilDown(source: Told, apart: number): number {
    let failures = 0;
    while (source.phase === 'closed') source.after(apart, 'source_failure', { task: failures++ });
    return failures;
  }

  function backAfter(source: Told, failedProbes: number): void {
    for (let probe = 0; probe < failedProbes; probe++) source.after(10 * SECOND, 'source_failure', { probe: true });
    source.after(10 * SECOND, 'success', { probe: true });
    source.after(0, 'success', { probe: true, drained: true });
  }

  test('after up to 8 failures in a row where its first probe was answered before, as if it fails for a part of its calls', () => {
    const source = new Told();
    const needed = [1, 2, 3, 4].map(() => {
      const failures = failuresUntilDown(source, SECOND / 2);
      backAfter(source, 0);
      return failures;
    });
    expect(needed).toEqual([2, 4, 8, 8]);
    source.after(10 * MINUTE, 'success');
    expect(failuresUntilDown(source, SECOND)).toBe(2);
  });

  test('after 5 s of failures in any case', () => {
    const source = new Told();
    for (const failures of [2, 3, 3]) {
      expect(failuresUntilDown(source, 3 * SECOND)).toBe(failures);
      backAfter(source, 0);
    }
  });

  test('after two failures again where it was really down: several probes had failed', () => {
    const source = new Told();
    for (const failedProbes of [2, 0, 1, 2, 2]) {
      failuresUntilDown(source, SECOND / 2);
      backAfter(source, failedProbes);
    }
    expect(source.memory).toBeUndefined();
    expect(failuresUntilDown(source, SECOND / 2)).toBe(2);
  });

  test('not where its tasks switched the breaker off', () => {
    const source = new Told();
    const switches = { gate: true, breaker: false, budget: true };
    for (let task = 1; task <= 10; task++) source.after(SECOND, 'source_failure', { task, switches });
    expect(source.memory).toBeUndefined();
  });
});

describe('when a source turns out to be down', () => {
  test('what was charged for it before is refunded, and the failure that shows it is not charged', () => {
    const source = new Told();
    source.after(0, 'source_failure', { task: 1, execution: 3 });
    source.after(0, 'source_failure', { task: 2, execution: 1 });
    const opening = source.after(SECOND, 'source_failure', { task: 3, execution: 1 });
    expect(opening.change?.refunds).toEqual([
      { task: 1, execution: 3 },
      { task: 2, execution: 1 },
    ]);
    expect(source.after(5 * SECOND, 'source_failure', { task: 4, probe: true }).change?.refunds).toEqual([]);
  });

  test('what was charged before a success stays charged', () => {
    const source = new Told();
    source.after(0, 'source_failure', { task: 1 });
    source.after(SECOND, 'success', { task: 2 });
    source.after(SECOND, 'source_failure', { task: 3 });
    expect(source.after(SECOND, 'source_failure', { task: 4 }).change?.refunds).toEqual([{ task: 3, execution: 1 }]);
  });

  test('what had started before and fails now changes nothing more', () => {
    const source = down();
    const late = source.after(SECOND, 'source_failure', { task: 9, startedAgo: MINUTE });
    expect(late.change).toBeUndefined();
    expect(late.source).toEqual({ standing: 'down', shutFor: 4 * SECOND });
  });

  test('what had started before and is answered now makes the next probe start at once', () => {
    const source = down();
    const late = source.after(SECOND, 'success', { task: 9, startedAgo: MINUTE });
    expect(late.change?.restriction).toEqual({ cause: 'breaker', probing: true });
  });
});

describe('a probe', () => {
  test('that fails makes the next one wait: 5 s, growing by a tenth up to a minute', () => {
    const source = down();
    const waits = Array.from({ length: 40 }, (_, task) => {
      source.after(source.probing.shutFor, 'source_failure', { task, probe: true });
      return source.probing.shutFor;
    });
    expect(waits.slice(0, 4)).toEqual([5_500, 6_050, 6_655, 7_321]);
    expect(waits.slice(24, 28)).toEqual([54_174, 59_591, 60_000, 60_000]);
  });

  test('waits up to a fifth more or less, by chance', () => {
    for (const [roll, wait] of [
      [0, 4_400],
      [1, 6_600],
    ] as const) {
      const source = down();
      source.after(5 * SECOND, 'source_failure', { probe: true }, roll);
      expect(source.probing.shutFor).toBe(wait);
    }
  });

  test('waits at least as long as the source asked for', () => {
    const source = down();
    source.after(5 * SECOND, 'source_failure', { probe: true, retryAfter: 10 * MINUTE });
    expect(source.probing.shutFor).toBe(10 * MINUTE);
  });

  test('that is answered is followed by the next one at once, and after two the work is released slowly', () => {
    const source = down();
    const first = source.after(5 * SECOND, 'success', { probe: true, task: 3 });
    expect(first.change?.restriction).toEqual({ cause: 'breaker', probing: true });
    const second = source.after(0, 'success', { probe: true, task: 4 });
    expect(second.change?.restriction).toEqual({
      cause: 'breaker',
      ramping: true,
      pace: { perSecond: 1, burst: 1 },
    });
  });

  test('counts as answered where it fails at the fault of its task', () => {
    const source = down();
    source.after(5 * SECOND, 'task_failure', { probe: true, task: 3 });
    source.after(0, 'task_failure', { probe: true, task: 4 });
    expect(source.phase).toBe('ramping');
  });

  test('that fails after one that was answered begins anew', () => {
    const source = down();
    source.after(5 * SECOND, 'success', { probe: true });
    source.after(0, 'source_failure', { probe: true });
    source.after(MINUTE, 'success', { probe: true });
    expect(source.phase).toBe('probing');
  });

  test('that gets no answer in time has failed', () => {
    const source = down();
    source.after(5 * SECOND, 'success', { probe: true });
    source.after(0, 'no_answer', { probe: true, startedAgo: MINUTE });
    expect(source.probing).toMatchObject({ failedProbes: 1, answeredProbes: 0, shutFor: 5_500 });
  });

  test('that tells nothing is followed by another after the same wait', () => {
    const source = down();
    source.after(5 * SECOND, 'inconclusive', { probe: true });
    expect(source.probing).toMatchObject({ shutFor: 5 * SECOND, failedProbes: 0 });
  });

  test('that meets a rate limit shows that the source works', () => {
    const source = down();
    source.after(5 * SECOND, 'rate_limited', { probe: true, retryAfter: 30 * SECOND });
    expect(source.last?.change?.restriction).toMatchObject({
      cause: 'rate_limit',
      shutFor: 30 * SECOND,
      ramping: true,
    });
  });

  test('closes the breaker where nothing else waits', () => {
    const source = down();
    source.after(5 * SECOND, 'success', { probe: true });
    const second = source.after(HOUR, 'success', { probe: true, drained: true });
    expect(second.change).toEqual({ tokens: 0.1, refunds: [] });
  });

  test('of a task that switched the breaker off counts as any other', () => {
    const source = down();
    const switches = { gate: false, breaker: false, budget: false };
    source.after(5 * SECOND, 'source_failure', { probe: true, switches });
    expect(source.probing.failedProbes).toBe(1);
  });

  test('that fails after seven days of waiting leaves the source to a person', () => {
    const source = down();
    let waited = 0;
    while (source.phase === 'probing') {
      const { shutFor } = source.probing;
      waited += shutFor;
      source.after(shutFor, 'source_failure', { probe: true });
    }
    expect(source.phase).toBe('needs_person');
    expect(waited).toBeGreaterThan(7 * DAY - 2 * MINUTE);
    expect(waited).toBeLessThanOrEqual(7 * DAY);
  });
});

describe('while work is released slowly', () => {
  test('two failures of different tasks open the breaker again, and each answer had halved the spacing of its probes', () => {
    const source = down();
    for (let probe = 0; probe < 5; probe++) source.after(10 * SECOND, 'source_failure', { probe: true });
    source.after(50 * SECOND, 'success', { probe: true });
    source.after(0, 'success', { probe: true });
    source.after(SECOND, 'source_failure', { task: 7 });
    const again = source.after(SECOND, 'source_failure', { task: 8 });
    expect(again.change?.refunds).toEqual([{ task: 7, execution: 1 }]);
    expect(source.probing).toMatchObject({ shutFor: 5_500, sinceAgo: 102 * SECOND });
  });

  test('one failure alone does not', () => {
    const source = ramping();
    source.after(SECOND, 'source_failure', { task: 7 });
    source.after(SECOND, 'success', { task: 8 });
    source.after(SECOND, 'source_failure', { task: 9 });
    expect(source.phase).toBe('ramping');
  });

  test('an answer closes the breaker as soon as nothing waits', () => {
    const source = ramping();
    source.after(10 * MINUTE, 'success');
    expect(source.after(SECOND, 'success', { drained: true }).change).toEqual({ tokens: 0.1, refunds: [] });
    expect(source.memory).toBeUndefined();
  });
});

describe('a source needs a person', () => {
  test('after permanent failures of two different tasks with no success between', () => {
    const source = new Told();
    source.after(0, 'permanent_source_failure', { task: 1, execution: 2 });
    source.after(0, 'task_failure', { task: 5 });
    const second = source.after(0, 'permanent_source_failure', { task: 2 });
    expect(second.source.standing).toBe('needs_person');
    expect(second.change).toMatchObject({
      restriction: { cause: 'needs_person', shutFor: 'released' },
      refunds: [{ task: 1, execution: 2 }],
    });
  });

  test('not after those of one task, nor where a success came between', () => {
    const source = new Told();
    source.after(0, 'permanent_source_failure', { task: 1 });
    source.after(SECOND, 'permanent_source_failure', { task: 1, execution: 2 });
    source.after(SECOND, 'success', { task: 3 });
    source.after(SECOND, 'permanent_source_failure', { task: 2 });
    expect(source.phase).toBe('closed');
  });

  test('and stays so whatever its last executions report', () => {
    const source = new Told();
    source.after(0, 'permanent_source_failure', { task: 1 });
    source.after(0, 'permanent_source_failure', { task: 2 });
    for (const kind of ['success', 'task_failure', 'rate_limited', 'source_failure', 'inconclusive'] as const) {
      expect(source.after(SECOND, kind, { task: 3 }).change, kind).toBeUndefined();
    }
  });

  test('also while its breaker is open', () => {
    const source = down();
    source.after(5 * SECOND, 'permanent_source_failure', { task: 3, probe: true });
    expect(source.probing.failedProbes).toBe(1);
    source.after(8 * SECOND, 'permanent_source_failure', { task: 4, probe: true });
    expect(source.phase).toBe('needs_person');
  });
});
