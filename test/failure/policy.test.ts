import { describe, expect, test } from 'vitest';
import { InvalidInputError } from '../../src/errors.ts';
import { custom, exponential, fixed, linear, none, schedule } from '../../src/failure/backoff.ts';
import { proportional } from '../../src/failure/jitter.ts';
import { policyFrom } from '../../src/failure/layers.ts';
import {
  answerFor,
  definePolicy,
  type PolicyOptions,
  policyOver,
  readPolicy,
  standard,
} from '../../src/failure/policy.ts';
import { presets } from '../../src/failure/presets.ts';
import { HOUR } from './given.ts';

describe('a policy', () => {
  test('is the standard one by default', () => {
    expect(definePolicy()).toEqual(standard);
    expect(definePolicy({})).toEqual(standard);
  });

  test('takes the given options and keeps the other values of its base', () => {
    const policy = definePolicy({ maxAttempts: 3, giveUpAfter: '2h' }, presets.imapMailbox);
    expect(policy).toMatchObject({ maxAttempts: 3, giveUpAfter: 2 * HOUR, backoff: presets.imapMailbox.backoff });
    expect(policy.rules).toEqual(presets.imapMailbox.rules);
  });

  test('takes undefined as left out, at its own level and in rules', () => {
    const options = { maxAttempts: undefined, backoff: undefined, rules: { 'fs.locked': { maxAttempts: undefined } } };
    const policy = definePolicy(options as unknown as PolicyOptions);
    expect(policy).toMatchObject({ maxAttempts: 5, backoff: standard.backoff });
    expect(answerFor(policy, 'fs.locked', 'transient')).toMatchObject({ maxAttempts: 5, limitedBy: 'policy' });
  });

  test('combines rules by name, and replaces a rule of the same name as a whole', () => {
    const over = definePolicy({ rules: { 'fs.locked': { maxAttempts: 9, onExhausted: 'needs_manual' }, timeout: {} } });
    const policy = definePolicy({ rules: { 'fs.locked': { maxAttempts: 2 } } }, over);
    expect(policy.rules).toEqual({ rate_limited: { charge: false }, 'fs.locked': { maxAttempts: 2 }, timeout: {} });
  });

  test('allows each delay of a schedule once, unless maxAttempts is set', () => {
    const delays = schedule(['5m', '15m', '60m']);
    expect(definePolicy({ backoff: delays }).maxAttempts).toBe(4);
    expect(definePolicy({ backoff: delays, maxAttempts: 9 }).maxAttempts).toBe(9);
  });

  test('given as a whole stays as it is, with its own rules and no others', () => {
    for (const preset of Object.values(presets)) expect(definePolicy(preset)).toEqual(preset);
    expect(definePolicy({ ...presets.worker, maxAttempts: 3 }).rules).toEqual({});
  });

  test('cannot be changed, not even through the options from which it was made', () => {
    const rules = { 'fs.locked': { maxAttempts: 2 } };
    const policy = definePolicy({ rules });
    rules['fs.locked'].maxAttempts = 99;
    expect(answerFor(policy, 'fs.locked', 'transient').maxAttempts).toBe(2);
    expect(() => Object.assign(policy.rules['fs.locked'] as object, { maxAttempts: 3 })).toThrow(TypeError);
    expect(() => Object.assign(policy.rules, { timeout: {} })).toThrow(TypeError);
    expect(() => Object.assign(policy.backoff, { base: 1 })).toThrow(TypeError);
  });

  test('reads backoffs and jitters that are plain data', () => {
    const policy = definePolicy({
      backoff: { kind: 'exponential', base: '5s', cap: '1h' } as never,
      rules: { timeout: { backoff: { kind: 'fixed', delay: '1m' } as never } },
    });
    expect(policy.backoff).toEqual(exponential({ base: '5s', cap: '1h' }));
    expect(policy.rules.timeout?.backoff).toEqual(fixed('1m'));
  });

  test('has the same version for the same content, in any order', () => {
    const one = definePolicy({ maxAttempts: 7, rules: { timeout: { maxAttempts: 2 }, 'fs.*': { charge: true } } });
    const two = definePolicy({ rules: { 'fs.*': { charge: true }, timeout: { maxAttempts: 2 } }, maxAttempts: 7 });
    expect(one.version).toBe(two.version);
    expect(one.version).toMatch(/^[0-9a-f]{12}$/);
  });

  test('has the same version for every custom backoff of one name, since functions cannot be compared', () => {
    const version = (name: string, ms: number) => definePolicy({ backoff: custom(name, () => ms) }).version;
    expect(version('mine', 1)).toBe(version('mine', 2));
    expect(version('mine', 1)).not.toBe(version('yours', 1));
  });

  test.each<[string, unknown, string]>([
    ['no object', null, 'A policy must be an object, got null.'],
    ['a list', [], 'A policy must be an object, got [].'],
    ['text', 'standard', "got 'standard'."],
    ['an unknown option', { maxAttemps: 3 }, "A policy has no option 'maxAttemps'. It has: maxAttempts,"],
    ['an option of Object', { toString: 3 }, "A policy has no option 'toString'."],
    ['charge without a rule', { charge: false }, "A policy has no option 'charge'."],
    ['maxAttempts 0', { maxAttempts: 0 }, 'maxAttempts must be a whole number of at least 1, got 0.'],
    ['maxAttempts -1', { maxAttempts: -1 }, 'got -1.'],
    ['maxAttempts 1.5', { maxAttempts: 1.5 }, 'got 1.5.'],
    ['maxAttempts NaN', { maxAttempts: Number.NaN }, 'got NaN.'],
    ['maxAttempts without end', { maxAttempts: Infinity }, 'got Infinity.'],
    ['maxAttempts as text', { maxAttempts: '5' }, "got '5'."],
    ['maxAttempts as a BigInt', { maxAttempts: 5n }, 'got 5n.'],
    ['maxAttempts null', { maxAttempts: null }, 'got null.'],
    [
      'a backoff as text',
      { backoff: 'exponential' },
      "backoff: write exponential({ base: '5s', cap: '1h' }), got 'exponential'.",
    ],
    ['a backoff without numbers', { backoff: { kind: 'exponential' } }, 'backoff: base must be a duration'],
    [
      'a backoff of text numbers',
      { backoff: { kind: 'fixed', delay: '300' } },
      "backoff: delay needs a unit, got '300'. Write '300s'",
    ],
    [
      'a jitter without its factor',
      { jitter: { kind: 'proportional' } },
      'jitter: A proportional jitter must be a number between 0 and 1, got undefined.',
    ],
    ['permanent never', { permanent: 'never' }, "permanent must be one of stop, retry, got 'never'."],
    ['onExhausted failed', { onExhausted: 'failed' }, "onExhausted must be one of dead, needs_manual, got 'failed'."],
    ['maxDeferrals -1', { maxDeferrals: -1 }, 'maxDeferrals must be a whole number of at least 0, got -1.'],
    [
      'maxDeferredFor none',
      { maxDeferredFor: 'none' },
      "maxDeferredFor must be a duration such as '90s', '10m' or 'PT1H', got 'none'.",
    ],
    ['maxRetryAfter NaN', { maxRetryAfter: Number.NaN }, 'maxRetryAfter must be a duration'],
    ['giveUpAfter negative', { giveUpAfter: -1 }, 'giveUpAfter must not be negative, got -1.'],
    ['giveUpAfter too long', { giveUpAfter: '11000d' }, "giveUpAfter must be at most ten years, got '11000d'."],
    ['timeout 0', { timeout: 0 }, "timeout must be longer than 0, got 0. 'none' turns it off."],
    ['timeout null', { timeout: null }, 'timeout must be a duration'],
    ['maxExecutions 0', { maxExecutions: 0 }, 'maxExecutions must be a whole number of at least 1, got 0.'],
    ['retryAmbiguous yes', { retryAmbiguous: 'yes' }, "retryAmbiguous must be one of true, false, got 'yes'."],
    ['rules as a list', { rules: [] }, 'rules must be an object, got [].'],
    ['rules null', { rules: null }, 'rules must be an object, got null.'],
    ['a rule null', { rules: { timeout: null } }, "The rule 'timeout' must be an object, got null."],
    ['a rule that is a number', { rules: { timeout: 3 } }, "The rule 'timeout' must be an object, got 3."],
    [
      'a rule with a policy’s option',
      { rules: { timeout: { permanent: 'retry' } } },
      "The rule 'timeout' has no option 'permanent'. It has: maxAttempts, backoff, adaptive, jitter, onExhausted, charge.",
    ],
    [
      'a rule’s maxAttempts',
      { rules: { timeout: { maxAttempts: 0 } } },
      "maxAttempts of the rule 'timeout' must be a whole number of at least 1, got 0.",
    ],
    [
      'a rule’s charge',
      { rules: { timeout: { charge: 0 } } },
      "charge of the rule 'timeout' must be one of true, false, got 0.",
    ],
    [
      'a rule’s backoff',
      { rules: { timeout: { backoff: {} } } },
      "backoff of the rule 'timeout': write a backoff such as exponential(",
    ],
    [
      'a rule’s jitter',
      { rules: { timeout: { jitter: 10 } } },
      "jitter of the rule 'timeout': it must be none, full, equal, a part from 0 to 1 or a percentage, got 10. Write '10%'.",
    ],
    [
      'a rule’s end',
      { rules: { timeout: { onExhausted: 'x' } } },
      "onExhausted of the rule 'timeout' must be one of dead, needs_manual, got 'x'.",
    ],
    [
      'a rule’s name in capitals',
      { rules: { Timeout: {} } },
      "A rule's name must be a reason ('fs.locked'), a family ('fs.*') or a kind, got 'Timeout'.",
    ],
    ['a rule’s name with a star in it', { rules: { 'fs.*.x': {} } }, "got 'fs.*.x'."],
    ['a rule for a part of a family, which would never match', { rules: { 'fs.smb.*': {} } }, "got 'fs.smb.*'."],
    ['a rule for everything', { rules: { '*': {} } }, "got '*'."],
    ['a slip in a reason', { rules: { 'fs.lokced': {} } }, "Unknown reason 'fs.lokced'. Did you mean 'fs.locked'?"],
    ['a slip in a kind', { rules: { transiant: {} } }, "Unknown reason 'transiant'. Did you mean 'transient'?"],
    [
      'a slip in a family',
      { rules: { 'proces.*': {} } },
      "There is no family 'proces.*' of reasons. Did you mean 'process.*'?",
    ],
    ['a status that is no reason', { rules: { 'http.503': {} } }, "That status is 'http.5xx'."],
    ['a rule named __proto__', { rules: JSON.parse('{"__proto__":{}}') }, "got '__proto__'."],
  ])('refuses %s, and shows it', (_, options, message) => {
    const build = () => definePolicy(options as PolicyOptions);
    expect(build).toThrow(InvalidInputError);
    expect(build).toThrow(
      expect.objectContaining({ code: 'invalid_policy', message: expect.stringContaining(message) }),
    );
  });
});

