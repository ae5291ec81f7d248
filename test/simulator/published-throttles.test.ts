import { expect, test } from 'vitest';
import { chance } from './event-loop.ts';

/*
 * Throttles of clients that others publish, as small models: what a budget or a breaker of ours is compared with.
 */

/**
 * "Handling Overload" (Google SRE): a client refuses its own requests with a chance of (requests − K·accepts) / (requests + 1), counted
 * over two minutes, at least 0. So it sends about K times what is accepted.
 */
test.each([
  { demand: 1_000, accepts: 50, K: 2, sends: 99.3 },
  { demand: 1_000, accepts: 50, K: 1.1, sends: 52.9 },
  { demand: 100, accepts: 50, K: 1.1, sends: 54.8 },
  { demand: 40, accepts: 50, K: 2, sends: 40 },
])('adaptive throttling sends about K · accepted, or all: $sends of $demand', ({ demand, accepts, K, sends }) => {
  const { roll } = chance(11);
  const [window, seconds] = [120, 600];
  const history: { readonly requests: number; readonly accepted: number }[] = [];
  let [requests, accepted, sentAtTheEnd] = [0, 0, 0];
  for (let second = 0; second < seconds; second++) {
    let sent = 0;
    const now = { requests: 0, accepted: 0 };
    for (let i = 0; i < demand; i++) {
      const refuses = Math.max(0, (requests - K * accepted) / (requests + 1));
      requests += 1;
      now.requests += 1;
      if (roll() < refuses) continue;
      sent += 1;
      if (sent > accepts) continue;
      accepted += 1;
      now.accepted += 1;
    }
    history.push(now);
    const oldest = history[history.length - 1 - window];
    if (oldest) {
      requests -= oldest.requests;
      accepted -= oldest.accepted;
    }
    if (second >= seconds - window) sentAtTheEnd += sent;
  }
  expect(Math.abs(sentAtTheEnd / window / sends - 1)).toBeLessThan(0.05);
});

/** gRPC A6: a failure takes a token, a success gives `ratio` back; there are retries while more than half of the tokens are left. */
function throttle(most: number, ratio: number) {
  let tokens = most;
  return {
    failed() {
      tokens = Math.max(0, tokens - 1);
    },
    succeeded() {
      tokens = Math.min(most, tokens + ratio);
    },
    get mayRetry() {
      return tokens > most / 2;
    },
  };
}

test('gRPC: ten tokens and a ratio of 0.1 stop retries at the fifth failure, and a success allows them again', () => {
  const tokens = throttle(10, 0.1);
  for (let failures = 1; failures <= 4; failures++) {
    tokens.failed();
    expect(tokens.mayRetry).toBe(true);
  }
  tokens.failed();
  expect(tokens.mayRetry).toBe(false);
  tokens.succeeded();
  expect(tokens.mayRetry).toBe(true);
});

test('gRPC: in the long run retries stop where more than 0.1 / 1.1 of the calls fail', () => {
  for (const [share, mayRetry] of [
    [0.08, true],
    [0.1, false],
  ] as const) {
    const { roll } = chance(12);
    const tokens = throttle(10, 0.1);
    let allowed = 0;
    const [calls, settled] = [200_000, 20_000];
    for (let call = 0; call < calls; call++) {
      if (roll() < share) tokens.failed();
      else tokens.succeeded();
      if (call >= settled && tokens.mayRetry) allowed += 1;
    }
    expect(allowed / (calls - settled) > 0.5).toBe(mayRetry);
  }
});

/** Netflix's VegasLimit: alpha 3, beta 6 and steps of log₁₀ of the limit; a queue is what waits beyond the shortest round trip. */
function vegas(initial: number, most: number) {
  let limit = initial;
  let shortest = Number.POSITIVE_INFINITY;
  return (roundTrip: number): number => {
    if (roundTrip < shortest) {
      shortest = roundTrip;
      return limit;
    }
    const log = Math.max(1, Math.floor(Math.log10(limit)));
    const queue = Math.ceil(limit * (1 - shortest / roundTrip));
    const [alpha, beta] = [3 * log, 6 * log];
    if (queue <= log) limit += beta;
    else if (queue < alpha) limit += log;
    else if (queue > beta) limit -= log;
    limit = Math.min(most, limit);
    return limit;
  };
}

test('Netflix Vegas: the vectors of its own tests', () => {
  const rises = vegas(10, 20);
  expect([rises(10), rises(10)]).toEqual([10, 16]);
  const falls = vegas(10, 20);
  expect([falls(10), falls(50)]).toEqual([10, 9]);
  const stays = vegas(10, 20);
  expect([stays(10), stays(14)]).toEqual([10, 10]);
  const large = vegas(10_000, 20_000);
  expect([large(10), large(10)]).toEqual([10_000, 10_024]);
});
