import { expect, test } from 'vitest';
import { newCondition } from '../../src/source/condition.ts';
import { aged, type Memory } from '../../src/source/memory.ts';
import type { Observation } from '../../src/source/observation.ts';
import { observe } from '../../src/source/observe.ts';
import { sourceEvent } from '../../src/worker/source-event.ts';

const seen = (kind: Observation['kind'], task: number, more: Partial<Observation> = {}): Observation => ({
  kind,
  task,
  execution: 1,
  startedAgo: 0,
  probe: false,
  drained: false,
  reason: kind === 'success' ? '' : 'net.refused',
  message: '',
  maxRetryAfter: 86_400_000,
  switches: { gate: true, breaker: true, budget: true },
  ...more,
});

/** The events of these observations, a second apart. */
function eventsOf(...observations: readonly Observation[]): unknown[] {
  let memory: Memory | undefined;
  return observations.flatMap((observation) => {
    memory &&= aged(memory, 1_000);
    const { memory: after, change } = observe(memory, observation, 0.5);
    const condition = change && newCondition(memory, after, change);
    memory = change?.memory === undefined ? undefined : after;
    return condition ? [sourceEvent('api', condition)] : [];
  });
}

test('an outage is logged when it begins, when the source works again, and when it is over', () => {
  expect(
    eventsOf(
      seen('source_failure', 1),
      seen('source_failure', 2),
      seen('source_failure', 3, { probe: true }),
      seen('success', 3, { probe: true }),
      seen('success', 4, { probe: true }),
      seen('success', 5),
      seen('success', 6, { drained: true }),
    ),
  ).toEqual([
    { kind: 'source', source: 'api', change: 'down', reason: 'net.refused', refunded: 1, heldForMs: 5_000 },
    { kind: 'source', source: 'api', change: 'ramping', reason: 'net.refused', refunded: 0 },
    { kind: 'source', source: 'api', change: 'normal', refunded: 0 },
  ]);
});

test('a wait that the source asked for is logged once, with its length', () => {
  const asked = { reason: 'http.429', retryAfter: 120_000 };
  expect(eventsOf(seen('rate_limited', 1, asked), seen('rate_limited', 2, asked))).toEqual([
    { kind: 'source', source: 'api', change: 'waits', reason: 'http.429', refunded: 0, heldForMs: expect.any(Number) },
  ]);
});

test('a source that needs a person is logged with the reason', () => {
  const revoked = { reason: 'http.401' };
  expect(eventsOf(seen('permanent_source_failure', 1, revoked), seen('permanent_source_failure', 2, revoked))).toEqual([
    { kind: 'source', source: 'api', change: 'needs_person', reason: 'http.401', refunded: 1 },
  ]);
});

test('a failure or a success that does not change the condition of a source is not logged', () => {
  expect(eventsOf(seen('success', 1), seen('source_failure', 1), seen('success', 1), seen('task_failure', 2))).toEqual(
    [],
  );
});
