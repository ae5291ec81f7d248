import { describe, expect, test } from 'vitest';
import { parseConfig, problemsOf } from '../../src/config/config.ts';
import { Registry, type Target } from '../../src/config/registry.ts';
import { InvalidConfigError } from '../../src/errors.ts';
import { ceiling, fixed } from '../../src/failure/backoff.ts';
import { describeOrigin, type ExplainedPolicy } from '../../src/failure/layers.ts';
import { definePolicy, standard } from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';

function registryOf(text: string, options = {}): Registry {
  const registry = new Registry(options);
  registry.load(text, 'holdfast.yaml');
  return registry;
}

/** Who said each value, by its path. */
function origins({ values }: ExplainedPolicy): Record<string, string> {
  return Object.fromEntries(values.map(({ path, from }) => [path.join(' '), describeOrigin(from)]));
}

const ALL_LEVELS = `
defaults:
  retry: { maxAttempts: 11, timeout: 1m, maxDeferrals: 1, maxExecutions: 101 }
queues:
  bulk:
    retry: { maxAttempts: 12, timeout: 2m, maxDeferrals: 2 }
types:
  mail:
    retry: { maxAttempts: 13, timeout: 3m }
sources:
  imap:INBOX:
    retry: { maxAttempts: 14 }
`;

describe('of what is said about a task', () => {
  const registry = registryOf(ALL_LEVELS);
  const numbers = (asked: Parameters<Registry['policyFor']>[0]) => {
    const { maxAttempts, timeout, maxDeferrals, maxExecutions } = registry.policyFor(asked).policy;
    return [maxAttempts, timeout, maxDeferrals, maxExecutions];
  };

  test('the most specific counts, value by value: task, source, type, queue, default', () => {
    expect(numbers({ type: 'other' })).toEqual([11, 60_000, 1, 101]);
    expect(numbers({ type: 'other', queue: 'bulk' })).toEqual([12, 120_000, 2, 101]);
    expect(numbers({ type: 'mail', queue: 'bulk' })).toEqual([13, 180_000, 2, 101]);
    expect(numbers({ type: 'mail', queue: 'bulk', source: 'imap:INBOX' })).toEqual([14, 180_000, 2, 101]);
    const retry = { maxAttempts: 15 };
    expect(numbers({ type: 'mail', queue: 'bulk', source: 'imap:INBOX', retry })).toEqual([15, 180_000, 2, 101]);
  });

  test('a backoff that is only changed keeps the rest of the level below', () => {
    const changed = registryOf(`
defaults: { retry: { backoff: { exponential: { base: 5s, factor: 3, cap: 2h } } } }
types:
  a: { retry: { backoff: { base: 60s } } }
  b: { retry: { backoff: { delay: 60s } } }
sources:
  s: { retry: { backoff: { cap: 30m }, rules: { timeout: { backoff: { factor: 1 } } } } }
`);
    const backoffOf = (asked: Parameters<Registry['policyFor']>[0]) => changed.policyFor(asked).policy.backoff;
    expect(backoffOf({ type: 'a' })).toEqual({ kind: 'exponential', base: 60_000, factor: 3, cap: 7_200_000 });
    expect(backoffOf({ type: 'a', source: 's' })).toEqual({
      kind: 'exponential',
      base: 60_000,
      factor: 3,
      cap: 1_800_000,
    });
    expect(backoffOf({ type: 'b', source: 's' })).toEqual({ kind: 'fixed', delay: 60_000 });
    expect(changed.policyFor({ type: 'a', source: 's' }).policy.rules).toMatchObject({
      timeout: { backoff: { kind: 'exponential', base: 60_000, factor: 1, cap: 1_800_000 } },
    });
  });

  test('each value says where it came from', () => {
    const asked = { type: 'mail', queue: 'bulk', source: 'imap:INBOX', retry: { permanent: 'retry' } } as const;
    expect(origins(registry.policyFor(asked))).toMatchObject({
      permanent: 'the task itself',
      maxAttempts: 'holdfast.yaml:12',
      timeout: 'holdfast.yaml:9',
      maxDeferrals: 'holdfast.yaml:6',
      maxExecutions: 'holdfast.yaml:3',
      backoff: 'default',
      'rules rate_limited charge': 'default',
    });
  });

  test('a file goes over code, and code over its queue and the default', () => {
    const { policy, values } = registry.policyFor(
      { type: 'mail', queue: 'bulk' },
      { timeout: 540_000, maxDeferrals: 9 },
    );
    expect(policy).toMatchObject({ timeout: 180_000, maxDeferrals: 9, maxAttempts: 13 });
    expect(values.find(({ path }) => path[0] === 'maxDeferrals')?.from).toEqual({ level: 'type', by: 'code' });
  });

  test('a preset says what it names, and gives way in everything else', () => {
    const explained = registryOf('defaults: { retry: { timeout: 9m, maxAttempts: 3 } }').policyFor({
      type: 'imap_mailbox',
    });
    expect(explained.policy).toMatchObject({ maxAttempts: 5, timeout: 540_000, rules: presets.imapMailbox.rules });
    expect(origins(explained)).toMatchObject({ maxAttempts: 'preset imap_mailbox', timeout: 'holdfast.yaml:1' });
  });

  test('a whole policy of the code says everything', () => {
    const whole = definePolicy({ maxAttempts: 2 });
    const { policy } = registryOf('defaults: { retry: { timeout: 9m } }').policyFor({ type: 'x' }, whole);
    expect(policy.version).toBe(whole.version);
  });

  test('without a word from anybody every type has what it has anyway', () => {
    const empty = new Registry();
    expect(empty.policyFor({ type: 'x' }).policy.version).toBe(standard.version);
    for (const [type, preset] of [
      ['file_move', presets.fileMove],
      ['analysis', presets.analysis],
      ['standard', standard],
    ] as const) {
      expect(empty.policyFor({ type }).policy.version).toBe(preset.version);
    }
  });

  test('an exact source counts before a beginning, and the longest beginning before shorter ones', () => {
    const sources = registryOf(`
sources:
  '*': { retry: { maxAttempts: 2 } }
  'imap:*': { retry: { maxAttempts: 3 } }
  'imap:IN*': { retry: { maxAttempts: 4 } }
  imap:INBOX: { retry: { maxAttempts: 5 } }
`);
    const of = (source: string) => sources.policyFor({ type: 'x', source }).policy.maxAttempts;
    expect(['http:a', 'imap:Sent', 'imap:INFO', 'imap:INBOX'].map(of)).toEqual([2, 3, 4, 5]);
  });
});

