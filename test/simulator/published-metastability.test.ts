import { expect, test } from 'vitest';
import { type Chance, chance, EventLoop } from './event-loop.ts';

/*
 * "Metastable Failures in Distributed Systems" (HotOS 2021): a database that serves 300 queries a second in their order is away for 10 s.
 * Clients give a query up after 1 s and send it once more; the database works on what was given up all the same. With one retry it
 * recovers only below half of its capacity, and stays busy with dead queries above that. A budget for retries moves that border to
 * where load and retries together fit in: 260·1.1 < 300 < 280·1.1.
 */

const CAPACITY = 300;
const TIMEOUT = 1;
const OUTAGE = { from: 20, until: 30 };
const END = 400;

interface Ended {
  /** When queries were first answered in time again, for five seconds, counted from the end of the outage. */
  readonly recoveredAfter: number | undefined;
  /** In the last 50 s. */
  readonly goodput: number;
  readonly offered: number;
}

/** `budget`: retries for each query; 1 is one retry for each that was given up. */
function simulate(rate: number, budget: number, random: Chance): Ended {
  const loop = new EventLoop();
  let [freeAt, tokens, offered] = [0, 0, 0];
  const answeredIn = new Array<number>(END).fill(0);
  const arrivedIn = new Array<number>(END).fill(0);

  const send = (now: number, isRetry: boolean) => {
    if (now >= END - 50) offered += 1;
    const next = Math.max(now, freeAt);
    freeAt = (next >= OUTAGE.from && next < OUTAGE.until ? OUTAGE.until : next) + 1 / CAPACITY;
    if (freeAt - now <= TIMEOUT) {
      const second = Math.floor(freeAt);
      if (second < END) answeredIn[second] = (answeredIn[second] as number) + 1;
      return;
    }
    if (isRetry) return;
    loop.at(now + TIMEOUT, (late) => {
      if (budget < 1) {
        if (tokens < 1) return;
        tokens -= 1;
      }
      send(late, true);
    });
  };
  const query = (now: number) => {
    arrivedIn[Math.floor(now)] = (arrivedIn[Math.floor(now)] as number) + 1;
    tokens = Math.min(10, tokens + budget);
    send(now, false);
    loop.at(now + random.exponential(1 / rate), query);
  };
  loop.at(0, query);
  loop.run(END - 0.001);

  const isServed = (second: number) => (answeredIn[second] as number) > 0.9 * (arrivedIn[second] as number);
  let recovered: number | undefined;
  for (let second = OUTAGE.until; second < END - 5 && recovered === undefined; second++) {
    if ([0, 1, 2, 3, 4].every((more) => isServed(second + more))) recovered = second - OUTAGE.until;
  }
  const last = answeredIn.slice(END - 50).reduce((sum, each) => sum + each, 0);
  return { recoveredAfter: recovered, goodput: last / 50, offered: offered / 50 };
}

test('with one retry a database recovers below half of its capacity, and never above', () => {
  const random = chance(7);
  for (const rate of [100, 120, 140]) expect(simulate(rate, 1, random).recoveredAfter).toBeDefined();
  for (const rate of [160, 200, 280]) expect(simulate(rate, 1, random).recoveredAfter).toBeUndefined();
});

test.each([
  [120, 33],
  [140, 106],
])('at %i queries a second it recovers in about %i s', (rate, published) => {
  const random = chance(8);
  const times = Array.from({ length: 10 }, () => simulate(rate, 1, random).recoveredAfter as number);
  const mean = times.reduce((sum, each) => sum + each, 0) / times.length;
  expect(Math.abs(mean / published - 1)).toBeLessThan(0.25);
});

test('at 280 queries a second it is offered twice as many for ever, and answers none in time', () => {
  const { offered, goodput } = simulate(280, 1, chance(9));
  expect(offered).toBeGreaterThan(550);
  expect(offered).toBeLessThan(570);
  expect(goodput).toBe(0);
});

test('with retries for a tenth of the queries it recovers at 260 a second, and not at 280', () => {
  const random = chance(10);
  expect(simulate(260, 0.1, random).recoveredAfter).toBeDefined();
  expect(simulate(280, 0.1, random).recoveredAfter).toBeUndefined();
});
