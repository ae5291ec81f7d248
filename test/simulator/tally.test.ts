import { expect, test } from 'vitest';
import { Tally } from '../../src/simulator/tally.ts';

/** Of an outage from second 10 to second 20. */
function aTally() {
  return new Tally(0, 10_000, 20_000);
}

test('the backlog is drained when nothing waits any more of what arrived before the end of the outage', () => {
  const tally = aTally();
  const first = tally.arrived(12_000);
  const second = tally.arrived(19_999);
  const later = tally.arrived(20_000);
  tally.succeeded(first, 25_000);
  expect(tally.drainedAt).toBe(Number.POSITIVE_INFINITY);
  tally.gaveUp(second, 30_000);
  tally.succeeded(later, 40_000);
  expect(tally).toMatchObject({ drainedAt: 30_000, givenUp: 1, waiting: 0, arrivals: 3, arrivedInOutage: 2 });
});

test('the wait of new work is that of tasks that arrived between the outage and the end of its backlog, up to their success', () => {
  const tally = aTally();
  const old = tally.arrived(15_000);
  for (const wait of [100, 2_000, 300]) tally.succeeded(tally.arrived(21_000), 21_000 + wait);
  tally.succeeded(old, 30_000);
  tally.succeeded(tally.arrived(31_000), 99_000);
  expect(tally.freshWait).toBe(300);
});

test('the wait of new work has no end where most of it was given up', () => {
  const tally = aTally();
  tally.arrived(15_000);
  tally.succeeded(tally.arrived(21_000), 21_000);
  for (const at of [22_000, 23_000]) tally.gaveUp(tally.arrived(at), at);
  expect(tally.freshWait).toBe(Number.POSITIVE_INFINITY);
});

test('counts failed calls during the outage, and throttled calls and the fullest second after it', () => {
  const tally = aTally();
  tally.called(9_000, 'throttled');
  tally.called(11_000, 'down');
  for (const at of [20_000, 20_400, 20_999, 21_000]) tally.called(at, at === 20_999 ? 'throttled' : 'served');
  tally.sample(22_000, 'normal');
  tally.called(22_500, 'served');
  tally.sample(23_000, 'ramping');
  expect(tally).toMatchObject({ uselessCalls: 1, throttledAfter: 1, peak: 3 });
  expect(tally.samples).toEqual([
    { at: 12_000, lasted: 22_000, calls: { served: 3, down: 1, throttled: 2 }, waiting: 0, condition: 'normal' },
    { at: 13_000, lasted: 1_000, calls: { served: 1, down: 0, throttled: 0 }, waiting: 0, condition: 'ramping' },
  ]);
});
