import { describe, expect, test } from 'vitest';
import { parseConfig } from '../../src/config/config.ts';
import { layersOf, policyFrom, UNSAID } from '../../src/failure/layers.ts';
import type { Failure } from '../../src/failure/outcome.ts';
import type { Policy } from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';
import { charged, decided, failed, fateOf, HOUR } from '../failure/given.ts';

/*
 * Five systems whose retries were written down somewhere else, each entered as data, with the delays and the end that its
 * document names.
 */

const s = (...seconds: number[]) => seconds.map((each) => each * 1_000);
const min = (...minutes: number[]) => s(...minutes.map((each) => each * 60));

const locked = { kind: 'transient', reason: 'fs.locked' } as const;
const permission = { kind: 'permanent', reason: 'fs.permission' } as const;
const exists = { kind: 'permanent', reason: 'fs.dest_exists' } as const;
const unknown = { kind: 'unknown', reason: 'unknown' } as const;
const transient = { kind: 'transient', reason: 'net.timeout' } as const;
const permanent = { kind: 'permanent', reason: 'http.404' } as const;
const limited = { kind: 'rate_limited', reason: 'http.429', fault: 'quota' } as const;

function policyOf(type: string, text: string): Policy {
  const config = parseConfig(text);
  return policyFrom(layersOf(type, { ...UNSAID, default: config.default, type: config.types.get(type) ?? [] }));
}

/** The delays without jitter where there is none, else at both ends of it. */
function fates(policy: Policy, failure: Partial<Failure>) {
  const [low, high] = [0, 0.999_999_999_999].map((roll) => fateOf(policy, failure, roll));
  return { low: low?.delays, high: high?.delays, end: low?.end };
}

function plain(delays: number[], end: string) {
  return { low: delays, high: delays, end };
}

function spread(delays: number[], factor: number, end: string) {
  const at = (by: number) => delays.map((delay) => Math.round(delay * by));
  return { low: at(1 - factor), high: at(1 + factor), end };
}

describe('pending moves, as data', () => {
  const policy = policyOf(
    'tidy',
    `
types:
  tidy:
    retry:
      extends: none
      maxAttempts: 5
      backoff: { exponential: { base: 10m, cap: 2h } }
      jitter: none
      permanent: retry
      onExhausted: needs_manual
      rules:
        fs.locked:
          maxAttempts: 10
          backoff: { exponential: { base: 300s, cap: 86400s } }
          onExhausted: dead
        fs.permission:
          maxAttempts: 3
          backoff: { exponential: { base: 1m, cap: 5m } }
          onExhausted: needs_manual
        fs.dest_exists: { maxAttempts: 1, onExhausted: needs_manual }
      source: { gate: false, breaker: false, budget: false }
`,
  );

  test.each([
    ['a locked file', locked, min(5, 10, 20, 40, 80, 160, 320, 640, 1_280), 'dead'],
    ['a missing permission', permission, min(1, 2), 'needs_manual'],
    ['a destination that exists', exists, [], 'needs_manual'],
    ['an unknown failure', unknown, min(10, 20, 40, 80), 'needs_manual'],
  ])('answer %s as they do', (_, failure, delays, end) => {
    expect(fates(policy, failure)).toEqual(plain(delays, end));
  });

  test('are the preset file_move', () => {
    expect(policy.version).toBe(presets.fileMove.version);
  });
});

describe('run retry, as data', () => {
  const policy = policyOf(
    'run',
    `
types:
  run:
    retry:
      extends: none
      maxAttempts: 8
      backoff: { exponential: { base: PT60S, factor: 2.0, cap: PT1H } }
      jitter: none
`,
  );

  test('waits a minute, doubling up to an hour, and ends at the eighth', () => {
    expect(fates(policy, transient)).toEqual(plain(min(1, 2, 4, 8, 16, 32, 60), 'dead'));
    expect(fates(policy, limited)).toEqual(plain(min(1, 2, 4, 8, 16, 32, 60), 'dead'));
  });

  test('ends a final error at once', () => {
    expect(fates(policy, permanent)).toEqual(plain([], 'dead'));
  });

  test('obeys a hint and charges nobody for it', () => {
    const hinted = decided(failed({ ...limited, retryAfterMs: 90_000 }), policy, { charged: [charged(7)] });
    expect(hinted).toMatchObject({ next: 'scheduled', after: 90_000, charge: 'deferrals' });
  });
});

