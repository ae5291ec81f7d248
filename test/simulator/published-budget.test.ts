import { expect, test } from 'vitest';
import { FULL, PER_SUCCESS, REFILL_EVERY, tokensAfter } from '../../src/budget.ts';
import { type Chance, chance } from './event-loop.ts';

/*
 * "What is Backoff For?" and "Fixing retries with token buckets and circuit breakers" (Marc Brooker, 2022): 100 clients make 10 calls a
 * second each to a server of which a share of the calls fails. Calls fail independently of the load, so each client can be followed
 * alone. The expected numbers are those of the published simulation, 60 s long, and of its closed forms.
 */

const CLIENTS = 100;
const CALLS_EACH = 600;
const TOLERANCE = 0.01;

/** Whether a failed call may be tried again. Of one client; `began` is told of each new call. */
interface Strategy {
  began(): void;
  mayRetry(retriesOfCall: number): boolean;
}

function threeRetries(): Strategy {
  return { began() {}, mayRetry: (retries) => retries < 3 };
}

/** A token for each retry, of which there are 5 at first; each call adds a tenth. */
function publishedBudget(): Strategy {
  let tokens = 5;
  return {
    began() {
      tokens = Math.min(5, tokens + 0.1);
    },
    mayRetry() {
      if (tokens <= 1) return false;
      tokens -= 1;
      return true;
    },
  };
}

/** Three retries, unless more than a tenth of all calls has failed. */
function breaker(): Strategy {
  let [calls, failures] = [0, 0];
  return {
    began() {
      calls += 1;
    },
    mayRetry(retries) {
      failures += 1;
      return failures / calls <= 0.1 && retries < 3;
    },
  };
}

interface Totals {
  readonly success: number;
  readonly load: number;
}

/** The share of calls that succeed in the end, and how many tries there are for each call. */
function simulate(
  strategyOf: () => Strategy,
  failing: number,
  { roll }: Chance,
  clients = CLIENTS,
  each = CALLS_EACH,
): Totals {
  let [successes, tries] = [0, 0];
  for (let client = 0; client < clients; client++) {
    const strategy = strategyOf();
    for (let call = 0; call < each; call++) {
      strategy.began();
      for (let retries = 0; ; retries++) {
        tries += 1;
        if (roll() >= failing) {
          successes += 1;
          break;
        }
        if (!strategy.mayRetry(retries)) break;
      }
    }
  }
  const calls = clients * each;
  return { success: successes / calls, load: tries / calls };
}

type Published = readonly [success: number, load: number];

test.each<readonly [failing: number, retries: Published, budget: Published, breaker: Published]>([
  [0.01, [1, 1.0101], [1, 1.0104], [0.9999, 1.0104]],
  [0.1, [0.9999, 1.1133], [0.9838, 1.0956], [0.9359, 1.0386]],
  [0.2, [0.9984, 1.2467], [0.8851, 1.1059], [0.7974, 1.0005]],
  [0.5, [0.9367, 1.874], [0.5528, 1.1072], [0.5029, 1]],
  [1, [0, 4], [0, 1.1073], [0, 1]],
] as const)(
  'where %d of the calls fail, three retries, a budget and a breaker do as published',
  (failing, ...published) => {
    const random = chance(1);
    const totals = [threeRetries, publishedBudget, breaker].map((strategy) => simulate(strategy, failing, random));
    for (const [i, [success, load]] of published.entries()) {
      expect(Math.abs((totals[i] as Totals).success - success)).toBeLessThan(TOLERANCE);
      expect(Math.abs((totals[i] as Totals).load - load)).toBeLessThan(TOLERANCE);
    }
  },
);

test('the closed forms hold: retries multiply the load by (1 − x⁴) / (1 − x), a budget adds a tenth and what it began with', () => {
  const random = chance(2);
  for (const failing of [0.2, 0.3, 0.5, 0.8]) {
    const retried = simulate(threeRetries, failing, random);
    expect(retried.success).toBeCloseTo(1 - failing ** 4, 1.7);
    expect(Math.abs(retried.load / ((1 - failing ** 4) / (1 - failing)) - 1)).toBeLessThan(TOLERANCE);
    const limited = simulate(publishedBudget, failing, random);
    const extra = 0.1 + 5 / CALLS_EACH;
    expect(Math.abs(limited.load - (1 + extra))).toBeLessThan(TOLERANCE);
    expect(Math.abs(limited.success - (1 - failing) * (1 + extra))).toBeLessThan(TOLERANCE);
  }
});

test('a breaker for each client serves fewer the more clients there are; a budget for each does not mind', () => {
  const [few, some, many] = [10, 100, 1_000].map((clients) => {
    const each = 6_000 / clients;
    const random = chance(3);
    return [
      simulate(breaker, 0.05, random, clients, each).success,
      simulate(publishedBudget, 0.05, random, clients, each).success,
    ];
  }) as [number[], number[], number[]];
  for (const [[ofBreaker, ofBudget], published] of [
    [few, 0.9995],
    [some, 0.9761],
    [many, 0.9485],
  ] as const) {
    expect(Math.abs((ofBreaker as number) - published)).toBeLessThan(TOLERANCE);
    expect(ofBudget).toBeGreaterThan(1 - TOLERANCE);
  }
});

test('our budget adds at most a tenth of the successes and one retry in 10 s to the load of a source, after the 20 that it begins with', () => {
  const { roll } = chance(4);
  const [gap, calls] = [100, 100_000];
  for (const failing of [0.05, 0.2, 0.5, 1]) {
    let [tokens, retries, successes, tries] = [FULL, 0, 0, 0];
    for (let call = 0; call < calls; call++) {
      tokens = tokensAfter(tokens, gap);
      for (;;) {
        tries += 1;
        if (roll() >= failing) {
          successes += 1;
          tokens = Math.min(FULL, tokens + PER_SUCCESS);
          break;
        }
        if (tokens < 1) break;
        tokens -= 1;
        retries += 1;
      }
    }
    expect(tries).toBe(calls + retries);
    expect(retries).toBeLessThanOrEqual(FULL + successes * PER_SUCCESS + (calls * gap) / REFILL_EVERY);
    if (failing >= 0.2) {
      // The bound is used up, so the load is that of the closed form: successes are all tries that did not fail.
      const expected = (1 + gap / REFILL_EVERY + FULL / calls) / (1 - PER_SUCCESS * (1 - failing));
      expect(Math.abs(tries / calls / expected - 1)).toBeLessThan(TOLERANCE);
    }
  }
});