test('a rule may be for a reason of an application, in its own family or in a built-in one', () => {
  const rules = {
    'order.closed': {},
    'fs.vault_sealed': {},
    'app.*': {},
    'app.unavailable': {},
    'worker.lost': {},
    permanent: {},
  };
  expect(Object.keys(definePolicy({ rules }).rules)).toEqual(expect.arrayContaining(Object.keys(rules)));
});

test('a stored policy with a misspelt rule is still read', () => {
  const stored = {
    origin: { level: 'task', by: 'task' },
    bare: false,
    options: { rules: { 'fs.lokced': {} } },
  } as const;
  expect(Object.keys(policyFrom([stored]).rules)).toContain('fs.lokced');
});

describe('the answer of a policy', () => {
  const policy = definePolicy({
    maxAttempts: 5,
    backoff: fixed('1m'),
    jitter: { kind: 'none' },
    rules: {
      transient: { maxAttempts: 7, onExhausted: 'needs_manual' },
      'fs.*': { backoff: fixed('2m') },
      'fs.locked': { jitter: proportional(0.5), charge: false },
    },
  });

  test('is its own if no rule matches', () => {
    expect(answerFor(policy, 'http.404', 'permanent')).toEqual({
      rule: 'policy',
      namesReason: false,
      adaptive: false,
      maxAttempts: 5,
      backoff: fixed('1m'),
      jitter: { kind: 'none' },
      onExhausted: 'dead',
      charge: true,
      limitedBy: 'policy',
    });
  });

  test('takes each number from the most specific rule that has it: reason, then family, then kind, then policy', () => {
    expect(answerFor(policy, 'fs.locked', 'transient')).toEqual({
      rule: 'fs.locked',
      namesReason: true,
      adaptive: false,
      maxAttempts: 7,
      backoff: fixed('2m'),
      jitter: proportional(0.5),
      onExhausted: 'needs_manual',
      charge: false,
      limitedBy: 'transient',
    });
    expect(answerFor(policy, 'fs.io', 'unknown')).toMatchObject({
      rule: 'fs.*',
      limitedBy: 'policy',
      namesReason: false,
    });
    expect(answerFor(policy, 'net.reset', 'transient')).toMatchObject({ rule: 'transient', maxAttempts: 7 });
  });

  test('to a reason without a dot can come from a family too', () => {
    const families = definePolicy({ rules: { 'timeout.*': { maxAttempts: 2 } } });
    expect(answerFor(families, 'timeout', 'transient').maxAttempts).toBe(2);
    expect(answerFor(families, 'timeouts', 'transient').maxAttempts).toBe(5);
  });

  test('to an outcome that is not a failure comes from the reason or family, never from a kind', () => {
    expect(answerFor(policy, 'worker.lost')).toMatchObject({ rule: 'policy', maxAttempts: 5 });
    const named = definePolicy({
      rules: { 'worker.*': { backoff: none }, 'explicit.later': { backoff: fixed('1ms') } },
    });
    expect(answerFor(named, 'worker.lost').backoff).toEqual(none);
    expect(answerFor(named, 'explicit.later').backoff).toEqual(fixed('1ms'));
  });

  test('does not take a rule for a kind as one for the reason of the same name', () => {
    const kinds = definePolicy({ rules: { permanent: { maxAttempts: 2 }, unknown: { maxAttempts: 3 } } });
    expect(answerFor(kinds, 'permanent', 'permanent')).toMatchObject({ rule: 'permanent', namesReason: false });
    expect(answerFor(kinds, 'unknown', 'unknown')).toMatchObject({
      rule: 'unknown',
      maxAttempts: 3,
      namesReason: false,
    });
    expect(answerFor(kinds, 'unknown', 'permanent')).toMatchObject({ rule: 'permanent', namesReason: false });
  });

  test.each(['constructor', 'toString', 'hasOwnProperty', '__proto__', 'valueOf'])(
    'to a reason named %s is the policy’s own',
    (reason) => {
      expect(answerFor(policy, reason, 'unknown')).toMatchObject({
        rule: 'policy',
        maxAttempts: 5,
        backoff: fixed('1m'),
      });
    },
  );

  test('can be given to a reason named constructor by a rule of that name', () => {
    const odd = definePolicy({ rules: { constructor: { maxAttempts: 2 } } as PolicyOptions['rules'] & object });
    expect(answerFor(odd, 'constructor', 'unknown')).toMatchObject({ rule: 'constructor', maxAttempts: 2 });
  });
});

