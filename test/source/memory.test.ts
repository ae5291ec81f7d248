import { describe, expect, test } from 'vitest';
import { describe as describeSource } from '../../src/source/describe.ts';
import { aged, isNormal, NORMAL } from '../../src/source/memory.ts';
import { observe } from '../../src/source/observe.ts';
import { operate } from '../../src/source/operate.ts';
import { readMemory, writeMemory } from '../../src/source/stored.ts';
import { DAY, down, MINUTE, ramping, SECOND, seen, Told } from './given.ts';

describe('a stored memory', () => {
  test.each([
    '',
    'null',
    '7',
    '[]',
    '{}',
    '{"v":1}',
    '{"v":2,"phase":{"name":"closed"}}',
    '{"v":1,"phase":{"name":"toString"}}',
    '{"v":1,"phase":{"name":"probing"}}',
    '{"v":1,"phase":{"name":"needs_person","why":"weather","sinceAgo":1,"last":{"reason":"","message":""}}}',
    '{"v":1,"phase":{"name":"closed"},"evidence":{"events":"two"}}',
    '{"v":1,"phase":{"name":"closed"}',
  ])('that is damaged or unknown counts as that of a source in its normal state: %s', (text) => {
    expect(readMemory(text)).toEqual(NORMAL);
  });

  test('that is damaged is removed by the next observation, whatever it is', () => {
    for (const kind of ['success', 'task_failure', 'rate_limited', 'inconclusive'] as const) {
      const { change } = observe(readMemory('damaged'), seen(kind), 0.5);
      expect(change, kind).toMatchObject({ refunds: [] });
      expect(change, kind).not.toHaveProperty('memory');
    }
  });

  test('is read as it was written', () => {
    for (const { memory } of [down(), ramping()]) {
      expect(readMemory(writeMemory(memory ?? NORMAL))).toEqual(memory);
    }
  });

  test('is small: of what was seen at once only the last 1,000 failures are kept', () => {
    const source = new Told();
    for (let task = 1; task <= 2_000; task++) source.after(0, 'source_failure', { task });
    expect(source.memory?.evidence?.failed).toHaveLength(1_000);
    expect(source.memory?.evidence?.failed.at(-1)?.task).toBe(2_000);
    expect(writeMemory(source.memory ?? NORMAL).length).toBeLessThan(50_000);
  });
});

test('a success on a source in its normal state changes nothing', () => {
  expect(observe(undefined, seen('success'), 0.5)).toEqual({
    memory: NORMAL,
    source: { standing: 'open', shutFor: 0 },
  });
});

test('a message is kept short', () => {
  const source = new Told();
  source.after(0, 'source_failure', { message: 'No.' });
  expect(source.memory?.evidence?.last).toEqual({ reason: 'test.source_failure', message: 'No.' });
});

test('evidence is forgotten with time, and nothing is left of it', () => {
  const source = new Told();
  source.after(0, 'source_failure');
  expect(isNormal(aged(source.memory ?? NORMAL, DAY))).toBe(true);
});

describe('a person', () => {
  test('who releases a source that is down lets its work start slowly', () => {
    const released = operate(down().memory, 'release');
    expect(released?.change).toMatchObject({ restriction: { ramping: true, pace: { perSecond: 1 } } });
    expect(released?.change.restriction).not.toHaveProperty('shutFor');
  });

  test('who releases a source that asked to wait lets its work start slowly', () => {
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: DAY });
    expect(operate(source.memory, 'release')?.change.restriction).toEqual({
      cause: 'rate_limit',
      ramping: true,
      pace: { perSecond: 1, burst: 1 },
    });
  });

  test('who releases a source that needs a person lets one task try first', () => {
    const source = new Told();
    source.after(0, 'permanent_source_failure', { task: 1 });
    source.after(0, 'permanent_source_failure', { task: 2 });
    const released = operate(source.memory, 'release');
    expect(released?.change.restriction).toEqual({ cause: 'breaker', probing: true });
    const failed = observe(released?.memory, seen('permanent_source_failure', { task: 3, probe: true }), 0.5);
    expect(failed.memory.phase.name).toBe('probing');
  });

  test('may have the next probe start at once, also before a Retry-After is over', () => {
    expect(operate(down().memory, 'probe')?.change.restriction).toEqual({ cause: 'breaker', probing: true });
    const source = new Told();
    source.after(0, 'rate_limited', { retryAfter: DAY });
    expect(operate(source.memory, 'probe')?.change.restriction).toEqual({ cause: 'breaker', probing: true });
  });

  test('changes nothing where there is nothing to change', () => {
    expect(operate(undefined, 'release')).toBeUndefined();
    expect(operate(undefined, 'probe')).toBeUndefined();
    expect(operate(ramping().memory, 'probe')).toBeUndefined();
    expect(operate(ramping().memory, 'release')).toBeUndefined();
    expect(operate(aged(down().memory ?? NORMAL, MINUTE), 'probe')).toBeUndefined();
  });
});

describe('in words', () => {
  test('a source in its normal state is nothing to speak of', () => {
    expect(describeSource(NORMAL)).toBeUndefined();
  });

  test('each condition is told with its reason, since when, and when it ends', () => {
    const source = new Told();
    const told = () => describeSource(source.memory ?? NORMAL);
    source.after(0, 'source_failure', { task: 1, reason: 'net.refused', message: 'connect ECONNREFUSED' });
    expect(told()).toEqual({
      condition: 'watched',
      sinceAgo: 0,
      reason: 'net.refused',
      message: 'connect ECONNREFUSED',
      failedTasks: 1,
      text: 'It failed (net.refused), and has not answered since. If another task fails too, it counts as down.',
    });
    source.after(SECOND, 'source_failure', { task: 2, reason: 'net.refused' });
    expect(told()).toMatchObject({
      condition: 'down',
      opensIn: 5 * SECOND,
      failedProbes: 0,
      text: 'It is down (net.refused). 0 probes have failed; the next one starts in 5s.',
    });
    source.after(5 * SECOND, 'success', { probe: true });
    expect(told()).toMatchObject({
      condition: 'probing',
      sinceAgo: 5 * SECOND,
      text: 'It was down (net.refused). One task at a time probes whether it works again; 0 probes have failed.',
    });
    source.after(0, 'success', { probe: true });
    expect(told()).toMatchObject({
      condition: 'ramping',
      perSecond: 1,
      text: 'It works again: its work is released slowly, now 1/s.',
    });
    source.after(0, 'rate_limited', { reason: 'http.429', retryAfter: MINUTE });
    expect(told()).toMatchObject({
      condition: 'asked_to_wait',
      opensIn: MINUTE,
      text: 'It asked to wait (http.429): nothing starts for 1m.',
    });
    source.after(MINUTE, 'permanent_source_failure', { task: 1, reason: 'auth.invalid' });
    source.after(MINUTE, 'permanent_source_failure', { task: 2, reason: 'auth.invalid' });
    expect(told()).toMatchObject({
      condition: 'needs_person',
      reason: 'auth.invalid',
      text: 'It refused several tasks for good (auth.invalid). Nothing starts until a person has repaired and released it.',
    });
  });
});
