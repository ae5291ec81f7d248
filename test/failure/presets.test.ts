import { describe, expect, test } from 'vitest';
import type { Failure } from '../../src/failure/outcome.ts';
import { standard } from '../../src/failure/policy.ts';
import { presetFor, presets } from '../../src/failure/presets.ts';
import { charged, decided, failed, fateOf, HOUR } from './given.ts';

const s = (...seconds: number[]) => seconds;
const min = (...minutes: number[]) => minutes.map((m) => m * 60);

const failures = {
  transient: { kind: 'transient', reason: 'net.timeout' },
  unknown: { kind: 'unknown', reason: 'unknown' },
  permanent: { kind: 'permanent', reason: 'http.404' },
  limited: { kind: 'rate_limited', reason: 'http.429', fault: 'quota' },
  locked: { kind: 'transient', reason: 'fs.locked' },
  permission: { kind: 'permanent', reason: 'fs.permission' },
  exists: { kind: 'permanent', reason: 'fs.dest_exists' },
} as const satisfies Record<string, Partial<Failure>>;

/** The ceilings of all retries in seconds, before jitter, and where the task ends if every execution fails so. */
const SCHEDULES: readonly [
  preset: keyof typeof presets,
  failure: keyof typeof failures,
  seconds: number[],
  end: string,
][] = [
  ['standard', 'transient', s(1, 2, 4, 8), 'dead'],
  ['standard', 'unknown', s(1, 2, 4, 8), 'dead'],
  ['standard', 'permanent', s(), 'dead'],

  ['shellCommand', 'transient', s(5, 10, 20, 40, 80, 160, 320), 'dead'],
  ['shellCommand', 'permanent', s(), 'dead'],
  ['httpDelivery', 'transient', s(5, 10, 20, 40, 80, 160, 320), 'dead'],
  ['httpDelivery', 'permanent', s(), 'dead'],

  ['fileMove', 'locked', min(5, 10, 20, 40, 80, 160, 320, 640, 1_280), 'dead'],
  ['fileMove', 'permission', min(1, 2), 'needs_manual'],
  ['fileMove', 'exists', min(), 'needs_manual'],
  ['fileMove', 'unknown', min(10, 20, 40, 80), 'needs_manual'],
  ['fileMove', 'transient', min(10, 20, 40, 80), 'needs_manual'],
  ['fileMove', 'permanent', min(10, 20, 40, 80), 'needs_manual'],
  ['fileMove', 'limited', min(10, 20, 40, 80), 'needs_manual'],
  ['fileMovePlain', 'locked', min(5, 10, 20, 40, 80, 160, 320, 640, 1_280), 'dead'],
  ['fileMovePlain', 'exists', min(5, 10, 20, 40, 80, 160, 320, 640, 1_280), 'dead'],

  ['replay', 'transient', min(1, 2, 4, 8, 16, 32, 60), 'dead'],
  ['replay', 'limited', min(1, 2, 4, 8, 16, 32, 60), 'dead'],
  ['replay', 'permanent', min(), 'dead'],

  ['worker', 'unknown', s(1, 2, 4, 8), 'dead'],
  ['worker', 'permanent', s(1, 2, 4, 8), 'dead'],
  ['worker', 'limited', s(1, 2, 4, 8), 'dead'],

  ['localFiles', 'transient', s(30, 60), 'dead'],
  ['localFiles', 'permanent', s(), 'dead'],

  ['imapMailbox', 'transient', min(2, 4, 8, 16, 30, 30), 'dead'],
  ['imapMailbox', 'unknown', min(2, 4, 8, 16), 'dead'],
  ['imapMailbox', 'limited', min(10, 20, 30, 30), 'dead'],
  ['imapMailbox', 'permanent', min(), 'dead'],

  ['githubRepository', 'transient', min(5, 10, 20, 40), 'dead'],
  ['githubRepository', 'limited', min(15, 30, 60, 60), 'dead'],
  ['githubRepository', 'permanent', min(), 'dead'],

  ['analysis', 'transient', min(5, 15, 60), 'dead'],
  ['analysis', 'permanent', min(5, 15, 60), 'dead'],
];

