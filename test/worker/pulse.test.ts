import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { VirtualClock } from '../../src/testing/index.ts';
import { type Freeze, Pulse } from '../../src/worker/pulse.ts';

const START = Date.UTC(2026, 0, 1);

function scene() {
  const clock = new VirtualClock(new Date(START));
  const pulse = new Pulse(clock);
  const told: (Freeze | 'pulse')[] = [];
  let needed = true;
  pulse.listen({ isNeeded: () => needed, onPulse: (freeze) => told.push(freeze ?? 'pulse') });
  const move = (by: number) => clock.moveTo(clock.now() + by);
  const isNeededNoMore = () => {
    needed = false;
  };
  return { clock, pulse, told, move, isNeededNoMore };
}

test('a pulse comes each second from its begin until nobody needs it, and begins anew', () => {
  const { pulse, told, move, isNeededNoMore } = scene();
  move(5_000);
  expect(told).toEqual([]);

  pulse.begin();
  pulse.begin();
  for (let i = 0; i < 4; i++) move(500);
  expect(told).toEqual(['pulse', 'pulse']);
  isNeededNoMore();
  for (let i = 0; i < 4; i++) move(1_000);
  expect(told).toHaveLength(3);

  pulse.begin();
  move(1_000);
  expect(told).toHaveLength(4);
});

test('on a clock of the testing kit a year is one pulse, and no freeze', () => {
  const { clock, pulse, told, move } = scene();
  pulse.begin();
  expect(clock.nextTimer).toBeUndefined();
  move(365 * 86_400_000);
  expect(told).toEqual(['pulse']);
});

test('a freeze counts from when the process was last seen running; less than a second may be a busy machine', () => {
  const { clock, pulse, told, move } = scene();
  pulse.begin();
  move(1_000);
  clock.freeze('1900ms');
  expect(told).toEqual(['pulse', 'pulse']);
  clock.freeze('1h');
  expect(told.slice(2)).toEqual([{ since: 2_900, until: 3_602_900, blocked: false }]);
});

test('a timer that fires late before the pulse does hears of the freeze at once, and nobody hears of it twice', () => {
  const { clock, pulse, told, move } = scene();
  pulse.begin();
  move(1_000);
  clock.after(200, () => pulse.noticeLate(1_200));
  clock.after(250, () => pulse.noticeLate(1_250));

  clock.freeze('800ms');

  expect(told).toEqual(['pulse', { since: 1_000, until: 1_800, blocked: false }]);
});

test('a timer that fires in time shows no freeze', () => {
  const { clock, pulse, told, move } = scene();
  pulse.begin();
  move(700);
  clock.after(200, () => pulse.noticeLate(900));
  move(250);
  expect(told).toEqual([]);
});

test('distinguishes an event loop blocked by computing from a stopped process', () => {
  const pulse = new Pulse(systemClock);
  const told: Freeze[] = [];
  pulse.listen({ isNeeded: () => true, onPulse: (freeze) => void (freeze && told.push(freeze)) });
  const freeze = (how: (ms: number) => void) => {
    const dueAt = systemClock.monotonic();
    how(150);
    pulse.noticeLate(dueAt);
    return told.at(-1)?.blocked;
  };
  pulse.begin();

  // The processor may be busy with others for a while.
  while (!freeze(compute));
  expect(freeze((ms) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms))).toBe(false);
  pulse.rest();
});

function compute(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}
