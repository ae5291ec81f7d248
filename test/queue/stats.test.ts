import { expect, test } from 'vitest';
import { defineTask, Failed, PermanentFailure, RateLimited, RetryLater, type WorkerEvent } from '../../src/index.ts';
import { useKits } from '../worker/scene.ts';

const open = useKits();

/** What each execution of an input does, by its attempt; the last one for all further executions. */
const FATES: readonly (() => unknown)[][] = [
  [() => 'done'],
  [failing('http.503'), () => 'done'],
  [failing('fs.locked'), failing('fs.locked'), () => 'done'],
  [failing('fs.locked'), failing('http.503'), failing('fs.locked'), failing('fs.locked')],
  [failing('quota'), throwing(() => new PermanentFailure('no such box'))],
  [throwing(() => new RateLimited('2s')), () => 'done'],
  [throwing(() => new RetryLater('3s')), failing('http.503'), throwing(() => new RateLimited('2s')), () => 'done'],
  [throwing(() => new Error('who knows')), () => 'done'],
];

function throwing(error: () => Error): () => never {
  return () => {
    throw error();
  };
}

function failing(reason: string): () => never {
  return throwing(() => new Failed('It failed.', { reason, kind: 'transient' }));
}

test('counts what the events say, by type, also after the tasks were removed', async () => {
  const retry = { maxAttempts: 4, backoff: { fixed: '1s' }, jitter: 'none' } as const;
  const tasks = ['mail', 'files'].map((type) =>
    defineTask(type, {
      retry,
      source: (fate: number) => `s${fate % 2}`,
      run(fate: number, { execution }) {
        const steps = FATES[fate] as (() => unknown)[];
        return (steps[Math.min(execution, steps.length) - 1] as () => unknown)() as string;
      },
    }),
  );
  const settled: Extract<WorkerEvent, { kind: 'settled' }>[] = [];
  const kit = await open({
    tasks,
    worker: { concurrency: 3, onEvent: (event) => event.kind === 'settled' && settled.push(event) },
  });
  for (const [n, task] of tasks.entries()) {
    const fates = FATES.flatMap((_, fate) => Array<number>(n === 0 ? 1 : 3).fill(fate));
    await kit.holdfast.enqueueAll(task, fates);
  }
  await kit.advance('2m');
  expect((await kit.holdfast.counts()).byState).toMatchObject({ scheduled: 0, ready: 0, running: 0 });
  const before = await kit.holdfast.stats();
  await kit.advance('3h');
  await kit.holdfast.prune({ succeeded: '1h', dead: '1h', needs_manual: '1h' });
  expect(await kit.holdfast.list()).toEqual([]);

  const after = await kit.holdfast.stats();
  expect(after).toEqual(before);
  for (const { type } of tasks) {
    const stats = after.types.find((each) => each.type === type);
    expect(stats).toMatchObject(counted(settled.filter(({ task }) => task.type === type)));
  }
  expect(after.total).toMatchObject(counted(settled));
  expect(after.sources.map(({ source }) => source).sort()).toEqual(['s0', 's1']);
  const one = await kit.holdfast.stats({ type: 'files', source: 's1' });
  expect(one.total).toMatchObject(counted(settled.filter(({ task }) => task.type === 'files' && task.source === 's1')));
  const by = async (filter: string) => (await kit.holdfast.stats({ filter })).total;
  expect(await by('type:f* -source:s0')).toEqual(one.total);
  expect((await by('type:mail since:1h')).executions).toBe(0);
  const locked = settled.filter(({ outcome }) => outcome.kind === 'failure' && outcome.failure.reason === 'fs.locked');
  expect(await by('reason:fs.*')).toMatchObject({ executions: locked.length, failures: locked.length });
  await expect(by('type:mail queue:x')).rejects.toThrow('"queue" cannot be used here, at column 11');
  expect((await kit.holdfast.stats({ since: new Date(kit.clock.now()) })).total.executions).toBe(0);
  await expect(kit.holdfast.stats({ since: 'yesterday' as unknown as Date })).rejects.toThrow('must be a Date');
});

/** The same from the events alone. */
function counted(events: readonly Extract<WorkerEvent, { kind: 'settled' }>[]): object {
  const failedBefore = new Map<number, string>();
  const charged = new Map<number, number>();
  const byFailureKind: Record<string, number> = { transient: 0, rate_limited: 0, permanent: 0, unknown: 0 };
  const retries = { total: 0, successful: 0, failed: 0, byFailureKind };
  const sums = {
    successes: 0,
    failures: 0,
    attemptsOfSuccesses: 0,
    wasted: 0,
    dead: 0,
    needsManual: 0,
    ended: 0,
    used: 0,
  };
  for (const { task, outcome, decision, state } of events) {
    const id = task.lease.task;
    const attempt = (charged.get(id) ?? 0) + 1;
    const before = failedBefore.get(id);
    if (outcome.kind === 'success') {
      sums.successes += 1;
      sums.attemptsOfSuccesses += attempt;
    } else if (outcome.kind === 'failure') {
      sums.failures += 1;
      failedBefore.set(id, outcome.failure.kind);
    }
    if (before !== undefined && (outcome.kind === 'success' || outcome.kind === 'failure')) {
      retries.total += 1;
      byFailureKind[before] = (byFailureKind[before] as number) + 1;
      if (outcome.kind === 'success') retries.successful += 1;
      else retries.failed += 1;
    }
    if ('charge' in decision && decision.charge.to === 'task') charged.set(id, attempt);
    if (state === 'dead') sums.dead += 1;
    if (state === 'needs_manual') sums.needsManual += 1;
    if (state === 'dead' || state === 'needs_manual') sums.wasted += attempt;
    if (state !== 'scheduled' && state !== 'ready') {
      sums.ended += 1;
      sums.used += attempt;
    }
  }
  const { successes, failures, attemptsOfSuccesses, wasted, dead, needsManual, ended, used } = sums;
  return {
    executions: events.length,
    successes,
    failures,
    successRate: successes / (successes + failures),
    averageAttemptsUntilSuccess: attemptsOfSuccesses / successes,
    retries,
    ended: { dead, needsManual, cancelled: 0 },
    wastedExecutions: wasted,
    budget: { used, allowed: 4 * ended },
  };
}
