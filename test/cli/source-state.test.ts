import { describe, expect, test } from 'vitest';
import { aged } from '../../src/source/memory.ts';
import { observe } from '../../src/source/observe.ts';
import { restrictionOf } from '../../src/source/restriction.ts';
import type { Trouble } from '../../src/source/trouble.ts';
import type { Restriction, SourceRecord } from '../../src/store/store.ts';
import { listedSource, sourceJson } from '../../src/views/source-list.ts';
import { seenSource, shownSourceState, sourceCause } from '../../src/views/source-state.ts';

const NOW = 10_000_000;
const by = { actor: 'eva', at: NOW - 60_000 };
const trouble: Trouble = { condition: 'down', sinceMs: 1_860_000, reason: 'net.refused', failedProbes: 14 };

function listed(record: Omit<SourceRecord, 'name'>, ready = 0, told?: Trouble) {
  const seen = { record: { name: 'api', ...record }, ...(told && { trouble: told }) };
  return listedSource(seen, { name: 'api', ready, running: record.running ?? 0 }, NOW);
}

/** The state of a source with such a restriction; without `opensIn` it does not open by itself. */
function state(restriction: Restriction, opensIn?: number): NonNullable<SourceRecord['state']> {
  return { revision: 3, memory: '{}', age: 0, restriction, ...(opensIn !== undefined && { opensIn }) };
}

const limits = { pace: { perSecond: 10, burst: 1 }, concurrency: 4, by: { ...by, origin: 'person' } } as const;
const ramp: Restriction = { cause: 'breaker', ramping: true, pace: { perSecond: 5, burst: 1 } };

describe('a source in a list', () => {
  test.each<[Omit<SourceRecord, 'name'>, string, cause: string, next: string]>([
    [{}, 'normal', '', ''],
    [{ hold: { ...by, note: 'NAS is moved' } }, 'held', 'by eva 1m ago: NAS is moved', 'until it is released'],
    [{ hold: { ...by, until: NOW + 7_200_000 } }, 'held', 'by eva 1m ago', 'goes on in 2h'],
    [
      { state: state({ cause: 'breaker', shutFor: 60_000, probing: true }, 22_000) },
      'down',
      'down for 31m: net.refused, 14 probes failed',
      'probe in 22s',
    ],
    [
      { state: state({ cause: 'breaker', probing: true }, 0), running: 1 },
      'probing',
      'down for 31m: net.refused, 14 probes failed',
      'a probe runs',
    ],
    [
      { state: state({ cause: 'breaker', probing: true }, 0) },
      'probing',
      'down for 31m: net.refused, 14 probes failed',
      'the next task is a probe',
    ],
    [{ state: state(ramp, 0) }, 'ramping', 'works again', '5/s now, backlog gone in 1m or more'],
    [
      { state: state({ cause: 'rate_limit', shutFor: 60_000, ramping: true }, 500) },
      'asked_to_wait',
      'asked to wait: net.refused',
      'opens in 500ms',
    ],
    [
      { state: state({ ...ramp, shutFor: 60_000 }, 500) },
      'asked_to_wait',
      'asked to wait: net.refused',
      'opens in 500ms',
    ],
    [
      { state: state({ cause: 'needs_person', shutFor: 'released' }) },
      'needs_person',
      'for 31m: net.refused',
      'until it is released',
    ],
    [
      { state: state({ cause: 'rate_limit', pace: { perSecond: 2, burst: 1 } }, 0) },
      'limited',
      'it said that little of its own limit is left: 2/s until it resets',
      '',
    ],
    [{ limits }, 'limited', 'at most 10/s and 4 at a time, set by eva 1m ago', ''],
    [{ state: { revision: 1, memory: '{}', age: 0 }, tokens: 18.9 }, 'watched', 'failed 31m ago: net.refused', ''],
    [{ hold: by, limits, state: state({ cause: 'breaker' }, 5) }, 'held', 'by eva 1m ago', 'until it is released'],
  ])('%j is %s', (record, name, cause, next) => {
    expect(listed(record, 300, trouble)).toMatchObject({ state: name, cause, next });
  });

  test('says how long its backlog still takes only where it is released at a known pace', () => {
    expect(sourceJson(listed({ state: state(ramp, 0) }, 300), NOW)).toMatchObject({ drain_at_least_ms: 60_000 });
    expect(sourceJson(listed({ state: state(ramp, 0) }, 0), NOW)).toMatchObject({ drain_at_least_ms: null });
    expect(sourceJson(listed({ state: state(ramp, 5_000) }, 300), NOW)).toMatchObject({ drain_at_least_ms: null });
    expect(sourceJson(listed({ limits }, 300), NOW)).toMatchObject({ drain_at_least_ms: null });
  });

  test('has the same members in JSON, whatever its state', () => {
    const plain = sourceJson(listed({}), NOW);
    expect(plain).toEqual({
      name: 'api',
      state: 'normal',
      since: null,
      cause: null,
      reason: null,
      error: null,
      ready: 0,
      running: 0,
      held: null,
      held_until: null,
      opens_in_ms: null,
      failed_probes: null,
      released_per_second: null,
      drain_at_least_ms: null,
      tokens: 20,
      limits: null,
    });
    const full = sourceJson(
      listed({ hold: { ...by, until: NOW }, limits, tokens: 3, state: state(ramp, 0) }, 9, trouble),
      NOW,
    );
    expect(Object.keys(full)).toEqual(Object.keys(plain));
    expect(full).toMatchObject({
      state: 'held',
      since: new Date(NOW - 1_860_000).toISOString(),
      held: { actor: 'eva', note: null },
      released_per_second: 5,
      tokens: 3,
      limits: { per_second: 10, burst: 1, concurrency: 4, set_by: { actor: 'eva', origin: 'person' } },
    });
  });
});

describe('what is remembered of a source', () => {
  const failure = {
    kind: 'source_failure',
    execution: 1,
    startedAgo: 0,
    probe: false,
    drained: false,
    reason: 'net.refused',
    message: 'connect ECONNREFUSED',
    maxRetryAfter: 86_400_000,
    switches: { gate: true, breaker: true, budget: true },
  } as const;

  test('is shown with its last failure, and for how long', () => {
    const first = observe(undefined, { ...failure, task: 1 }, 0.5);
    const { memory, change } = observe(aged(first.memory, 1_000), { ...failure, task: 2 }, 0.5);
    const restriction = restrictionOf(memory) as Restriction;
    const seen = seenSource({
      name: 'api',
      state: { revision: 3, memory: change?.memory ?? '', age: 3_000, restriction, opensIn: 2_000 },
    });
    expect(shownSourceState(seen.record)).toBe('down');
    expect(sourceCause(seen, NOW)).toBe('down for 3s: net.refused (connect ECONNREFUSED)');
  });

  test('is not shown any more when it was forgotten', () => {
    const { change } = observe(undefined, { ...failure, task: 1 }, 0.5);
    const stateAfter = (age: number) => {
      const { record } = seenSource({ name: 'api', state: { revision: 3, memory: change?.memory ?? '', age } });
      return shownSourceState(record);
    };
    expect([stateAfter(60_000), stateAfter(2 * 3_600_000)]).toEqual(['watched', 'normal']);
  });

  test('that is damaged is shown as far as the restriction tells', () => {
    const seen = seenSource({
      name: 'api',
      state: { revision: 3, memory: '{', age: 0, restriction: { cause: 'breaker', probing: true }, opensIn: 9_000 },
    });
    expect([shownSourceState(seen.record), sourceCause(seen, NOW)]).toEqual(['down', 'down']);
  });
});
