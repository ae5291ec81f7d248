import { describe, expect, test } from 'vitest';
import { parseBackoffFlag } from '../../src/cli/flags/backoff-flag.ts';
import { parseMoment } from '../../src/cli/flags/moment.ts';
import { policyLayer, wholeNumberFlag } from '../../src/cli/flags/policy-flags.ts';
import { definePolicy } from '../../src/failure/policy.ts';
import { PRESET_NAMES, presetNamed, presets } from '../../src/failure/presets.ts';

const MINUTE = 60_000;
const none = { kind: 'none' };

describe('--backoff', () => {
  test.each([
    ['exp:60s:x2:max=1h', { kind: 'exponential', base: MINUTE, factor: 2, cap: 60 * MINUTE }],
    ['exp:5s', { kind: 'exponential', base: 5_000, factor: 2, cap: 60 * MINUTE }],
    ['exponential:2h:x1.5', { kind: 'exponential', base: 120 * MINUTE, factor: 1.5, cap: 120 * MINUTE }],
    ['linear:30s:max=10m', { kind: 'linear', step: 30_000, cap: 10 * MINUTE }],
    ['fixed:50ms', { kind: 'fixed', delay: 50 }],
    ['schedule:5m,15m,60m', { kind: 'schedule', delays: [5 * MINUTE, 15 * MINUTE, 60 * MINUTE] }],
    ['none', { kind: 'none' }],
  ])('%s holds exactly, without jitter', (text, backoff) => {
    expect(parseBackoffFlag(text)).toEqual({ backoff, jitter: none });
  });

  test.each([
    ['fixed:1m:jitter=10%', { kind: 'proportional', factor: 0.1 }],
    ['fixed:1m:jitter=full', { kind: 'full' }],
    ['exp:1m:jitter=equal:max=2m', { kind: 'equal' }],
    ['fixed:1m:jitter=none', none],
  ])('%s is spread', (text, jitter) => {
    expect(parseBackoffFlag(text).jitter).toEqual(jitter);
  });

  test.each([
    ['', '"" is none of exp, exponential, linear, fixed, schedule, none'],
    ['foo:1s', '"foo" is none of'],
    ['exp', 'exp takes one delay, got 0'],
    ['exp:1s:2s', 'exp takes one delay, got 2'],
    ['exp:1s:max=1ms', 'cap must not be below base'],
    ['exp:1s:x0.5', 'factor must be a number of at least 1, got 0.5'],
    ['exp:1s:x2:x3', '"x3" is given twice'],
    ['exp:banana', "base must be a duration such as '90s', '10m' or 'PT1H', got 'banana'"],
    ['fixed:1s:max=1m', 'fixed takes no max'],
    ['fixed:1s:x2', 'fixed takes no factor'],
    ['fixed:-1s', 'delay must be a duration'],
    ['schedule:', 'delay 1 must be a duration'],
    ['none:1s', 'none takes no delay'],
    ['fixed:1s:jitter=lots', 'jitter is none, full, equal or a percentage such as 10%, got "lots"'],
    ['fixed:1s:jitter=200%', 'A proportional jitter must be a number between 0 and 1, got 2'],
  ])('%s is refused', (text, why) => {
    expect(() => parseBackoffFlag(text)).toThrow(`--backoff ${text}: ${why}`);
  });
});

