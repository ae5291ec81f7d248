import { expect, test } from 'vitest';
import { plotOutages } from '../../src/simulator/plot.ts';
import type { Sample } from '../../src/simulator/tally.ts';

function samples(count: number, more: Partial<Sample> = {}): Sample[] {
  return Array.from({ length: count }, (_, i) => ({
    at: (i - 10) * 1_000,
    lasted: 1_000,
    calls: { served: 5, down: i % 3, throttled: 0 },
    waiting: i,
    ...more,
  }));
}

test('shows the calls of each policy, the conditions of a source that is remembered, and the tasks that wait', () => {
  const svg = plotOutages(30_000, [
    { policy: 'plain & simple', samples: samples(50) },
    { policy: 'holdfast', samples: samples(50, { condition: 'ramping' }) },
  ]);
  expect(svg).toContain('plain &amp; simple: calls per second');
  expect(svg.match(/<rect class="ramping"/g)).toHaveLength(2);
  expect(svg).toContain('source ramping');
  expect(svg.match(/<path class="line line\d" d="M[^h]*"/g)).toHaveLength(2);
  expect(svg).not.toMatch(/NaN|undefined|Infinity/);
});

test('joins neighbouring samples where there are very many, so that a long simulation stays a small file', () => {
  const svg = plotOutages(3_600_000, [{ policy: 'plain', samples: samples(20_000) }]);
  expect(svg.length).toBeLessThan(60_000);
});
