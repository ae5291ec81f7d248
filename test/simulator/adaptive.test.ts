import { describe, expect, test } from 'vitest';
import { type ObservedRetries, waitClass, waitOfClass } from '../../src/failure/adaptive.ts';
import { type Backoff, exponential, fixed } from '../../src/failure/backoff.ts';
import type { Charged } from '../../src/failure/decide.ts';
import { definePolicy, type Policy } from '../../src/failure/policy.ts';
import { dice } from '../../src/testing/dice.ts';
import { decided, failed } from '../failure/given.ts';

/*
 * What adaptive delays are worth: tasks fail one after another, each with the same reason, and `decide` gives the delays. The
 * table in docs/decisions/0030 is printed with PRINT_ADAPTIVE=1 npx vitest run --project fast test/simulator/adaptive.test.ts
 */

/** From when on a task succeeds, in ms after its first failure; or with which chance at any time. */
type World = (random: () => number, task: number) => (passed: number) => boolean;

function lastingFor(median: number, spread: number, random: () => number): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return median * Math.exp(spread * normal);
}

function locks(median: number, spread: number): World {
  return (random) => {
    const until = lastingFor(median, spread, random);
    return (passed) => passed >= until;
  };
}

const TASKS = 600;
const WORLDS = {
  'a lock of about 45 s': locks(45_000, 0.5),
  'a lock of about 45 s, widely spread': locks(45_000, 1),
  'a limit that begins anew each minute': (random) => {
    const until = 60_000 * random();
    return (passed) => passed >= until;
  },
  'half of all retries succeed, whenever': (random) => () => random() < 0.5,
  'no retry succeeds': () => () => false,
  'about 45 s at first, then 1 s': (random, task) => locks(task < TASKS / 2 ? 45_000 : 1_000, 0.5)(random, task),
} satisfies Record<string, World>;

const BACKOFF = exponential({ base: '1s', cap: '5m' });
const given = (backoff: Backoff, adaptive: boolean) => definePolicy({ backoff, adaptive, maxAttempts: 8 });
const POLICIES = {
  exponential: given(BACKOFF, false),
  adaptive: given(BACKOFF, true),
  'fixed 30s': given(fixed('30s'), false),
};

interface Result {
  /** Per task. */
  readonly executions: number;
  /** The share of tasks whose attempts were used up. */
  readonly dead: number;
  /** In seconds, of those that succeeded. */
  readonly median: number;
}

/** The last `measured` tasks count. What the last 300 retries did is known. */
function simulate(world: World, policy: Policy, measured = TASKS): Result {
  const random = dice(1);
  const counts = new Map<number, { retries: number; succeeded: number }>();
  const recent: [number, boolean][] = [];
  const waits: number[] = [];
  let executions = 0;
  for (let task = 0; task < TASKS; task++) {
    const succeeds = world(random, task);
    const observed = [...counts].map(
      ([exponent, each]): ObservedRetries => ({ waited: waitOfClass(exponent), ...each }),
    );
    const { tries, waited } = runOne(succeeds, policy, observed, random, (after, succeeded) => {
      const count = ([exponent, success]: [number, boolean], by: 1 | -1) => {
        const before = counts.get(exponent) ?? { retries: 0, succeeded: 0 };
        counts.set(exponent, { retries: before.retries + by, succeeded: before.succeeded + by * Number(success) });
      };
      recent.push([waitClass(after), succeeded]);
      count(recent.at(-1) as [number, boolean], 1);
      if (recent.length > 300) count(recent.shift() as [number, boolean], -1);
    });
    if (task < TASKS - measured) continue;
    executions += tries;
    if (waited !== undefined) waits.push(waited);
  }
  waits.sort((a, b) => a - b);
  return {
    executions: executions / measured,
    dead: 1 - waits.length / measured,
    median: (waits[waits.length >> 1] ?? 0) / 1_000,
  };
}

function runOne(
  succeeds: (passed: number) => boolean,
  policy: Policy,
  observed: readonly ObservedRetries[],
  random: () => number,
  observe: (waited: number, succeeded: boolean) => void,
) {
  let charged: Charged[] = [];
  let waited = 0;
  for (let tries = 1; ; tries++) {
    const { next, after = 0 } = decided(failed(), policy, { executions: tries, charged, observed }, random());
    if (next !== 'scheduled') return { tries, waited: undefined };
    waited += after;
    charged = [{ reason: 'app.broke', kind: 'transient', count: tries, delayMs: waited }];
    const succeeded = succeeds(waited);
    observe(waited, succeeded);
    if (succeeded) return { tries: tries + 1, waited };
  }
}

const results = Object.fromEntries(
  Object.entries(WORLDS).map(([name, world]) => {
    const of = Object.entries(POLICIES).map(([policy, each]) => [policy, simulate(world, each)] as const);
    return [name, Object.fromEntries(of)];
  }),
) as Record<keyof typeof WORLDS, Record<keyof typeof POLICIES, Result>>;

if (process.env.PRINT_ADAPTIVE) {
  for (const [name, of] of Object.entries(results)) {
    const cells = Object.values(of).map(
      ({ executions, dead, median }) =>
        `${executions.toFixed(1)} · ${(100 * dead).toFixed(1)} % · ${median.toFixed(0)} s`,
    );
    process.stdout.write(`| ${[name, ...cells].join(' | ')} |\n`);
  }
}

describe('adaptive delays, compared with an exponential backoff in a simulation', () => {
  test.each(['a lock of about 45 s', 'a limit that begins anew each minute'] as const)(
    '%s: a quarter fewer executions, no more dead',
    (name) => {
      const { exponential: plain, adaptive } = results[name];
      expect(adaptive.executions).toBeLessThan(0.75 * plain.executions);
      expect(adaptive.dead).toBeLessThanOrEqual(plain.dead);
      expect(adaptive.median).toBeLessThan(1.5 * plain.median);
    },
  );

  test.each(['half of all retries succeed, whenever', 'no retry succeeds'] as const)(
    '%s: they cost hardly anything',
    (name) => {
      const { exponential: plain, adaptive } = results[name];
      expect(adaptive.executions).toBeLessThan(1.05 * plain.executions);
      expect(adaptive.median).toBeLessThan(plain.median + 2);
    },
  );

  test('come back to shorter delays if these succeed again', () => {
    const world = WORLDS['about 45 s at first, then 1 s'];
    expect(simulate(world, POLICIES.adaptive, TASKS / 3).median).toBeLessThan(9);
  });
});
