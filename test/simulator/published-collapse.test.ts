import { expect, test } from 'vitest';
import { ceiling, exponential } from '../../src/failure/backoff.ts';
import { jittered } from '../../src/failure/jitter.ts';
import { type Chance, chance, EventLoop } from './event-loop.ts';

/*
 * "What is Backoff For?" (Marc Brooker, 2022), the second simulation: the more requests a server works on, the longer each takes:
 * 1 s + 10 ms for each in flight. Clients give a request up after 3 s, which the server does not notice, and try three times in all.
 * With backoff the load of a short spike is worked off; without it the server never recovers. Of a load that stays above what the server can
 * do, backoff saves nobody. Numbers: 10 runs of the published program.
 */

const RUNS = 10;
const NETWORK = 0.1;
const TIMEOUT = 3;
const TRIES = 3;

/** The published client waits between 0 and 20 s before its first retry, and up to 40 s before its second. */
const BACKOFF = exponential({ base: '20s' });

type Load = (now: number) => number;

/** 40 requests a second, and 80 between seconds 20 and 25. */
const spike: Load = (now) => (now < 20 || now > 25 ? 40 : 80);

/** Up to 80 requests a second at second 25, then down again. */
const ramp: Load = (now) => 80 - 1.6 * Math.abs(now - 25);

/** Of each run: how many requests a second are answered in time, from one second to another. */
function goodputs(load: Load, backsOff: boolean, from: number, to: number, runs = RUNS): number[] {
  const random = chance(5);
  return Array.from({ length: runs }, () => simulate(load, backsOff, random, from, to) / (to - from));
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, each) => sum + each, 0) / values.length;
}

function simulate(load: Load, backsOff: boolean, random: Chance, from: number, to: number): number {
  const loop = new EventLoop();
  const network = () => random.exponential(NETWORK);
  let [inFlight, answered] = [0, 0];

  const request = (now: number) => {
    let current = 1;
    const send = (at: number, attempt: number) => {
      loop.at(at + network(), (arrived) => {
        inFlight += 1;
        loop.at(arrived + 1 + inFlight * 0.01, (done) => {
          inFlight -= 1;
          loop.at(done + network(), (back) => {
            if (attempt !== current) return;
            current = 0;
            if (back >= from && back < to) answered += 1;
          });
        });
      });
      loop.at(at + TIMEOUT, (late) => {
        if (attempt !== current) return;
        current += 1;
        const wait = backsOff ? jittered(ceiling(BACKOFF, attempt), { kind: 'full' }, random.roll()).delay / 1_000 : 0;
        if (current <= TRIES) send(late + wait, current);
      });
    };
    send(now, 1);
    const rate = load(now);
    if (rate > 0) loop.at(now + random.exponential(1 / rate), request);
  };

  loop.at(0.01, request);
  loop.run(to);
  return answered;
}

test('before the spike both serve what arrives', () => {
  for (const backsOff of [false, true]) expect(Math.abs(mean(goodputs(spike, backsOff, 5, 20)) - 40)).toBeLessThan(2);
});

test('after a spike of 5 s a server recovers where its clients back off with jitter', () => {
  expect(Math.abs(mean(goodputs(spike, true, 40, 75)) - 42.2)).toBeLessThan(2);
});

/** The published mean of 10 runs, 16.2, is that of four that recovered. */
test('after a spike of 5 s most servers serve nobody any more where their clients do not back off', () => {
  const runs = goodputs(spike, false, 40, 75, 25);
  const recovered = runs.filter((goodput) => goodput > 37);
  const collapsed = runs.filter((goodput) => goodput < 1);
  expect(recovered.length + collapsed.length).toBe(runs.length);
  expect(collapsed.length).toBeGreaterThan(runs.length / 2);
  const deviationOfPublished = 40 * Math.sqrt((0.4 * 0.6) / 10);
  expect(Math.abs(mean(runs) - 16.2)).toBeLessThan(2 * deviationOfPublished);
});

test('under a load that stays too high nobody is served in the end, with or without backoff', () => {
  for (const backsOff of [false, true]) expect(mean(goodputs(ramp, backsOff, 30, 40))).toBeLessThan(2);
});
