import { expect, test } from 'vitest';
import { ceiling, exponential } from '../../src/failure/backoff.ts';
import { type Jitter, jittered } from '../../src/failure/jitter.ts';
import { type Chance, chance, EventLoop } from './event-loop.ts';

/*
 * The simulation of "Exponential Backoff And Jitter" (AWS Architecture Blog, github.com/aws-samples/aws-arch-backoff-simulator): clients
 * read the version of one row and write it back. A write of an old version fails, and the client waits and begins again. A message
 * takes |N(10, 2)| ms. Our backoff and our jitter draw the waits. The published program gave the expected numbers, 100 runs each.
 */

type Algorithm = 'exponential' | 'decorrelated' | 'equal' | 'full' | 'none';

const EXPECTED = {
  20: {
    exponential: [151.5, 14_817],
    decorrelated: [102, 803],
    equal: [107.5, 1_683],
    full: [99.9, 1_012],
    none: [151.4, 596],
  },
  50: {
    exponential: [620, 35_972],
    decorrelated: [375.5, 2_277],
    equal: [346.4, 4_215],
    full: [332.8, 2_842],
    none: [690, 1_146],
  },
  100: {
    exponential: [1_861, 63_572],
    decorrelated: [1_000, 4_576],
    equal: [813, 6_620],
    full: [795, 4_925],
    none: [2_422, 2_026],
  },
} as const satisfies Readonly<Record<number, Readonly<Record<Algorithm, readonly [calls: number, ms: number]>>>>;

const RUNS = 100;

/** Three standard errors of the mean. */
const CALLS_WITHIN = 0.02;
const TIME_WITHIN = 0.05;

test.each([20, 50, 100] as const)('%i clients need as many calls and as much time as published', (clients) => {
  const means = {} as Record<Algorithm, Mean>;
  for (const algorithm of ['exponential', 'decorrelated', 'equal', 'full', 'none'] as const) {
    const [calls, ms] = EXPECTED[clients][algorithm];
    const mean = simulate(algorithm, clients);
    expect(Math.abs(mean.calls / calls - 1), `calls with ${algorithm}: ${mean.calls}`).toBeLessThan(CALLS_WITHIN);
    expect(Math.abs(mean.ms / ms - 1), `time with ${algorithm}: ${mean.ms}`).toBeLessThan(TIME_WITHIN);
    means[algorithm] = mean;
  }
  if (clients === 100) expectPublishedOrder(means);
});

/** With full jitter 100 clients need less than half of the calls, and about as much time as with decorrelated jitter. */
function expectPublishedOrder({ exponential, decorrelated, equal, full, none }: Record<Algorithm, Mean>): void {
  expect(full.calls).toBeLessThan(exponential.calls / 2);
  const byCalls = [full, equal, decorrelated, exponential, none].map(({ calls }) => calls);
  expect(byCalls).toEqual([...byCalls].sort((a, b) => a - b));
  const byTime = [none, decorrelated, full, equal, exponential].map(({ ms }) => ms);
  expect(byTime).toEqual([...byTime].sort((a, b) => a - b));
}

interface Mean {
  readonly calls: number;
  readonly ms: number;
}

function simulate(algorithm: Algorithm, clients: number): Mean {
  const random = chance(clients);
  let [calls, ms] = [0, 0];
  for (let run = 0; run < RUNS; run++) {
    const once = contend(algorithm, clients, random);
    calls += once.calls;
    ms += once.ms;
  }
  return { calls: calls / RUNS, ms: ms / RUNS };
}

/** One run: until every client has written. */
function contend(algorithm: Algorithm, clients: number, random: Chance): Mean {
  const loop = new EventLoop();
  const hop = () => Math.abs(random.normal(10, 2));
  let [version, calls] = [0, 0];
  for (let n = 0; n < clients; n++) {
    const wait = waits(algorithm, random);
    let attempt = 0;
    const read = (now: number) => {
      const seen = version;
      loop.at(now + hop() + hop(), (arrives) => write(arrives, seen));
    };
    const write = (now: number, seen: number) => {
      calls += 1;
      if (seen === version) {
        version += 1;
        loop.at(now + hop(), () => {});
        return;
      }
      attempt += 1;
      loop.at(now + hop() + hop() + wait(attempt), read);
    };
    loop.at(hop(), read);
  }
  loop.run();
  return { calls, ms: loop.now };
}

/** 10 ms, doubling up to 2 s: the published base of 5 ms is doubled before the first retry. */
const BACKOFF = exponential({ base: '10ms', cap: '2s' });
const JITTERS = { exponential: 'none', equal: 'equal', full: 'full' } as const;

function waits(algorithm: Algorithm, { roll }: Chance): (attempt: number) => number {
  switch (algorithm) {
    case 'none':
      return () => 0;
    case 'decorrelated': {
      let sleep = 5;
      return () => {
        sleep = Math.min(2_000, 5 + roll() * (sleep * 3 - 5));
        return sleep;
      };
    }
    case 'exponential':
    case 'equal':
    case 'full': {
      const jitter: Jitter = { kind: JITTERS[algorithm] };
      return (attempt) => jittered(ceiling(BACKOFF, attempt), jitter, roll()).delay;
    }
  }
}
