import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { defineTask, Failed } from 'holdfast';
import { parseConfig, Registry } from 'holdfast/config';
import { openTestHoldfast, type TestHoldfast, type TestOptions } from 'holdfast/testing';
import { describe, expect, test } from 'vitest';
import { closing, YAML } from './scene.js';

const DOCUMENT = readFileSync(fileURLToPath(new URL('../retry_policies.yaml', import.meta.url)), 'utf8');

/** A type whose tasks fail with the error that is their input. */
const failing = (type: string) =>
  defineTask(type, {
    /** With a source for each task: the sources are not what is tested. */
    source: ({ message }: { message: string }) => `${type}:${message}`,
    run(error) {
      throw Object.assign(new Error(error.message), error);
    },
  });

const TYPES = ['local_files', 'obsidian_vault', 'imap_mailbox', 'github_repository', 'rss_feed'];
const ERRORS: Readonly<Record<string, object>> = {
  transient: { code: 'ETIMEDOUT', syscall: 'connect' },
  rate_limited: { status_code: 429 },
  permanent: { status_code: 403 },
  unknown: {},
};

async function openFailing(config = new Registry(), more: TestOptions = {}) {
  config.load(YAML);
  const tasks = TYPES.map(failing);
  const kit = await openTestHoldfast({ tasks, config, patienceMs: 20_000, ...more });
  closing.push(() => kit.close());
  return { kit, config };
}

/** Each wait of a task in seconds, before jitter and with its bounds, and its end. */
async function fateOf(kit: TestHoldfast, id: number) {
  const settled = kit.events.filter((event) => event.kind === 'settled' && event.task.lease.task === id);
  const waits = settled.flatMap((event) => {
    const { jitter } = (event.kind === 'settled' && event.decision.because) || {};
    return jitter ? [{ low: jitter.low / 1_000, high: jitter.high / 1_000 }] : [];
  });
  const { state, failedBy } = Object(await kit.holdfast.get(id));
  return { waits, state, failedBy };
}

describe('the policies of the document', () => {
  test('stand in the configuration unchanged, and load by themselves with a warning of what they count', () => {
    expect(YAML).toContain(DOCUMENT);
    expect(parseConfig(YAML).warnings).toEqual([]);
    expect(parseConfig(DOCUMENT).warnings.map(({ suggestion }) => suggestion)).toEqual([
      'Say which: max_attempts_counts: retries, or executions.',
    ]);
  });

  const waits: readonly (readonly [type: string, kind: string, seconds: readonly number[], jitter: number])[] = [
    ['local_files', 'transient', [30, 60, 120], 0.2],
    ['local_files', 'unknown', [30, 60, 120], 0.2],
    ['local_files', 'rate_limited', [30, 60, 120], 0.2],
    ['obsidian_vault', 'transient', [30, 60], 0.2],
    ['imap_mailbox', 'transient', [120, 240, 480, 960, 1_800, 1_800, 1_800], 0.3],
    ['imap_mailbox', 'unknown', [120, 240, 480, 960, 1_800], 0.3],
    ['imap_mailbox', 'rate_limited', [600, 1_200, 1_800, 1_800, 1_800], 0.3],
    ['github_repository', 'transient', [300, 600, 1_200, 2_400, 3_600], 0.25],
    ['github_repository', 'unknown', [300, 600, 1_200, 2_400, 3_600], 0.25],
    ['github_repository', 'rate_limited', [900, 1_800, 3_600, 3_600, 3_600], 0.25],
    ['rss_feed', 'transient', [60, 120, 240], 0.2],
    ['rss_feed', 'rate_limited', [60, 120, 240], 0.2],
  ];

  test('give each connector and kind of failure its delays, each within its jitter, and then the task is dead', async () => {
    const { kit } = await openFailing();
    const inputs = waits.map(([type, kind]) => [type, { message: kind, ...ERRORS[kind] }] as const);
    const receipts = await Promise.all(inputs.map(([type, input]) => kit.holdfast.enqueue(type, input)));
    await kit.advance('1d');
    const found = await Promise.all(receipts.map(({ id }) => fateOf(kit, id)));
    const expected = waits.map(([, , seconds, jitter]) => ({
      state: 'dead',
      waits: seconds.map((each) => ({ low: near(each * (1 - jitter)), high: near(each * (1 + jitter)) })),
    }));
    expect(found).toMatchObject(expected);
  });

  test('end a permanent failure of every connector at its first execution', async () => {
    const { kit } = await openFailing();
    for (const type of TYPES) await kit.holdfast.enqueue(type, { message: 'permanent', ...ERRORS.permanent });
    await kit.drain();
    const tasks = await kit.holdfast.list();
    expect(tasks.map(({ state, executions, attempts }) => [state, executions, attempts])).toEqual(
      TYPES.map(() => ['dead', 1, 1]),
    );
  });

  test('tell a handler its attempt and its last failure when it is run again', async () => {
    const told: unknown[] = [];
    const feed = defineTask('rss_feed', {
      run(input, { attempt, lastFailure }) {
        told.push({ input, attempt, lastFailure });
        throw Object.assign(new Error('busy'), { status_code: 503 });
      },
    });
    const { kit } = await openFailing(new Registry(), { tasks: [feed] });
    await kit.holdfast.enqueue('rss_feed', 'as it was');
    await kit.advance('3m');
    expect(told.slice(0, 2)).toMatchObject([
      { input: 'as it was', attempt: 1, lastFailure: undefined },
      { input: 'as it was', attempt: 2, lastFailure: { kind: 'transient', reason: 'http.5xx', message: 'busy' } },
    ]);
  });

  test('are logged: each retry with its delay, count and limit, and the task whose attempts are used up', async () => {
    const lines: object[] = [];
    const write = (fields: object) => void ('event' in fields && lines.push(fields));
    const log = { debug() {}, info() {}, warn: write, error: write };
    const { kit } = await openFailing(new Registry(), { log });
    await kit.holdfast.enqueue('rss_feed', { message: 'transient', ...ERRORS.transient });
    await kit.advance('1h');
    const about = { task: 1, type: 'rss_feed', kind: 'transient', limit: 4 };
    expect(lines).toMatchObject([
      ...[1, 2, 3].map((count) => ({ event: 'waiting.retry', ...about, count, retryInMs: expect.any(Number) })),
      { event: 'ended.dead', ...about, count: 4, step: 'max_attempts' },
    ]);
  });

  test('spread hundreds of failures at once evenly over the jitter', async () => {
    const { kit } = await openFailing();
    const message = 'socket hang up';
    await kit.holdfast.enqueueAll(
      'local_files',
      Array.from({ length: 400 }, () => ({ message })),
    );
    await kit.drain();
    const waits = (await kit.holdfast.list({ limit: 400 })).map(({ dueAt }) => Number(dueAt) - kit.holdfast.now());
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(24_000);
    expect(Math.max(...waits)).toBeLessThanOrEqual(36_000);
    // Each sixth of the bounds has its share of 67, and nowhere do they meet.
    const shares = [0, 1, 2, 3, 4, 5].map(
      (n) => waits.filter((wait) => Math.floor((wait - 24_000) / 2_001) === n).length,
    );
    expect(Math.min(...shares)).toBeGreaterThan(40);
    expect(new Set(waits).size).toBeGreaterThan(350);
  });
});

