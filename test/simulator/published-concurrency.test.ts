import { expect, test } from 'vitest';
import { type Chance, chance, EventLoop } from './event-loop.ts';

/*
 * Postfix's concurrency scheduler (SCHEDULER_README, measured in 2007): a client that may have up to 20 deliveries at a time to a server
 * that refuses at once what is above 5. A success raises the client's concurrency by `feedback` of its present value, a failure lowers it.
 * Positive feedback acts when a whole step has come together, negative feedback at once: so N keeps near what the server takes.
 * 1,000 deliveries of 2 s. Two numbers are ours: a delivery's length varies by 2 %, and a refusal is back after 10 ms.
 */

const SERVER_LIMIT = 5;
const CLIENT_LIMIT = 20;
const START = 5;
const DELIVERIES = 1_000;
const RUNS = 20;

/** In seconds. */
const DELIVERED_AFTER = 2;
const VARIES_BY = 0.02;
const REFUSED_AFTER = 0.01;

interface Measured {
  /** Percent of the deliveries. */
  readonly deferred: number;
  readonly mean: number;
  readonly deviation: number;
}

function deliver(feedback: (concurrency: number) => number, random: Chance): Measured {
  const loop = new EventLoop();
  let [allowed, success, failure] = [START, 0, 0];
  let [atClient, atServer, sent, deferred] = [0, 0, 0, 0];
  const seen: number[] = [];

  const send = () => {
    while (sent < DELIVERIES && atClient < allowed) {
      sent += 1;
      atClient += 1;
      if (atServer >= SERVER_LIMIT) {
        loop.at(loop.now + REFUSED_AFTER, refused);
      } else {
        atServer += 1;
        loop.at(loop.now + DELIVERED_AFTER * (1 + VARIES_BY * (2 * random.roll() - 1)), delivered);
      }
    }
  };
  const delivered = () => {
    atServer -= 1;
    atClient -= 1;
    success += feedback(allowed);
    while (success >= 1) {
      success -= 1;
      failure = 0;
      allowed = Math.min(CLIENT_LIMIT, allowed + 1);
    }
    seen.push(allowed);
    send();
  };
  const refused = () => {
    atClient -= 1;
    deferred += 1;
    failure -= feedback(allowed);
    while (failure < 0) {
      allowed = Math.max(1, allowed - 1);
      failure += 1;
      success = 0;
    }
    seen.push(allowed);
    send();
  };

  send();
  loop.run();
  const mean = seen.reduce((sum, each) => sum + each, 0) / seen.length;
  const variance = seen.reduce((sum, each) => sum + (each - mean) ** 2, 0) / seen.length;
  return { deferred: (deferred / DELIVERIES) * 100, mean, deviation: Math.sqrt(variance) };
}

test.each([
  { name: '1/N', feedback: (n: number) => 1 / n, deferred: 16.5, mean: 5.17, deviation: 0.38 },
  { name: '1/√N', feedback: (n: number) => 1 / Math.sqrt(n), deferred: 24.5, mean: 5.28, deviation: 0.45 },
  { name: '1', feedback: () => 1, deferred: 49.7, mean: 5.63, deviation: 0.67 },
])('with a feedback of $name $deferred % of the deliveries are refused', ({ feedback, ...published }) => {
  const random = chance(6);
  const runs = Array.from({ length: RUNS }, () => deliver(feedback, random));
  const over = (of: (run: Measured) => number) => runs.reduce((sum, run) => sum + of(run), 0) / RUNS;
  expect(Math.abs(over((run) => run.deferred) - published.deferred)).toBeLessThan(0.5);
  expect(Math.abs(over((run) => run.mean) - published.mean)).toBeLessThan(0.05);
  expect(Math.abs(over((run) => run.deviation) - published.deviation)).toBeLessThan(0.1);
});