describe('a named policy', () => {
  const text = `
policies:
  patient: { giveUpAfter: 48h, rules: { fs.locked: { maxAttempts: 20 } } }
  mailbox:
    extends: imap_mailbox
    maxAttempts: 9
types:
  a: { retry: mailbox }
  b: { retry: { extends: mailbox, jitter: none } }
  imap_mailbox: { retry: patient }
  c: { retry: { extends: none, maxAttempts: 2 } }
`;
  const registry = registryOf(text);

  test('lends its values, and those of what it extends', () => {
    const { policy } = registry.policyFor({ type: 'a' });
    expect(policy).toMatchObject({
      maxAttempts: 9,
      backoff: { base: 120_000 },
      rules: { transient: { maxAttempts: 7 } },
    });
    expect(registry.policyFor({ type: 'b' }).policy).toMatchObject({ maxAttempts: 9, jitter: { kind: 'none' } });
  });

  test('says in its own line what came from it', () => {
    expect(origins(registry.policyFor({ type: 'b' }))).toMatchObject({
      maxAttempts: 'holdfast.yaml:6',
      jitter: 'holdfast.yaml:9',
      backoff: 'preset imap_mailbox, by holdfast.yaml:5',
    });
  });

  test('that extends nothing leaves the rest of a type as it is', () => {
    const { rules, maxAttempts, giveUpAfter } = registry.policyFor({ type: 'imap_mailbox' }).policy;
    expect(rules).toEqual({ ...presets.imapMailbox.rules, 'fs.locked': { maxAttempts: 20 } });
    expect([maxAttempts, giveUpAfter]).toEqual([5, 48 * 3_600_000]);
  });

  test('may take no rules from underneath', () => {
    expect(registry.policyFor({ type: 'c' }).policy.rules).toEqual({});
    expect(registry.policyFor({ type: 'd' }).policy.rules).toEqual(standard.rules);
  });
});

test('how long tasks are kept is said to workers as code would say it', () => {
  const days = (n: number) => `${n * 86_400_000}ms`;
  const said = registryOf(`
retention:
  succeeded: 7d
  dead: { default: 30d, fs.locked: 90d, http.*: 14d, order.closed: 1d }
  cancelled: { unique.superseded: 0 }
  needs_manual: never
worker: { concurrency: 4 }
`);
  expect(said.worker).toEqual({
    concurrency: 4,
    retention: {
      succeeded: days(7),
      dead: { default: days(30), 'fs.locked': days(90), 'http.*': days(14), 'order.closed': days(1) },
      cancelled: { 'unique.superseded': days(0) },
      needs_manual: { default: 'never' },
    },
  });
  expect(registryOf('version: 1').worker).toEqual({});
});