describe('a backoff that is only changed', () => {
  const below = definePolicy({ backoff: exponential({ base: '5s', factor: 3, cap: '2h' }) });

  test.each<[PolicyOptions['backoff'], object]>([
    [{ base: '60s' }, { kind: 'exponential', base: 60_000, factor: 3, cap: 2 * HOUR }],
    [{ factor: 2 }, { kind: 'exponential', base: 5_000, factor: 2, cap: 2 * HOUR }],
    [{ cap: '1h' }, { kind: 'exponential', base: 5_000, factor: 3, cap: HOUR }],
    [
      { base: '10s', cap: '1h' },
      { kind: 'exponential', base: 10_000, factor: 3, cap: HOUR },
    ],
    [{ base: '3h' }, { kind: 'exponential', base: 3 * HOUR, factor: 3, cap: 3 * HOUR }],
    [{ cap: '1s' }, { kind: 'exponential', base: 1_000, factor: 3, cap: 1_000 }],
    [{ step: '1m' }, { kind: 'linear', step: 60_000, cap: HOUR }],
    [{ delay: '60s' }, { kind: 'fixed', delay: 60_000 }],
    [{ exponential: { base: '60s' } }, { kind: 'exponential', base: 60_000, factor: 2, cap: HOUR }],
  ])('keeps the other options of the level below: %o', (backoff, result) => {
    expect(definePolicy({ backoff } as PolicyOptions, below).backoff).toEqual(result);
  });

  test.each<[PolicyOptions['backoff'], PolicyOptions['backoff'], object]>([
    [linear({ step: '1m', cap: '10m' }), { cap: '5m' }, { kind: 'linear', step: 60_000, cap: 300_000 }],
    [linear({ step: '1m', cap: '10m' }), { step: '2m' }, { kind: 'linear', step: 120_000, cap: 600_000 }],
    [linear({ step: '1m' }), { base: '2m' }, { kind: 'exponential', base: 120_000, factor: 2, cap: HOUR }],
    [fixed('1m'), { cap: '10s' }, { kind: 'fixed', delay: 60_000 }],
    [fixed('1m'), { base: '10s' }, { kind: 'exponential', base: 10_000, factor: 2, cap: HOUR }],
    ['none', { factor: 4 }, { kind: 'none' }],
  ])('over %o: %o', (first, backoff, result) => {
    const over = definePolicy({ backoff: first } as PolicyOptions);
    expect(definePolicy({ backoff } as PolicyOptions, over).backoff).toEqual(result);
  });

  test('of a rule is that of the same rule, else of its family, else of the policy', () => {
    const rules = { 'fs.locked': { maxAttempts: 9, backoff: linear({ step: '1m', cap: '7m' }) } };
    const over = definePolicy({ rules }, below);
    const changed = definePolicy(
      {
        rules: {
          'fs.locked': { backoff: { step: '2m' } },
          'net.reset': { backoff: { base: '9s' } },
          'net.*': { backoff: { cap: '3h' } },
          timeout: { backoff: { factor: 1 } },
        },
      },
      over,
    );
    expect(changed.rules).toMatchObject({
      'fs.locked': { backoff: { kind: 'linear', step: 120_000, cap: 420_000 } },
      'net.*': { backoff: { kind: 'exponential', base: 5_000, factor: 3, cap: 3 * HOUR } },
      'net.reset': { backoff: { kind: 'exponential', base: 9_000, factor: 3, cap: 3 * HOUR } },
      timeout: { backoff: { kind: 'exponential', base: 5_000, factor: 1, cap: 2 * HOUR } },
    });
    expect(JSON.stringify(changed.rules)).not.toContain('change');
  });

  test('is read again after it was stored', () => {
    const stored = JSON.parse(JSON.stringify(readPolicy({ backoff: { base: '60s' } })));
    expect(policyOver(stored, below).backoff).toMatchObject({ base: 60_000, factor: 3 });
  });
});