describe('the worker engine, as data', () => {
  const policy = policyOf(
    'engine',
    `
types:
  engine:
    retry:
      extends: none
      maxAttempts: 6
      backoff: { exponential: { base: 1s, factor: 2, cap: 300s } }
      jitter: 10%
      permanent: retry
`,
  );

  test('retries any exception, 1 s to 16 s, each ±10 %', () => {
    expect(fates(policy, unknown)).toEqual(spread(s(1, 2, 4, 8, 16), 0.1, 'dead'));
    expect(fates(policy, permanent)).toEqual(spread(s(1, 2, 4, 8, 16), 0.1, 'dead'));
  });
});

/** As it is written in its own documentation. */
const CONNECTORS = `# ~/.futurnal/config/retry_policies.yaml
retry_policies:
  local_files:
    strategy: exponential_backoff
    max_attempts: 3
    base_delay_seconds: 30
    max_delay_seconds: 300
    jitter_factor: 0.2
    backoff_multiplier: 2.0
    permanent_failures_no_retry: true

  imap_mailbox:
    strategy: exponential_backoff
    max_attempts: 5
    base_delay_seconds: 120
    max_delay_seconds: 1800
    jitter_factor: 0.3
    backoff_multiplier: 2.0
    transient_max_attempts: 7
    rate_limit_delay_seconds: 600

  github_repository:
    strategy: exponential_backoff
    max_attempts: 5
    base_delay_seconds: 300
    max_delay_seconds: 3600
    jitter_factor: 0.25
    backoff_multiplier: 2.0
    rate_limit_delay_seconds: 900
    permanent_failures_no_retry: true
`;

