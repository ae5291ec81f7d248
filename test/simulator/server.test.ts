import fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Answer, SimulatedServer } from '../../src/simulator/server.ts';

const TIMES = fc
  .array(fc.integer({ min: 0, max: 5_000 }), { maxLength: 500 })
  .map((times) => times.sort((a, b) => a - b));

test('serves no more calls in any second than its capacity, and throttles a call only where that many were served', () => {
  fc.assert(
    fc.property(TIMES, fc.integer({ min: 1, max: 20 }), (times, capacity) => {
      const server = new SimulatedServer({ downFrom: 0, downUntil: 0, capacity });
      const served: number[] = [];
      for (const now of times) {
        const inThisSecond = served.filter((at) => now - at < 1_000).length;
        const answer = server.answer(now);
        expect(answer).toBe(inThisSecond < capacity ? 'served' : 'throttled');
        if (answer === 'served') served.push(now);
      }
    }),
  );
});

test('fails every call from the beginning of the outage until its end, and serves again from there', () => {
  const server = new SimulatedServer({ downFrom: 1_000, downUntil: 3_000, capacity: 10 });
  const answers = [999, 1_000, 2_999, 3_000].map((now): Answer => server.answer(now));
  expect(answers).toEqual(['served', 'down', 'down', 'served']);
});