describe('what is set at run time', () => {
  test.each<[string, Target]>([
    ['everything', 'default'],
    ['a queue', { queue: 'bulk' }],
    ['a type', { type: 'mail' }],
    ['a source', { source: 'imap:INBOX' }],
  ])('about %s goes over what the file says of the same, until it is taken back', (_, target) => {
    const registry = registryOf(ALL_LEVELS);
    const asked = { type: 'mail', queue: 'bulk', source: 'imap:INBOX' };
    const before = registry.policyFor(asked).policy;
    registry.set(target, { permanent: 'retry' });
    expect(registry.policyFor(asked).policy.permanent).toBe('retry');
    expect(origins(registry.policyFor(asked)).permanent).toBe('set at run time');
    registry.unset(target);
    expect(registry.policyFor(asked).policy.version).toBe(before.version);
  });

  test('stays when the file is read anew', () => {
    const registry = registryOf('types: { mail: { retry: { maxAttempts: 3 } } }');
    registry.set({ type: 'mail' }, { maxAttempts: 4 });
    registry.load('types: { mail: { retry: { maxAttempts: 5, timeout: 1m } } }');
    expect(registry.policyFor({ type: 'mail' }).policy).toMatchObject({ maxAttempts: 4, timeout: 60_000 });
  });

  test('may be a preset, which takes no rules from underneath', () => {
    const registry = new Registry();
    registry.set({ type: 'mail' }, presets.imapMailbox);
    expect(registry.policyFor({ type: 'mail' }).policy.version).toBe(presets.imapMailbox.version);
    registry.set({ type: 'mail' }, { ...presets.imapMailbox, maxAttempts: 2 });
    expect(registry.policyFor({ type: 'mail' }).policy).toMatchObject({
      maxAttempts: 2,
      rules: presets.imapMailbox.rules,
    });
  });

  test('is refused where no policy could be made of it', () => {
    const registry = new Registry();
    expect(() => registry.set({ type: 'mail' }, { maxAttempts: 0 })).toThrow(
      'maxAttempts must be a whole number of at least 1, got 0.',
    );
    expect(() => registry.set({} as Target, {})).toThrow('A policy is set for one of');
    expect(() => registry.set({ typ: 'mail' } as never, {})).toThrow("no option 'typ'");
    expect(() => registry.set({ type: '' }, {})).toThrow('type must be a text');
  });

  test('is told to whoever listens, as a new file is', () => {
    const registry = new Registry();
    let heard = 0;
    const stop = registry.onChange(() => {
      heard += 1;
    });
    registry.set('default', {});
    registry.load('version: 1');
    registry.unset({ type: 'never set' });
    stop();
    registry.unset('default');
    expect(heard).toBe(2);
  });
});

describe('what a registry says', () => {
  test('is the same object until something changes', () => {
    const registry = registryOf(ALL_LEVELS);
    const task = { type: 'mail', queue: 'bulk', source: 'imap:INBOX' };
    const said = registry.said(task);
    expect(registry.said({ ...task })).toBe(said);
    expect(registry.said({ type: 'x', queue: 'q', source: 'a' })).toBe(
      registry.said({ type: 'y', queue: 'r', source: 'b' }),
    );
    registry.set('default', {});
    expect(registry.said(task)).not.toBe(said);
  });

  test('stays as it was where a newer file is refused, and says why', () => {
    const registry = registryOf(ALL_LEVELS);
    const { version } = registry.policyFor({ type: 'mail' }).policy;
    expect(() => registry.load('types: { mail: { retry: { maxAttempts: 0 } } }')).toThrow(InvalidConfigError);
    expect(registry.policyFor({ type: 'mail' }).policy.version).toBe(version);
    expect(registry.rejected?.problems).toHaveLength(1);
    registry.load(ALL_LEVELS);
    expect(registry.rejected).toBeUndefined();
  });
});

describe('a backoff of one’s own', () => {
  const text = 'types: { a: { retry: { maxAttempts: 4, backoff: { custom: squares } } } }';

  test('is known by its name', () => {
    const registry = registryOf(text, { backoffs: { squares: (k: number) => k * k * 1_000 } });
    const { backoff } = registry.policyFor({ type: 'a' }).policy;
    expect([1, 2, 3].map((k) => ceiling(backoff, k))).toEqual([1_000, 4_000, 9_000]);
  });

  test('that nobody registered is refused, with those that there are', () => {
    const [problem] = problemsOf(text, { backoffs: { cubes: (k) => k ** 3 } });
    expect(problem).toMatchObject({
      message: "No backoff is registered as 'squares'.",
      suggestion: 'There are: cubes.',
    });
  });

  test('must be a function', () => {
    expect(() => new Registry({ backoffs: { squares: fixed('1s') as never } })).toThrow(
      "The backoff 'squares' must be a function",
    );
  });
});