describe('other policies', () => {
  test('are chosen by source: an archive has a template of its own', async () => {
    const { config } = await openFailing();
    const asked = (source: string) => config.policyFor({ type: 'imap_mailbox', source }).policy;
    expect(asked('imap:ada@mail.example/INBOX')).toMatchObject({ maxAttempts: 6, backoff: { cap: 1_800_000 } });
    const archive = asked('imap:archive@mail.example/INBOX');
    expect(archive).toMatchObject({ maxAttempts: 20, backoff: { base: 120_000, cap: 21_600_000 } });
  });

  test('may have a strategy of the program: a function of the number of the retry', async () => {
    const squares = (retry: number) => retry ** 2 * 10_000;
    const { kit, config } = await openFailing(new Registry({ backoffs: { squares } }));
    config.load(`${YAML}types: { rss_feed: { retry: { backoff: { custom: squares }, jitter: none } } }\n`);
    const { id } = await kit.holdfast.enqueue('rss_feed', { message: 'unknown' });
    await kit.advance('1h');
    const delays = (await kit.holdfast.history(id)).flatMap((entry) =>
      entry.kind === 'execution' && entry.after !== undefined ? [entry.after] : [],
    );
    expect(delays).toEqual([10_000, 40_000, 90_000]);
  });

  test('may bound the sum of all waits of a task', async () => {
    const { kit, config } = await openFailing();
    config.load(`${YAML}types: { rss_feed: { retry: { maxTotalDelay: 4m, jitter: none } } }\n`);
    const { id } = await kit.holdfast.enqueue('rss_feed', { message: 'unknown' });
    await kit.advance('1h');
    // 60 and 120 s; another 240 s would be too many.
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', executions: 3 });
  });

  test('may learn their delays: where a file is in use for longer, later tasks begin with a longer wait', async () => {
    const began = new Map<number, number>();
    const files = defineTask('local_files', {
      source: () => 'a folder',
      run(_, { id }) {
        const now = kit.holdfast.now();
        began.set(id, began.get(id) ?? now);
        if (now < Number(began.get(id)) + 100_000) throw new Failed('in use', { reason: 'fs.locked' });
      },
    });
    const { kit, config } = await openFailing(new Registry(), { tasks: [files] });
    config.load(`${YAML}types: { local_files: { retry: { adaptive: true, jitter: none } } }\n`);
    const work = async () => {
      const receipts = await kit.holdfast.enqueueAll(files, Array(10).fill(null));
      await kit.advance('10m');
      const tasks = await Promise.all(receipts.map(({ id }) => kit.holdfast.get(id)));
      expect(tasks.map(({ state }) => state)).toEqual(Array(10).fill('succeeded'));
      return tasks.reduce((sum, { executions }) => sum + executions, 0);
    };
    // After 30, 60 and 120 s, as the policy says. A tenth of the later tasks still begins with 30 s.
    expect(await work()).toBe(40);
    expect(await work()).toBeLessThan(30);
  });

  test('replace those of a file while the program runs, and win over it', async () => {
    const { kit, config } = await openFailing();
    config.set({ type: 'local_files' }, { maxAttempts: 1 });
    const { id } = await kit.holdfast.enqueue('local_files', { message: 'socket hang up' });
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', executions: 1 });
    config.unset({ type: 'local_files' });
    expect(config.policyFor({ type: 'local_files' }).policy.maxAttempts).toBe(4);
  });
});

