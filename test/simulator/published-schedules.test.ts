import { expect, test } from 'vitest';
import { type Backoff, ceiling, exponential, schedule } from '../../src/failure/backoff.ts';
import { failureOf, scheduleOf } from '../../src/failure/foresee.ts';
import { jittered, proportional } from '../../src/failure/jitter.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import { hangfire, oban, POLICIES, river, type SimulatedPolicy, sidekiq } from '../../src/simulator/policies.ts';

/*
 * Schedules that other systems publish, computed by our functions. The policies of `npm run simulate:outage` are checked by it.
 */

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const least = () => 0;
const most = () => 1;

/** What `decide` makes of a simulated policy for a task that fails for ever. */
function decided(name: string, random: () => number) {
  const policy = POLICIES.find((each) => each.name === name) as SimulatedPolicy;
  const outcome = { kind: 'failure', failure: failureOf('http.503') } as const;
  return scheduleOf(definePolicy(policy.options(random)), outcome);
}

test('River: n⁴ s, as its documentation lists the first twenty', () => {
  const listed =
    '1s 16s 1m21s 4m16s 10m25s 21m36s 40m1s 1h8m16s 1h49m21s 2h46m40s 4h4m1s 5h45m36s 7h56m1s 10h40m16s 14h3m45s';
  const inSeconds = [...listed.split(' ').map(secondsOf), 65_536, 83_521, 104_976, 130_321, 160_000];
  expect(Array.from({ length: 20 }, (_, i) => river(i + 1) / SECOND)).toEqual(inSeconds);

  const { retries, end } = decided('river', least);
  expect(retries.slice(0, 20).map(({ nominal }) => nominal / SECOND)).toEqual(inSeconds);
  expect(retries.length).toBe(24);
  expect(end?.next).toBe('dead');
  for (const { nominal, low, high } of retries) {
    expect(low).toBe(Math.round(nominal * 0.9));
    expect(high).toBe(Math.round(nominal * 1.1));
  }
});

test('Oban: with the most jitter the 20th attempt is 6 days and 16 hours after the 19th, 13 days and 8 hours after the first', () => {
  expect(oban(19, most) / DAY).toBeCloseTo(6.675, 3);
  const { retries } = decided('oban', most);
  expect(retries).toHaveLength(19);
  expect((retries.at(-1)?.nominal ?? 0) / DAY).toBeCloseTo(6.675, 3);
  expect((retries.at(-1)?.cumulative ?? 0) / DAY).toBeCloseTo(13.354, 3);
});

test('Sidekiq: 25 retries take 20.4 days without jitter', () => {
  const { retries } = decided('sidekiq', least);
  expect(retries).toHaveLength(25);
  expect((retries.at(-1)?.cumulative ?? 0) / DAY).toBeCloseTo(20.41, 2);
  expect(sidekiq(0, least)).toBe(15 * SECOND);
});

test('Hangfire: ten retries take about four and a half hours', () => {
  const { retries } = decided('hangfire', () => 0.5);
  expect(retries).toHaveLength(10);
  expect((retries.at(-1)?.cumulative ?? 0) / HOUR).toBeGreaterThan(4.2);
  expect((retries.at(-1)?.cumulative ?? 0) / HOUR).toBeLessThan(4.8);
  expect(hangfire(1, least)).toBe(15 * SECOND);
});

test('Svix: the third failure is followed by half an hour, and the last attempt comes after 27:35:05', () => {
  const backoff = schedule(['5s', '5m', '30m', '2h', '5h', '10h', '10h']);
  expect(total(backoff, 3)).toBe(35 * MINUTE + 5 * SECOND);
  expect(total(backoff, 7)).toBe(27 * HOUR + 35 * MINUTE + 5 * SECOND);
});

test('Standard Webhooks: the last attempt comes after 75:35:05', () => {
  const backoff = schedule(['5s', '5m', '30m', '2h', '5h', '10h', '14h', '20h', '24h']);
  expect(total(backoff, 9)).toBe(75 * HOUR + 35 * MINUTE + 5 * SECOND);
});

test('MongoDB: three retries wait 700 ms at most, five 3,100 ms', () => {
  const backoff = exponential({ base: '100ms', cap: '10s' });
  expect(total(backoff, 3)).toBe(700);
  expect(total(backoff, 5)).toBe(3_100);
});

test('AWS SDK, retry mode of 2026: 50, 100, 200 and 400 ms; throttled 1 s; never more than 20 s', () => {
  const transient = exponential({ base: '50ms', cap: '20s' });
  expect([1, 2, 3, 4].map((retry) => ceiling(transient, retry))).toEqual([50, 100, 200, 400]);
  const legacyThrottled = exponential({ base: '500ms', cap: '20s' });
  expect([1, 2, 6, 7].map((retry) => ceiling(legacyThrottled, retry))).toEqual([500, 1_000, 16_000, 20_000]);
});

test('Exim: `F,2h,15m; G,16h,1h,1.5; F,4d,6h` retries 27 times in 100.8 hours', () => {
  // Each rule holds until so long after the first failure. A geometric one grows from its first interval.
  const rules = [
    { until: 2 * HOUR, interval: () => 15 * MINUTE },
    { until: 16 * HOUR, interval: (backoff: Backoff, k: number) => ceiling(backoff, k) },
    { until: 4 * DAY, interval: () => 6 * HOUR },
  ];
  const geometric = exponential({ base: '1h', factor: 1.5, cap: '1d' });
  let [elapsed, retries, inGeometric] = [0, 0, 0];
  for (;;) {
    const rule = rules.find(({ until }) => elapsed < until);
    if (!rule) break;
    if (rule === rules[1]) inGeometric += 1;
    elapsed += rule.interval(geometric, inGeometric);
    retries += 1;
  }
  expect({ retries, hours: Math.round((elapsed / HOUR) * 10) / 10 }).toEqual({ retries: 27, hours: 100.8 });
});

test('Polly: jitter of a constant and of a linear delay is ±25 %', () => {
  const constant = [0, 0.4, 0.6, 1].map((roll) => jittered(1_000, proportional(0.25), roll).delay);
  expect(constant).toEqual([750, 950, 1_050, 1_250]);
  const linear = [0, 0.4, 0.5, 0.6, 1].map((roll) => jittered(3_000, proportional(0.25), roll).delay);
  expect(linear).toEqual([2_250, 2_850, 3_000, 3_150, 3_750]);
});

function total(backoff: Backoff, retries: number): number {
  return Array.from({ length: retries }, (_, i) => ceiling(backoff, i + 1)).reduce((sum, each) => sum + each, 0);
}

function secondsOf(text: string): number {
  const units: Record<string, number> = { h: 3_600, m: 60, s: 1 };
  return [...text.matchAll(/(\d+)([hms])/g)].reduce(
    (sum, [, count, unit]) => sum + Number(count) * (units[unit as string] as number),
    0,
  );
}