describe('the rest of a file', () => {
  test('is for queues, workers and the classifier', () => {
    const config = parseConfig(`
queues: { bulk: { order: priority, fair: true }, calm: { retry: standard } }
worker: { concurrency: 3, leaseFor: 1m, capabilities: { cpu: 8 } }
classify:
  - name: closed
    when: { status: [409, 4xx], message: (?i)closed }
    reason: order.closed
    kind: permanent
`);
    expect(config.setUps).toEqual(new Map([['bulk', { order: 'priority', fair: true }]]));
    expect(config.worker).toEqual({ concurrency: 3, leaseFor: '60000ms', capabilities: { cpu: 8 } });
    const error = Object.assign(new Error('It is CLOSED.'), { status: 409 });
    expect(config.classifier?.classify(error, { now: 0 })).toMatchObject({
      reason: 'order.closed',
      kind: 'permanent',
      evidence: { rule: 'closed' },
    });
  });

  test('limits sources and queues', () => {
    const config = parseConfig(`
queues: { bulk: { pace: 5000/h, retry: standard }, calm: { order: lifo, concurrency: none } }
sources:
  api.example: { pace: { rate: 10/s, burst: 5 }, concurrency: 4 }
  imap:INBOX: { concurrency: 1, pace: none, retry: { maxAttempts: 9 } }
  disk: { retry: { maxAttempts: 9 } }
`);
    expect(config.setUps).toEqual(
      new Map([
        ['bulk', { pace: { perSecond: 5_000 / 3_600, burst: 1 } }],
        ['calm', { order: 'lifo', concurrency: null }],
      ]),
    );
    expect(config.limits).toEqual(
      new Map([
        ['api.example', { pace: { perSecond: 10, burst: 5 }, concurrency: 4 }],
        ['imap:INBOX', { concurrency: 1, pace: null }],
      ]),
    );
    expect([...config.sources.keys()]).toEqual(['imap:INBOX', 'disk']);
  });

  test('may be JSON, also with tabs', () => {
    const text = JSON.stringify({ types: { a: { retry: { maxAttempts: 7 } } } }, null, '\t');
    expect(registryOf(text).policyFor({ type: 'a' }).policy.maxAttempts).toBe(7);
  });

  test('may name its reasons in rules: those of its own classifier, its list, and whatever else it calls its own', () => {
    const rules = 'types: { a: { retry: { rules: { order.closed: {}, "order.*": {} } } } }';
    expect(problemsOf(rules)).toEqual([]);
    expect(problemsOf(`classify: [{ when: { code: E1 }, reason: order.closed }]\n${rules}`)).toEqual([]);
    expect(problemsOf(`reasons: [order.closed, fs.lokced]\n${rules}`)).toEqual([]);
    expect(
      problemsOf('types: { a: { retry: { rules: { worker.lost: {}, explicit.later: {}, timeout: {} } } } }'),
    ).toEqual([]);
  });

  test('may reuse a value by an alias', () => {
    const text = 'types:\n  a: { retry: &slow { timeout: 2h } }\n  b: { retry: *slow }';
    expect(registryOf(text).policyFor({ type: 'b' }).policy.timeout).toBe(7_200_000);
  });
});

test('messageRules recognises what is only text, and changes nothing that a code, a status or a rule says', () => {
  const { classifier } = registryOf(
    "messageRules: true\nclassify: [{ when: { message: '^Quota exceeded' }, reason: mail.full, kind: permanent }]",
  );
  const reasonOf = (message: string, fields = {}) =>
    classifier?.classify(Object.assign(new Error(message), fields), { now: 0 }).reason;
  expect(reasonOf('Repository not found')).toBe('not_found');
  expect(reasonOf('open: permission denied', { code: 'EACCES', syscall: 'open' })).toBe('fs.permission');
  expect(reasonOf('Not Found', { status: 404 })).toBe('http.404');
  expect(reasonOf('Quota exceeded')).toBe('mail.full');
  expect(reasonOf('something else')).toBe('unknown');
  expect(classifier?.outcomeOf(new Error('Network error'), { now: 0 })).toMatchObject({
    failure: { reason: 'net.failed' },
  });
  expect(registryOf('classify: []').classifier).toBeUndefined();
});
