import { describe, expect, test } from 'vitest';
import { backoff } from '../demos/backoff.js';
import { capabilities } from '../demos/capabilities.js';
import { complete } from '../demos/complete.js';
import { deadLetters } from '../demos/dead-letters.js';
import { fail } from '../demos/fail.js';
import { gracefulStop } from '../demos/graceful-stop.js';
import { maxIterations } from '../demos/max-iterations.js';
import { renew } from '../demos/renew.js';
import { strategies } from '../demos/strategies.js';
import { tenMinutes } from '../orders.js';

async function linesOf(demo: (say: (line: string) => void) => Promise<void>): Promise<readonly string[]> {
  const lines: string[] = [];
  await demo((line) => lines.push(line));
  return lines;
}

describe('the demo', () => {
  test('complete: a task is claimed, completed with a result, and that once', async () => {
    expect(await linesOf(complete)).toEqual([
      '#1 is leased to worker-001: attempt 1 of 5',
      '#1 has succeeded, with {"greeting":"Hello, world!"}',
      'the claim is spent: a second end is refused with state_conflict',
    ]);
  });

  test('fail: with a retry and without one, by hand and in a handler', async () => {
    expect(await linesOf(fail)).toEqual([
      'resize #1 is scheduled after 1 failed attempt: unknown',
      'resize #2 is dead after 1 failed attempt: explicit.permanent',
      'check #3 is scheduled after 1 failed attempt: code.bug',
      'check #4 is dead after 1 failed attempt: order.closed',
      'check #3 has succeeded two seconds later',
    ]);
  });

  test('backoff: five delays from 1 s to 16 s, each ±10 %, then dead', async () => {
    const lines = await linesOf(backoff);
    const ranges = ['0.9 s to 1.1 s', '1.8 s to 2.2 s', '3.6 s to 4.4 s', '7.2 s to 8.8 s', '14.4 s to 17.6 s'];
    expect(lines.slice(0, 5)).toEqual(
      ranges.map((range, n) => expect.stringContaining(`attempt ${n + 1} failed: wait ${range}, this time `)),
    );
    expect(lines[5]).toMatch(/^attempt 6 failed: dead, ended at 00:00:3\d, never to be retried by itself$/);
    expect(lines).toHaveLength(6);
  });

  test('renew: a lease holds while it is renewed, and its loser changes nothing', async () => {
    expect(await linesOf(renew)).toEqual([
      'after 45 s: valid',
      'three minutes later, for it was renewed: nobody else gets it',
      "three minutes without a renewal: the task is the second worker's",
      "the first one's result is refused with lease_lost",
      'a handler that took ten minutes has succeeded, in 1 execution: its worker renewed',
    ]);
  });

  test('capabilities: a worker takes what it can meet, and leaves the rest', async () => {
    expect(await linesOf(capabilities)).toEqual([
      'a worker with 8 processors and an RTX5090:',
      'renders a thumbnail',
      'renders a still, on 4 processors',
      'renders a game, on its card',
      'left for another worker: a film, on 16 processors, which needs {"cpu":16}',
      'left for another worker: a game, on another card, which needs {"gpu":"A100"}',
    ]);
  });

  test('strategies: oldest first, newest first, by priority, and by chance', async () => {
    const lines = await linesOf(strategies);
    expect(lines.slice(0, 3)).toEqual([
      'fifo: enqueued with the priorities 2, 1, 9, 5, started as 2, 1, 9, 5',
      'lifo: enqueued with the priorities 2, 1, 9, 5, started as 5, 9, 1, 2',
      'priority: enqueued with the priorities 2, 1, 9, 5, started as 9, 5, 2, 1',
    ]);
    const share = Number(/before priority 1 in (\d+) of 100$/.exec(lines[4] ?? '')?.[1]);
    expect(share).toBeGreaterThan(85);
    expect(share).toBeLessThan(95);
  });

  test('max-iterations: exactly ten tasks, then one at a time until none is ready', async () => {
    expect(await linesOf(maxIterations)).toEqual([
      'a worker of ten iterations has ended: 10 done, 2 left',
      'one more: 11 done, 1 left',
      'one more: 12 done, 0 left',
      'runOne answers undefined: nothing is ready',
    ]);
  });

  test('graceful-stop: what runs may end, what takes too long is handed back, and nothing is counted', async () => {
    expect(await linesOf(gracefulStop)).toEqual([
      'short: succeeded, 1 executions, 0 attempts counted',
      'long: ready, 1 executions, 0 attempts counted',
      'waiting: ready, 0 executions, 0 attempts counted',
      'workers left: 0',
    ]);
  });

  test('dead-letters: each with its last error and its end, newest first, until one is put back', async () => {
    expect(await linesOf(deadLetters)).toEqual([
      expect.stringMatching(/^#2 died at 00:00:0\d after 2 attempts: b\.csv has no header\.$/),
      expect.stringMatching(/^#1 died at 00:00:0\d after 2 attempts: a\.csv has no header\.$/),
      'dead: 2 × csv.header',
      'put back with a new round of attempts: #2 has succeeded',
    ]);
  });
});

test('the model of orders: a priority queue starts urgent tasks at once where a worker of each strategy lets them wait', () => {
  expect(tenMinutes(['priority', 'priority'], 0.4)).toEqual({ ordinary: 960, urgent: 240, urgentWait95: 0 });
  expect(tenMinutes(['fifo', 'priority'], 0.4)).toEqual({ ordinary: 960, urgent: 240, urgentWait95: 0 });
  expect(tenMinutes(['priority', 'priority'], 1.2)).toEqual({ ordinary: 481, urgent: 719, urgentWait95: 0 });
  expect(tenMinutes(['fifo', 'priority'], 1.2)).toEqual({ ordinary: 600, urgent: 600, urgentWait95: 95 });
});
