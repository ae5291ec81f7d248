import { expect, test } from 'vitest';
import type { ActionJson, ExecutionJson, HistoryJson, ShowDocument, TaskJson } from '../../dashboard/data/documents.ts';
import { attemptsIn, isBestFolded, scaleOf, timelineOf } from '../../dashboard/data/timeline.ts';

const BEGIN = Date.parse('2026-01-01T00:00:00Z');
const after = (seconds: number) => new Date(BEGIN + seconds * 1_000).toISOString();

test('draws each execution with the range in which its wait was drawn, and the next one', () => {
  const history = [failed(1, 10, 12, { low: 60, high: 120 }), failed(2, 92, 94, { low: 120, high: 240 })];
  const { runs, planned, begin, end } = timelineOf(
    shown(history, { state: 'scheduled', due_at: after(300) }),
    BEGIN + 100_000,
    12,
  );
  expect(runs.map(({ attempt, from, to }) => [attempt, from - BEGIN, to - BEGIN])).toEqual([
    [1, 10_000, 12_000],
    [2, 92_000, 94_000],
  ]);
  expect(runs[1]?.jitter).toEqual({ from: BEGIN + 214_000, to: BEGIN + 334_000 });
  expect(planned).toBe(BEGIN + 300_000);
  expect([begin, end]).toEqual([BEGIN, BEGIN + 334_000]);
});

test('draws what runs until now, and leaves out the oldest of many', () => {
  const history = Array.from({ length: 30 }, (_, i) => failed(i + 1, i * 10, i * 10 + 1));
  const running = { worker: 'w', since: after(400), cancel_requested: false };
  const { runs, older } = timelineOf(
    shown(history, { state: 'running', running, executions: 31 }),
    BEGIN + 405_000,
    12,
  );
  expect(older).toBe(19);
  expect(runs.at(-1)).toMatchObject({ execution: 31, from: BEGIN + 400_000, to: BEGIN + 405_000, attempt: undefined });
});

test('counts attempts from one in each round, and not what was not charged', () => {
  const retry: ActionJson = {
    kind: 'action',
    at: after(40),
    actor: 'a',
    verb: 'retry',
    note: null,
    from: 'dead',
    to: 'ready',
  };
  const uncharged = { ...failed(2, 20, 21), charge: 'source' } as const;
  const history: HistoryJson[] = [failed(1, 10, 11), uncharged, failed(3, 30, 31), retry, failed(4, 50, 51)];
  const numbers = attemptsIn(history);
  expect(history.map((entry) => numbers.get(entry))).toEqual([1, undefined, 2, undefined, 1]);
});

test('folds waits that would hide the executions, and keeps the order of times', () => {
  const history = [failed(1, 0, 1), failed(2, 3_601, 3_602), failed(3, 7_202, 7_203)];
  const timeline = timelineOf(shown(history, { state: 'dead' }), BEGIN, 12);
  expect(isBestFolded(timeline)).toBe(true);
  const [folded, linear] = [scaleOf(timeline, true), scaleOf(timeline, false)];
  const widthOf = (scale: (at: number) => number) => scale(BEGIN + 3_602_000) - scale(BEGIN + 3_601_000);
  expect(widthOf(linear)).toBeLessThan(0.001);
  expect(widthOf(folded)).toBeGreaterThan(0.05);
  const places = Array.from({ length: 100 }, (_, i) => folded(BEGIN + i * 72_030));
  expect(places).toEqual(places.toSorted((a, b) => a - b));
  expect([folded(BEGIN), folded(BEGIN + 7_203_000)]).toEqual([0, 1]);
});

function shown(history: readonly HistoryJson[], task: Partial<TaskJson>): ShowDocument {
  const usual = { submitted_at: after(0), due_at: null, running: null, executions: history.length };
  return { task: { ...usual, ...task } as TaskJson, budget: null, history, choices: [], explain: null };
}

function failed(execution: number, from: number, to: number, jitter?: { low: number; high: number }): ExecutionJson {
  const drawn = jitter ? { low_ms: jitter.low * 1_000, high_ms: jitter.high * 1_000, roll: 0.5 } : null;
  return {
    kind: 'execution',
    execution,
    worker: 'w',
    started_at: after(from),
    ended_at: after(to),
    duration_ms: (to - from) * 1_000,
    outcome: 'failure',
    next: 'scheduled',
    next_in_ms: null,
    charge: 'task',
    failure: null,
    message: null,
    because: {
      step: 'retry',
      rule: 'policy',
      count: null,
      limit: null,
      formula: null,
      jitter: drawn,
      policy_version: '',
      text: '',
    },
    late: false,
  };
}
