import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { FULL } from '../../src/budget.ts';
import { fixed } from '../../src/failure/backoff.ts';
import { LEAST_DEFERRAL } from '../../src/failure/decide.ts';
import { failureOf } from '../../src/failure/foresee.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import { aged, NORMAL } from '../../src/source/memory.ts';
import { OBSERVED } from '../../src/source/observation.ts';
import { restrictionOf } from '../../src/source/restriction.ts';
import { readMemory, writeMemory } from '../../src/source/stored.ts';
import { DAY, MINUTE, SECOND, Told } from '../source/given.ts';
import { dice, type Judged, type Running, SmallWorld } from '../source/small-world.ts';

const spans = fc.integer({ min: 0, max: 2 * MINUTE });

const observations = fc.record(
  {
    kind: fc.constantFrom(...OBSERVED),
    pause: spans,
    task: fc.integer({ min: 1, max: 4 }),
    execution: fc.integer({ min: 1, max: 9 }),
    startedAgo: spans,
    probe: fc.boolean(),
    drained: fc.boolean(),
    rateLimit: fc.record({ remaining: fc.nat(30), resetsIn: fc.integer({ min: 0, max: DAY }) }),
    retryAfter: fc.oneof(spans, fc.integer({ min: 0, max: 2 * DAY })),
    roll: fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }),
  },
  { requiredKeys: ['kind', 'pause', 'task', 'execution', 'startedAgo', 'probe', 'drained', 'roll'] },
);
const histories = fc.array(observations, { maxLength: 40 });

type History = typeof histories extends fc.Arbitrary<infer T> ? T : never;

function toldOf(history: History): Told {
  const source = new Told();
  for (const { kind, pause, roll, ...said } of history) source.after(pause, kind, said, roll);
  return source;
}

describe('what is remembered of a source', () => {
  test('is the same after one wait as after two that are as long together', () => {
    fc.assert(
      fc.property(histories, spans, fc.integer({ min: 0, max: DAY }), (history, first, second) => {
        const memory = toldOf(history).memory ?? NORMAL;
        expect(aged(aged(memory, first), second)).toEqual(aged(memory, first + second));
      }),
    );
  });

  test('survives being stored', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const memory = toldOf(history).memory ?? NORMAL;
        expect(readMemory(writeMemory(memory))).toEqual(memory);
      }),
    );
  });

  test('says that it is down only after failures of two tasks', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const source = toldOf(history.map((each) => ({ ...each, task: 1, retryAfter: 0 })));
        expect(['closed', 'ramping']).toContain(source.phase);
      }),
    );
  });

  test('never says that it is down by rate limits and failures at the task’s fault', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const innocent = history.filter(({ kind }) => !kind.includes('source'));
        const source = toldOf(innocent.map((each) => ({ ...each, retryAfter: 0 })));
        expect(['closed', 'ramping']).toContain(source.phase);
      }),
    );
  });

  test('refunds an execution once at most', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const source = new Told();
        const refunded = new Set<number>();
        for (const [i, { kind, pause, roll, ...said }] of history.entries()) {
          const { change } = source.after(pause, kind, { ...said, execution: i }, roll);
          for (const { execution } of change?.refunds ?? []) {
            expect(refunded.has(execution)).toBe(false);
            refunded.add(execution);
          }
        }
      }),
    );
  });

  test('shuts a source for a time, or until a person releases it, and never below zero', () => {
    fc.assert(
      fc.property(histories, (history) => {
        const restriction = restrictionOf(toldOf(history).memory ?? NORMAL);
        if (restriction?.shutFor === undefined) return;
        if (restriction.shutFor === 'released') expect(restriction.cause).toBe('needs_person');
        else expect(restriction.shutFor).toBeGreaterThan(0);
      }),
    );
  });
});

const POLICY = definePolicy({ maxAttempts: 3, backoff: fixed('2s') });

function failing(reason: string, said: Parameters<typeof failureOf>[1] = {}): Outcome {
  return { kind: 'failure', failure: failureOf(reason, said) };
}

const DOWN = failing('net.reset', { ambiguous: false });
const OUTCOMES: readonly Outcome[] = [
  { kind: 'success' },
  failing('http.503', { kind: 'transient', fault: 'source', retryAfterMs: 30 * SECOND }),
  failing('auth.invalid'),
  failing('http.429'),
  failing('http.429', { retryAfterMs: MINUTE }),
  failing('http.429', { retryAfterMs: 2 * DAY }),
  failing('http.404'),
  failing('app.strange', { kind: 'unknown' }),
  { kind: 'deferral', after: SECOND, reason: 'explicit.later', message: '' },
  { kind: 'interruption', started: true, message: '' },
];

