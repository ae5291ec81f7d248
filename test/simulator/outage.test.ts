import { expect, test } from 'vitest';
import { HOUR_OUTAGE, type Scenario, simulateOutage } from '../../src/simulator/outage.ts';
import { POLICIES, type SimulatedPolicy } from '../../src/simulator/policies.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';

/** On a busy machine. */
const LONG = { timeout: 90_000 };

/** The scenario of `npm run simulate:outage` in small. */
const SHORT: Scenario = { ...HOUR_OUTAGE, arrivals: 2, capacity: 5, before: 10_000, outage: 60_000 };

const OUTAGE_SECONDS = SHORT.outage / 1_000;

function simulate(name: string, seed = 1, workers = 1) {
  const policy = POLICIES.find((each) => each.name === name) as SimulatedPolicy;
  return simulateOutage({ policy, scenario: SHORT, store: sqlite(':memory:'), seed, workers });
}

test(
  'Holdfast hardly calls a server that is down, charges nobody, and lets work return as fast as the server takes it',
  LONG,
  async () => {
    const { result, samples } = await simulate('holdfast', 1, 2);
    expect(result).toMatchObject({ dead: 0, attempts_charged: 0 });
    expect(result.useless_calls).toBeLessThanOrEqual(12);
    expect(result.throttled_after).toBeLessThanOrEqual(SHORT.capacity * 2);
    // The time until the next probe counts as well: a short outage is drained in more than the shortest time.
    expect(result.drain_ratio).toBeLessThan(3);
    const conditions = samples.map(({ condition }) => condition);
    for (const condition of ['normal', 'down', 'ramping'] as const) expect(conditions).toContain(condition);
  },
);

test(
  'a queue that knows nothing of sources calls a server that is down again and again, and charges each of these calls',
  LONG,
  async () => {
    const { result, samples } = await simulate('oban');
    expect(result.useless_calls).toBeGreaterThan(SHORT.arrivals * OUTAGE_SECONDS * 1.2);
    const failed = samples.reduce((sum, { calls }) => sum + calls.down + calls.throttled, 0);
    expect(result).toMatchObject({ attempts_charged: failed, dead: 0 });
    expect(result.drain_ratio).toBeGreaterThan(1);
    expect(samples.at(-1)?.waiting).toBeLessThan(10);
  },
);

test('a queue with few and short retries gives up tasks with which nothing is wrong', LONG, async () => {
  const { result } = await simulate('celery');
  expect(result.dead).toBeGreaterThan(SHORT.arrivals * OUTAGE_SECONDS * 0.8);
});

test('the same seed gives the same numbers', LONG, async () => {
  const [first, again, other] = [await simulate('celery', 7), await simulate('celery', 7), await simulate('celery', 8)];
  expect(again).toEqual(first);
  expect(other.result).not.toEqual(first.result);
});