describe('--policy, --attempts and --backoff', () => {
  test('say nothing where nobody said anything', () => {
    expect(policyLayer({}, presets.shellCommand)).toBeUndefined();
  });

  test('are a thin layer over the policy of the type', () => {
    expect(policyLayer({ attempts: '3', attemptTimeout: '5m' }, presets.shellCommand)).toEqual({
      maxAttempts: 3,
      timeout: '300000ms',
      rules: { rate_limited: { charge: false } },
    });
  });

  test('a schedule allows each of its delays once', () => {
    const layer = policyLayer({ backoff: 'schedule:1m,2m' }, presets.shellCommand);
    expect(definePolicy(layer, presets.shellCommand)).toMatchObject({ maxAttempts: 3, jitter: none });
    const limited = policyLayer({ backoff: 'schedule:1m,2m', attempts: '9' }, presets.shellCommand);
    expect(definePolicy(limited, presets.shellCommand)).toMatchObject({ maxAttempts: 9 });
    const overPreset = policyLayer({ backoff: 'schedule:1m,2m', policy: 'worker' }, presets.shellCommand);
    expect(definePolicy(overPreset, presets.shellCommand)).toMatchObject({ maxAttempts: 3, permanent: 'retry' });
  });

  test('a preset sets all of its values, and uses none of the type', () => {
    const policy = definePolicy(policyLayer({ policy: 'imap-mailbox' }, presets.fileMove), presets.fileMove);
    expect(policy).toEqual(presets.imapMailbox);
  });

  test('reach into the rules, but for those that ask a person at the first failure', () => {
    const layer = policyLayer({ attempts: '4', backoff: 'fixed:1s' }, presets.fileMove);
    expect(definePolicy(layer, presets.fileMove)).toMatchObject({
      maxAttempts: 4,
      backoff: { kind: 'fixed', delay: 1_000 },
      rules: {
        'fs.locked': { maxAttempts: 4, onExhausted: 'dead' },
        'fs.permission': { maxAttempts: 4, onExhausted: 'needs_manual' },
        'fs.dest_exists': { maxAttempts: 1, onExhausted: 'needs_manual' },
      },
    });
    expect(layer?.rules?.['fs.locked']).not.toHaveProperty('backoff');
  });

  test('the plain policy of moves can be adjusted too', () => {
    const layer = policyLayer({ attempts: '2' }, presets.fileMove, presets.fileMovePlain);
    expect(definePolicy(layer, presets.fileMove)).toMatchObject({ maxAttempts: 2, rules: {}, permanent: 'retry' });
  });

  test('presets go by the names of their types', () => {
    for (const policy of PRESET_NAMES) {
      expect(policyLayer({ policy }, presets.standard)).toEqual(presetNamed(policy));
    }
    expect(() => policyLayer({ policy: 'standrad' }, presets.standard)).toThrow('no preset "standrad"');
  });

  test.each([
    [{ attempts: '0' }, '--attempts must be a whole number of at least 1, got "0"'],
    [{ attempts: 'many' }, '--attempts must be a whole number of at least 1, got "many"'],
    [{ attempts: '1e3' }, '--attempts must be a whole number'],
    [{ attemptTimeout: '0' }, '--attempt-timeout must be'],
    [{ attemptTimeout: '0s' }, '--attempt-timeout must be longer than 0, got 0s; "none" turns it off'],
  ])('%j is refused', (flags, why) => {
    expect(() => policyLayer(flags, presets.shellCommand)).toThrow(why);
  });
});

describe('a whole number', () => {
  test('has bounds', () => {
    expect(wholeNumberFlag('4095', '--priority', 0, 4_095)).toBe(4_095);
    expect(() => wholeNumberFlag('4096', '--priority', 0, 4_095)).toThrow(
      '--priority must be a whole number from 0 to 4095, got "4096"',
    );
    expect(() => wholeNumberFlag('99999999999999999', '--limit', 1)).toThrow('--limit');
  });
});

describe('--at', () => {
  const now = new Date(2026, 4, 30, 12, 0, 0);
  const local = (day: number, hours: number, minutes = 0, seconds = 0) =>
    new Date(2026, 4, day, hours, minutes, seconds);

  test.each([
    ['14:30', local(30, 14, 30)],
    ['14:30:15', local(30, 14, 30, 15)],
    ['9:00', local(31, 9)],
    ['today 9:00', local(30, 9)],
    ['tomorrow 14:30', local(31, 14, 30)],
    ['+2h', local(30, 14)],
    ['+1h30m', local(30, 13, 30)],
    ['2026-06-01', new Date(2026, 5, 1)],
    ['2026-06-01 08:30', new Date(2026, 5, 1, 8, 30)],
    ['2026-06-01T08:30:00Z', new Date('2026-06-01T08:30:00Z')],
    ['2026-06-01T08:30:00.5+02:00', new Date('2026-06-01T06:30:00.500Z')],
  ])('reads %s', (text, at) => {
    expect(parseMoment(text, now, '--at').getTime()).toBe(at.getTime());
  });

  test.each([
    '',
    'soon',
    '24:00',
    '9:60',
    '2026-02-30',
    '2026-13-01',
    '2026-06-01T25:00Z',
    'tomorrow',
    '14.30',
    '+soon',
  ])('refuses %j', (text) => {
    expect(() => parseMoment(text, now, '--at')).toThrow('--at');
  });
});