describe('a document of policies', () => {
  const policyOf = (policy: string) => {
    const config = new Registry();
    config.load(`max_attempts_counts: retries\nretry_policies: { feed: { jitter_factor: 0, ${policy} } }`);
    return config.policyFor({ type: 'feed' }).policy;
  };

  test.each([
    ['exponential_backoff', { kind: 'exponential', base: 60_000, factor: 2, cap: 3_600_000 }],
    ['linear_backoff', { kind: 'linear', step: 60_000, cap: 3_600_000 }],
    ['fixed_delay', { kind: 'fixed', delay: 60_000 }],
    ['immediate', { kind: 'immediate' }],
    ['no_retry', { kind: 'none' }],
  ])('has the strategy %s', (strategy, backoff) => {
    expect(policyOf(`strategy: ${strategy}`)).toMatchObject({ backoff });
  });

  test('has defaults for what it leaves out: 60 s doubling up to 1 h, 20 % jitter, three retries', () => {
    const config = new Registry();
    config.load('max_attempts_counts: retries\nretry_policies: { feed: {} }');
    expect(config.policyFor({ type: 'feed' }).policy).toMatchObject({
      maxAttempts: 4,
      backoff: { kind: 'exponential', base: 60_000, factor: 2, cap: 3_600_000 },
      jitter: { kind: 'proportional', factor: 0.2 },
      permanent: 'stop',
      rules: {},
    });
  });

  test('may retry permanent failures', () => {
    expect(policyOf('permanent_failures_no_retry: false').permanent).toBe('retry');
    expect(policyOf('permanent_failures_no_retry: true').permanent).toBe('stop');
  });

  test.each([
    ['max_attempts: 11', 'from 1 to 10'],
    ['jitter_factor: 1.1', 'from 0 to 1'],
    ['backoff_multiplier: 0.5', 'from 1 to 10'],
    ['base_delay_seconds: 600, max_delay_seconds: 60', 'max_delay_seconds 60 is below base_delay_seconds 600'],
    ['strategy: exponential', "Did you mean 'exponential_backoff'?"],
    ['max_atempts: 3', "Did you mean 'max_attempts'?"],
  ])('is refused with %s, and says why', (policy, why) => {
    expect(() => parseConfig(`retry_policies: { feed: { ${policy} } }`)).toThrow(why);
  });

  test('is warned of a name that is nearly that of a connector', () => {
    const { warnings } = parseConfig('max_attempts_counts: retries\nretry_policies: { imap_mailbx: {} }');
    expect(warnings.map(({ suggestion }) => suggestion)).toEqual(["Did you mean 'imap_mailbox'?"]);
  });
});

describe('a failure', () => {
  const { classifier } = parseConfig(YAML);
  const kindOf = (message: string, fields = {}) =>
    classifier?.classify(Object.assign(new Error(message), fields), { now: 0 }).kind;

  test('is recognised by its code and status first, whatever its message says', () => {
    expect(kindOf('too many requests', { code: 'EACCES', syscall: 'open' })).toBe('permanent');
    expect([401, 403, 404].map((status_code) => kindOf('timeout', { status_code }))).toEqual(
      Array(3).fill('permanent'),
    );
    expect([502, 503, 504].map((status_code) => kindOf('not found', { status_code }))).toEqual(
      Array(3).fill('transient'),
    );
    expect(kindOf('not found', { status_code: 429 })).toBe('rate_limited');
  });

  test.each([
    [
      'permanent',
      ['Permission denied', 'Access denied', 'Authentication failed', 'Invalid credentials', 'Mailbox not found'],
    ],
    ['rate_limited', ['API rate limit exceeded', 'Too many requests', 'Quota exceeded', 'HTTP 429']],
    [
      'transient',
      [
        'Read timeout',
        'Connection refused',
        'Temporary failure',
        'Service unavailable',
        'Network error',
        'HTTP 503',
        'HTTP 502',
      ],
    ],
  ])('is %s by the words of its message, if it has nothing else', (kind, messages) => {
    expect(messages.map((message) => kindOf(message))).toEqual(messages.map(() => kind));
  });
});

/** To a millisecond. */
function near(seconds: number) {
  return expect.closeTo(seconds, 2);
}