/** The jitter in the documents: 0 is none, `full` is from 0 to the ceiling. */
const JITTERS = {
  standard: 0.1,
  shellCommand: 'full',
  httpDelivery: 'full',
  fileMove: 0,
  fileMovePlain: 0,
  replay: 0,
  worker: 0.1,
  localFiles: 0.2,
  imapMailbox: 0.3,
  githubRepository: 0.25,
  analysis: 0,
} as const satisfies Record<keyof typeof presets, number | 'full'>;

function bounds(ceiling: number, jitter: number | 'full'): [low: number, high: number] {
  return jitter === 'full' ? [0, ceiling] : [ceiling * (1 - jitter), ceiling * (1 + jitter)];
}

describe('the presets', () => {
  test.each(SCHEDULES)('%s answers a failure that is %s with its published schedule', (name, kind, seconds, end) => {
    const ceilings = seconds.map((each) => each * 1_000);
    const [low, high] = [0, 0.999_999_999_999].map((roll) => fateOf(presets[name], failures[kind], roll));
    const jitter = JITTERS[name];
    expect(low).toEqual({ delays: ceilings.map((ceiling) => Math.round(bounds(ceiling, jitter)[0])), end });
    expect(high).toEqual({ delays: ceilings.map((ceiling) => Math.round(bounds(ceiling, jitter)[1])), end });
  });

  test('standard and http_delivery charge nobody for a rate limit, and wait as long as their backoff says', () => {
    for (const policy of [presets.standard, presets.httpDelivery]) {
      const limited = decided(failed(failures.limited), policy, { deferralsInARow: 3 });
      expect(limited).toMatchObject({ next: 'scheduled', charge: 'deferrals', step: 'deferral' });
    }
    expect(decided(failed(failures.limited), presets.standard, { deferralsInARow: 3 }).after).toBe(8_000);
  });

  test('all obey a requested wait in full, without a charge', () => {
    for (const policy of Object.values(presets)) {
      const hinted = decided(failed({ ...failures.limited, retryAfterMs: HOUR }), policy, {}, 0);
      expect(hinted).toMatchObject({ next: 'scheduled', charge: 'deferrals', after: HOUR });
    }
  });

  test('count separately what their rules count separately: after four locked files a move has its other attempts', () => {
    const locked = charged(9, 'fs.locked');
    expect(decided(failed(failures.unknown), presets.fileMove, { charged: [locked] }).because).toMatchObject({
      count: 1,
      limit: 5,
    });
    const transient = charged(6, 'net.timeout', 'transient');
    expect(decided(failed(failures.limited), presets.imapMailbox, { charged: [transient] }).because).toMatchObject({
      count: 1,
      limit: 5,
    });
  });

  test.each([
    ['standard', presets.standard],
    ['shell_command', presets.shellCommand],
    ['http_delivery', presets.httpDelivery],
    ['file_move', presets.fileMove],
    ['replay', presets.replay],
    ['worker', presets.worker],
    ['local_files', presets.localFiles],
    ['obsidian_vault', presets.localFiles],
    ['imap_mailbox', presets.imapMailbox],
    ['github_repository', presets.githubRepository],
    ['analysis', presets.analysis],
    ['anything_else', standard],
    ['constructor', standard],
    ['__proto__', standard],
    ['toString', standard],
  ])('a type named %s gets its policy without being told', (type, policy) => {
    expect(presetFor(type)).toBe(policy);
  });

  test('set no limits other than the standard ones', () => {
    for (const policy of Object.values(presets)) {
      expect(policy).toMatchObject({
        maxDeferrals: 100,
        maxDeferredFor: 24 * HOUR,
        maxRetryAfter: 24 * HOUR,
        giveUpAfter: 'none',
        timeout: HOUR,
        maxExecutions: 1_000,
        retryAmbiguous: false,
      });
    }
  });
});
