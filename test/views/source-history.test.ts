import { describe, expect, test } from 'vitest';
import type { ChangeRecord } from '../../src/store/changes.ts';
import { changeWords, outageWords, sourceHistory } from '../../src/views/source-history.ts';

const MINUTE = 60_000;
const since = Date.UTC(2026, 10, 29);
const now = since + 24 * 60 * MINUTE;
const at = (minutes: number) => since + minutes * MINUTE;

function change(minutes: number, facts: Partial<ChangeRecord>): ChangeRecord {
  return { id: minutes, at: at(minutes), kind: 'source', name: 'api', change: 'condition', ...facts };
}

const DOWN = { to: 'down', reason: 'net.refused', message: 'connect ECONNREFUSED', refunded: 2 } as const;

describe('the history of a source', () => {
  test('has a span for each condition, and an outage until it was normal again', () => {
    const changes = [change(10, DOWN), change(30, { to: 'ramping' }), change(40, { to: 'normal' })];
    expect(sourceHistory(changes, {}, { since, now })).toEqual({
      spans: [
        { from: at(10), to: at(30), condition: 'down' },
        { from: at(30), to: at(40), condition: 'ramping' },
      ],
      outages: [
        {
          from: at(10),
          to: at(40),
          condition: 'down',
          reason: 'net.refused',
          message: 'connect ECONNREFUSED',
          refunded: 2,
        },
      ],
    });
  });

  test('is open at its end while the source is not normal', () => {
    const present = { condition: 'down', since: at(10) } as const;
    const { spans, outages } = sourceHistory([change(10, DOWN)], present, { since, now });
    expect(spans).toEqual([{ from: at(10), to: undefined, condition: 'down' }]);
    expect(outages).toEqual([expect.objectContaining({ to: undefined })]);
  });

  test('begins before its first change where that says so', () => {
    expect(sourceHistory([change(5, { to: 'normal' })], {}, { since, now }).spans).toEqual([
      { from: since, to: at(5), condition: 'ramping' },
    ]);
    const old = { condition: 'needs_person', since: since - MINUTE } as const;
    expect(sourceHistory([], old, { since, now }).spans).toEqual([
      { from: since, to: undefined, condition: 'needs_person' },
    ]);
  });

  test('ends a wait when it is over', () => {
    const changes = [change(10, { to: 'waits', heldForMs: 5 * MINUTE }), change(20, { to: 'normal' })];
    expect(sourceHistory(changes, {}, { since, now }).spans).toEqual([
      { from: at(10), to: at(15), condition: 'waits' },
      { from: at(15), to: at(20), condition: 'ramping' },
    ]);
  });

  test('has the holds of people: until the release, their end, or now', () => {
    const hold = { change: 'hold', by: { actor: 'eva' } } as const;
    const spans = (changes: ChangeRecord[], heldSince?: number) =>
      sourceHistory(changes, heldSince === undefined ? {} : { heldSince }, { since, now }).spans;
    expect(spans([change(10, hold), change(30, { change: 'release' })])).toEqual([
      { from: at(10), to: at(30), condition: 'held' },
    ]);
    expect(spans([change(10, { ...hold, heldForMs: MINUTE }), change(30, { change: 'release' })])).toEqual([
      { from: at(10), to: at(11), condition: 'held' },
    ]);
    expect(spans([change(10, { ...hold, heldForMs: MINUTE })])).toEqual([
      { from: at(10), to: at(11), condition: 'held' },
    ]);
    expect(spans([change(10, hold)], at(10))).toEqual([{ from: at(10), to: undefined, condition: 'held' }]);
    expect(spans([], since - MINUTE)).toEqual([{ from: since, to: undefined, condition: 'held' }]);
  });

  test('calls an outage by the worst that happened in it', () => {
    const changes = [
      change(10, DOWN),
      change(20, { to: 'needs_person', reason: 'http.401', message: 'Unauthorized', refunded: 1 }),
      change(30, { to: 'normal' }),
      change(50, { to: 'waits', heldForMs: MINUTE, reason: 'http.429' }),
      change(60, { to: 'normal' }),
    ];
    const { outages } = sourceHistory(changes, {}, { since, now });
    expect(outages).toMatchObject([
      { from: at(10), to: at(30), condition: 'needs_person', reason: 'http.401', refunded: 3 },
      { from: at(50), to: at(60), condition: 'waits', reason: 'http.429' },
    ]);
    expect(outages.map((outage) => outageWords(outage, now))).toEqual([
      expect.stringContaining('(20m) needed a person: http.401 (Unauthorized), 3 attempts given back'),
      expect.stringContaining('(10m) asked to wait: http.429'),
    ]);
  });
});

test('an action is told with who did it and why', () => {
  const by = { actor: 'eva', note: 'the host moves' };
  expect(changeWords(change(1, { change: 'hold', by, heldForMs: 60 * MINUTE }))).toBe(
    'held for 1h by eva: the host moves',
  );
  expect(changeWords(change(1, { change: 'release', by: { actor: 'eva' } }))).toBe('released by eva');
  const limits = { pace: { perSecond: 10, burst: 1 }, concurrency: null };
  expect(changeWords(change(1, { change: 'limit', by, limits }))).toBe('limited to 10/s by eva: the host moves');
  expect(changeWords(change(1, { change: 'limit', by, limits: { pace: null } }))).toBe(
    'limits removed by eva: the host moves',
  );
});
