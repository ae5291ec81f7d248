import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';

/** What Node's own timers can hold: longer ones fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1;

const warnings: unknown[] = [];
const note = (warning: unknown) => void warnings.push(warning);
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  process.on('warning', note);
});
afterEach(() => {
  vi.useRealTimers();
  process.off('warning', note);
  expect(warnings).toEqual([]);
});

test('the clock of the host waits longer than its timers can', () => {
  let fired = 0;
  const year = 365 * 86_400_000;
  systemClock.after(year, () => {
    fired += 1;
  });

  vi.advanceTimersByTime(LONGEST_TIMER);
  vi.advanceTimersByTime(year - LONGEST_TIMER - 1);
  expect(fired).toBe(0);
  vi.advanceTimersByTime(1);
  expect(fired).toBe(1);
  expect(vi.getTimerCount()).toBe(0);
});

test('a long wait can be called off at any time', () => {
  let fired = 0;
  const stop = systemClock.after(10 * LONGEST_TIMER, () => {
    fired += 1;
  });
  vi.advanceTimersByTime(3 * LONGEST_TIMER);

  stop();
  vi.advanceTimersByTime(20 * LONGEST_TIMER);

  expect(fired).toBe(0);
  expect(vi.getTimerCount()).toBe(0);
});