describe('the policies of connectors, unchanged', () => {
  test('load with one warning: whether max_attempts counts executions or retries', () => {
    expect(parseConfig(CONNECTORS).warnings).toEqual([
      expect.objectContaining({
        line: 2,
        message: expect.stringContaining(
          '3 is one attempt and 2 retries. The programs that this format comes from count',
        ),
        suggestion: 'Say which: max_attempts_counts: retries, or executions.',
      }),
    ]);
    for (const counts of ['retries', 'executions']) {
      expect(parseConfig(`max_attempts_counts: ${counts}\n${CONNECTORS}`).warnings).toEqual([]);
    }
    expect(parseConfig('max_attempts_counts: retries').warnings[0]?.message).toContain('has no effect');
  });

  test.each([
    ['local_files', transient, s(30, 60, 120), 0.2],
    ['imap_mailbox', unknown, min(2, 4, 8, 16, 30), 0.3],
    ['imap_mailbox', transient, min(2, 4, 8, 16, 30, 30, 30), 0.3],
    ['imap_mailbox', limited, min(10, 20, 30, 30, 30), 0.3],
    ['github_repository', limited, min(15, 30, 60, 60, 60), 0.25],
  ])('have one execution more where max_attempts counts retries: %s', (type, failure, delays, jitter) => {
    const counting = `max_attempts_counts: retries\n${CONNECTORS}`;
    expect(fates(policyOf(type, counting), failure)).toEqual(spread(delays, jitter, 'dead'));
  });

  test.each(['default', 'fallback'])('have the policy of `%s` for connectors that are not listed', (name) => {
    const text = `${CONNECTORS}\n  ${name}: {}\n`;
    const others = policyOf('rss_feed', text);
    expect(fates(others, transient)).toEqual(spread(s(60, 120), 0.2, 'dead'));
    expect(others).toMatchObject({ rules: {}, source: { gate: false, breaker: false, budget: false } });
    expect(policyOf('imap_mailbox', text).version).toBe(presets.imapMailbox.version);
    expect(policyOf('obsidian_vault', text).version).toBe(presets.localFiles.version);
    expect(policyOf('rss_feed', CONNECTORS).version).toBe(policyFrom([]).version);
    const { types, connectors } = parseConfig(text);
    expect([...types.keys(), ...(connectors?.names ?? [])]).not.toContain(name);
  });

  test('are warned about if a name is nearly that of a preset', () => {
    const text = 'max_attempts_counts: retries\nretry_policies: { imap_mailbx: {}, rss_feed: {}, local_files: {} }';
    expect(parseConfig(text).warnings).toEqual([
      expect.objectContaining({
        message: "Tasks of the type 'imap_mailbox' do not get the policy of 'imap_mailbx'.",
        suggestion: "Did you mean 'imap_mailbox'?",
      }),
    ]);
    expect(parseConfig(text.replace('rss_feed', 'imap_mailbox')).warnings).toEqual([]);
  });

  test.each([
    ['local_files', transient, s(30, 60), 0.2],
    ['local_files', unknown, s(30, 60), 0.2],
    ['imap_mailbox', unknown, min(2, 4, 8, 16), 0.3],
    ['imap_mailbox', transient, min(2, 4, 8, 16, 30, 30), 0.3],
    ['imap_mailbox', limited, min(10, 20, 30, 30), 0.3],
    ['github_repository', transient, min(5, 10, 20, 40), 0.25],
    ['github_repository', limited, min(15, 30, 60, 60), 0.25],
  ])('answer a failure of %s as their table says', (type, failure, delays, jitter) => {
    expect(fates(policyOf(type, CONNECTORS), failure)).toEqual(spread(delays, jitter, 'dead'));
  });

  test('end a permanent failure at once', () => {
    for (const type of ['local_files', 'imap_mailbox', 'github_repository']) {
      expect(fates(policyOf(type, CONNECTORS), permanent)).toEqual(plain([], 'dead'));
    }
  });

  test.each([
    ['local_files', presets.localFiles],
    ['imap_mailbox', presets.imapMailbox],
    ['github_repository', presets.githubRepository],
  ])('of %s are the preset of that name', (type, preset) => {
    expect(policyOf(type, CONNECTORS).version).toBe(preset.version);
  });

  test('have the defaults of their own schema for what they leave out', () => {
    const policy = policyOf('feed', 'retry_policies:\n  feed: {}\n');
    expect(policy).toMatchObject({
      maxAttempts: 3,
      backoff: { kind: 'exponential', base: 60_000, factor: 2, cap: HOUR },
      jitter: { kind: 'proportional', factor: 0.2 },
      permanent: 'stop',
      rules: {},
    });
    expect(fates(policy, transient)).toEqual(spread(s(60, 120), 0.2, 'dead'));
    expect(policyOf('feed', 'retry_policies:\n  feed:\n').version).toBe(policy.version);
  });

  test('of a name that has a preset take nothing from it', () => {
    const policy = policyOf('imap_mailbox', 'retry_policies: { imap_mailbox: {} }');
    expect(policy.rules).toEqual({});
    expect(policy.maxAttempts).toBe(3);
  });

  test.each([
    ['exponential_backoff', min(1, 2, 4), 'dead'],
    ['linear_backoff', min(1, 2, 3), 'dead'],
    ['fixed_delay', min(1, 1, 1), 'dead'],
    ['immediate', min(0, 0, 0), 'dead'],
    ['no_retry', [], 'dead'],
  ])('know the strategy %s', (strategy, delays, end) => {
    const text = `retry_policies: { feed: { strategy: ${strategy}, max_attempts: 4, jitter_factor: 0 } }`;
    expect(fates(policyOf('feed', text), unknown)).toEqual(plain(delays, end));
  });

  test('retry permanent failures where they say so', () => {
    const text = 'retry_policies: { feed: { permanent_failures_no_retry: false, jitter_factor: 0.0 } }';
    expect(fates(policyOf('feed', text), permanent)).toEqual(plain(min(1, 2), 'dead'));
  });

  test('are laid under what `types` says of the same type', () => {
    const text = `${CONNECTORS}\ntypes: { local_files: { retry: { maxAttempts: 9 } } }`;
    expect(policyOf('local_files', text)).toMatchObject({ maxAttempts: 9, backoff: { base: 30_000 } });
  });
});

describe('the analysis queue, as data', () => {
  const policy = policyOf(
    'analyse',
    `
types:
  analyse:
    retry:
      extends: none
      maxAttempts: 4  # 1st try + 3 retries
      backoff: { schedule: [300s, 900s, 3600s] }
      jitter: none
      permanent: retry
`,
  );

  test.each([
    ['transient', transient],
    ['permanent', permanent],
    ['unknown', unknown],
  ])('waits 300, 900 and 3600 s after a %s failure, then is dead at the fourth', (_, failure) => {
    expect(fates(policy, failure)).toEqual(plain(s(300, 900, 3_600), 'dead'));
  });

  test('needs no count of its attempts: each delay of a schedule happens once', () => {
    expect(policyOf('a', 'types: { a: { retry: { backoff: { schedule: [5m, 15m, 60m] } } } }').maxAttempts).toBe(4);
  });
});
