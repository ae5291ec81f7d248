import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { onInterrupt } from '../../src/cli/terminal/interrupts.ts';

const heard: (readonly [number, string])[] = [];
let now = 0;
let stop = () => {};
beforeEach(() => {
  heard.length = 0;
  vi.spyOn(performance, 'now').mockImplementation(() => now);
  stop = onInterrupt((times, signal) => heard.push([times, signal]));
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
});

function press(signal: NodeJS.Signals, after: number): void {
  now += after;
  process.emit(signal, signal);
}

test('distinguishes the first interrupt from the second', () => {
  press('SIGINT', 0);
  press('SIGINT', 200);
  expect(heard).toEqual([
    [1, 'SIGINT'],
    [2, 'SIGINT'],
  ]);
});

test('the same signal again at once is what npx passes on, another one is not', () => {
  press('SIGINT', 0);
  press('SIGINT', 5);
  press('SIGTERM', 5);
  expect(heard).toEqual([
    [1, 'SIGINT'],
    [2, 'SIGTERM'],
  ]);
});

test('a third one ends the process, if the second did not help for a second', () => {
  const exit = vi.spyOn(process, 'exit').mockImplementation((() => {}) as never);
  press('SIGINT', 0);
  press('SIGINT', 200);
  press('SIGINT', 200);
  expect(exit).not.toHaveBeenCalled();
  press('SIGINT', 1_001);
  expect(exit).toHaveBeenCalledWith(130);
});

test('nothing is heard after the end', () => {
  stop();
  expect(process.listenerCount('SIGTERM')).toBe(0);
});
