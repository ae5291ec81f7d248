import { describe, expect, test } from 'vitest';
import { aged, isNormal, NORMAL } from '../../src/source/memory.ts';
import { observe } from '../../src/source/observe.ts';
import { operate } from '../../src/source/operate.ts';
import { readMemory, writeMemory } from '../../src/source/stored.ts';
import { troubleOf } from '../../src/source/trouble.ts';
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

test('says of a source its last failure, since when it is down, and how many probes failed', () => {
  const source = new Told();
  const told = () => troubleOf(source.memory ?? NORMAL);
  expect(told()).toBeUndefined();
  source.after(0, 'source_failure', { task: 1, reason: 'net.refused', message: 'connect ECONNREFUSED' });
  expect(told()).toEqual({ condition: 'watched', sinceMs: 0, reason: 'net.refused', message: 'connect ECONNREFUSED' });
  source.after(SECOND, 'source_failure', { task: 2, reason: 'net.reset' });
  source.after(5 * SECOND, 'source_failure', { task: 3, probe: true, reason: 'net.timeout' });
  expect(told()).toEqual({
    condition: 'down',
    sinceMs: 5 * SECOND,
    reason: 'net.timeout',
    message: '',
    failedProbes: 1,
  });
  source.after(8 * SECOND, 'success', { probe: true });
  source.after(0, 'success', { probe: true });
  expect(told()).toEqual({ condition: 'ramping', sinceMs: 13 * SECOND, reason: 'net.timeout', message: '' });
  source.after(MINUTE, 'permanent_source_failure', { task: 1, reason: 'auth.invalid' });
  source.after(MINUTE, 'permanent_source_failure', { task: 2, reason: 'auth.invalid' });
  expect(told()).toMatchObject({ condition: 'needs_person', reason: 'auth.invalid', why: 'permanent' });
});