const outcomes = fc.oneof({ weight: 2, arbitrary: fc.constant(DOWN) }, fc.constantFrom(...OUTCOMES));

/** One of three workers does its next step: it claims, judges or writes. Between its steps the others do theirs. */
const steps = fc.oneof(
  { weight: 8, arbitrary: fc.record({ worker: fc.nat(2), outcome: outcomes }) },
  { weight: 4, arbitrary: fc.record({ pause: fc.integer({ min: 1, max: 20 * SECOND }) }) },
  { weight: 1, arbitrary: fc.record({ lose: fc.nat(2) }) },
);

interface Worker {
  running?: Running | undefined;
  outcome?: Outcome | undefined;
  judged?: Judged | undefined;
}

/** What does not hold although it must at any time. */
function wrongIn(world: SmallWorld): string[] {
  const wrong: string[] = [];
  if (world.tokens < 0 || world.tokens > FULL) wrong.push(`${world.tokens} tokens`);
  const running = [...world.running];
  if (running.filter(({ probe }) => probe).length > 1) wrong.push('several probes');
  for (const { id, rows, executions, charged } of world.tasks) {
    const open = running.filter(({ task }) => task.id === id).length;
    if (rows.length + open !== executions)
      wrong.push(`task ${id}: ${rows.length} of ${executions} executions are accounted for`);
    if (new Set(rows.map(({ execution }) => execution)).size < rows.length)
      wrong.push(`task ${id}: accounted for twice`);
    const count = charged.reduce((sum, each) => sum + each.count, 0);
    if (rows.filter(({ to }) => to === 'task').length !== count) wrong.push(`task ${id}: ${count} attempts charged`);
  }
  return wrong;
}

function step(world: SmallWorld, worker: Worker, outcome: Outcome): void {
  if (!worker.running) {
    worker.running = world.claim();
    return;
  }
  const { verdict } = worker.running.task;
  worker.outcome ??= verdict === undefined ? outcome : { kind: 'verdict', reason: verdict };
  if (!worker.judged) {
    worker.judged = world.judge(worker.running, worker.outcome);
    return;
  }
  const { decision } = worker.judged;
  const written = world.write(worker.running, worker.judged);
  worker.judged = undefined;
  if (!written) return;
  if (decision.next === 'scheduled' && (decision.charge.to === 'source' || decision.charge.to === 'deferrals')) {
    expect(decision.after).toBeGreaterThanOrEqual(LEAST_DEFERRAL);
  }
  worker.running = undefined;
  worker.outcome = undefined;
}

/** From now on the source works: everything ends, and after a few more tasks nothing is remembered of it. */
function recover(world: SmallWorld): void {
  for (const running of [...world.running]) world.finish(running, { kind: 'success' });
  workOff(world);
  expect(world.tasks.filter(({ end }) => end === undefined)).toEqual([]);
  for (let more = 0; more < 3; more++) {
    world.now += 11 * MINUTE;
    world.enqueue();
    workOff(world);
  }
  expect(world.memory).toBeUndefined();
}

function workOff(world: SmallWorld): void {
  for (let left = 2_000; left > 0; left--) {
    const running = world.claim();
    if (running) {
      const { verdict } = running.task;
      world.finish(running, verdict === undefined ? { kind: 'success' } : { kind: 'verdict', reason: verdict });
    } else if (world.restriction?.shutFor === 'released') {
      world.release();
    } else {
      const next = world.nextStart();
      if (next === Number.POSITIVE_INFINITY) return;
      expect(next).toBeGreaterThan(world.now);
      world.now = next;
    }
  }
}

describe('whatever three workers do at the same time', () => {
  test('the ledgers add up, there is one probe at most, and no source is held for ever', () => {
    fc.assert(
      fc.property(fc.array(steps, { minLength: 50, maxLength: 200 }), fc.nat(), (history, seed) => {
        const world = new SmallWorld(POLICY, dice(seed));
        for (let i = 0; i < 8; i++) world.enqueue();
        const workers: readonly Worker[] = [{}, {}, {}];
        for (const each of history) {
          if ('pause' in each) world.now += each.pause;
          else if ('worker' in each) step(world, workers[each.worker] as Worker, each.outcome);
          else if (workers[each.lose]?.running) {
            world.lose(workers[each.lose]?.running as Running);
            Object.assign(workers[each.lose] as Worker, { running: undefined, outcome: undefined, judged: undefined });
          }
          expect(wrongIn(world)).toEqual([]);
        }
        recover(world);
        expect(wrongIn(world)).toEqual([]);
      }),
    );
  });
});
