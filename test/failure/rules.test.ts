import { describe, expect, test } from 'vitest';
import { messageRules } from '../../src/failure/classify/message-rules.ts';
import { type ClassifyRule, classifierFrom } from '../../src/failure/classify/rules.ts';
import { PermanentFailure, RetryLater } from '../../src/failure/signals.ts';

const now = 0;

function coded(code: string | number, more: object = {}): Error {
  return Object.assign(new Error('it went wrong'), { code, ...more });
}

function judged(rules: readonly ClassifyRule[], thrown: unknown, type?: string) {
  return classifierFrom(rules).classify(thrown, { now, ...(type !== undefined && { type }) });
}

describe('rules of the application', () => {
  test('apply before the families, and the first that matches wins', () => {
    const rules: ClassifyRule[] = [
      { when: { code: 'EBUSY' }, reason: 'printer.busy', kind: 'transient', fault: 'source' },
      { name: 'never', when: { code: ['EBUSY', 'ENOENT'] }, reason: 'printer.gone', kind: 'permanent' },
    ];
    expect(judged(rules, coded('EBUSY'))).toMatchObject({
      kind: 'transient',
      reason: 'printer.busy',
      fault: 'source',
      ambiguous: false,
      code: 'EBUSY',
      evidence: { rule: 'rules.1', field: 'code' },
    });
    expect(judged(rules, coded('ENOENT'))).toMatchObject({ reason: 'printer.gone', evidence: { rule: 'never' } });
    expect(judged(rules, coded('EEXIST')).reason).toBe('fs.dest_exists');
  });

  test('do not apply to a signal', () => {
    const rules: ClassifyRule[] = [{ when: { name: 'PermanentFailure' }, reason: 'mine' }];
    expect(judged(rules, new PermanentFailure('x')).reason).toBe('explicit.permanent');
    expect(classifierFrom(rules).outcomeOf(new RetryLater('5s'), { now })).toMatchObject({ kind: 'deferral' });
    expect(classifierFrom([{ when: { code: 7 }, reason: 'mine' }]).outcomeOf(coded(7), { now })).toMatchObject({
      kind: 'failure',
      failure: { reason: 'mine' },
    });
  });

  test('also match a wrapped error, and name its field', () => {
    const rules: ClassifyRule[] = [{ when: { code: 42 }, reason: 'mine' }];
    expect(judged(rules, new Error('x', { cause: coded('42') })).evidence).toEqual({
      rule: 'rules.1',
      field: 'cause.code',
    });
  });

  test('match only if one error has all of their parts', () => {
    const rules: ClassifyRule[] = [
      { when: { status: '5xx', message: '^busy', name: 'ApiError', type: ['sync', 'push'] }, reason: 'mine' },
    ];
    const error = Object.assign(new Error('busy now'), { name: 'ApiError', status: 503 });
    expect(judged(rules, error, 'sync')).toMatchObject({
      reason: 'mine',
      evidence: { field: 'status+name+message+type' },
    });
    expect(judged(rules, error, 'pull').reason).toBe('http.5xx');
    expect(judged(rules, error).reason).toBe('http.5xx');
    expect(judged(rules, Object.assign(error, { status: 404 }), 'sync').reason).toBe('http.404');
  });

  test('take kind, fault and ambiguity from a built-in reason, unless they set them', () => {
    expect(judged([{ when: { code: 1 }, reason: 'net.reset' }], coded(1))).toMatchObject({
      kind: 'transient',
      fault: 'source',
      ambiguous: true,
    });
    expect(
      judged([{ when: { code: 1 }, reason: 'net.reset', kind: 'permanent', ambiguous: false }], coded(1)),
    ).toMatchObject({ kind: 'permanent', ambiguous: false });
    expect(judged([{ when: { code: 1 }, reason: 'stock.empty' }], coded(1))).toMatchObject({
      kind: 'unknown',
      fault: 'task',
    });
  });

  test('keep the wait that the error asks for, or set their own', () => {
    const error = coded(1, { status: 429, headers: { 'retry-after': '9' } });
    expect(judged([{ when: { code: 1 }, reason: 'throttled' }], error).retryAfterMs).toBe(9_000);
    expect(judged([{ when: { code: 1 }, reason: 'throttled', retryAfter: '2m' }], error).retryAfterMs).toBe(120_000);
  });

  test('may be functions, and one that throws does not match', () => {
    const rules: ClassifyRule[] = [
      {
        when: () => {
          throw new Error('no');
        },
        reason: 'first',
      },
      { when: (error, { type }) => type === 'sync' && error instanceof RangeError, reason: 'second' },
    ];
    expect(judged(rules, new RangeError('x'), 'sync')).toMatchObject({ reason: 'second', evidence: { field: 'when' } });
    expect(judged(rules, new RangeError('x')).reason).toBe('code.bug');
  });

  test('search a message in linear time, and only its first 8,192 characters', () => {
    const rules: ClassifyRule[] = [{ when: { message: '(a+)+$' }, reason: 'mine' }];
    const before = process.cpuUsage();
    expect(judged(rules, new Error(`${'a'.repeat(100_000)}!`)).reason).toBe('mine');
    expect(judged(rules, new Error(`${'a'.repeat(8_000)}!`)).reason).toBe('unknown');
    expect(process.cpuUsage(before).user / 1_000).toBeLessThan(1_000);
    expect(judged(rules, 'aaa').reason).toBe('mine');
  });

  test.each<[string, unknown, string]>([
    ['no list', {}, 'The rules must be a list'],
    ['no object', ['x'], "rules[0] must be an object, got 'x'."],
    ['a word that no rule has', [{ when: { code: 1 }, reason: 'x', retry: 5 }], "rules[0] has no 'retry'"],
    ['no reason', [{ when: { code: 1 } }], 'rules[0].reason must be a lower-case slug'],
    [
      'a kind that is none',
      [{ when: { code: 1 }, reason: 'x', kind: 'often' }],
      "rules[0].kind must be one of transient, rate_limited, permanent, unknown, got 'often'.",
    ],
    ['nothing to match', [{ when: {}, reason: 'x' }], 'a rule without one would match everything'],
    ['no when', [{ reason: 'x' }], 'rules[0].when must be an object or a function'],
    ['a field that no error has', [{ when: { kode: 1 }, reason: 'x' }], "rules[0].when has no 'kode'"],
    [
      'a status that is none',
      [{ when: { status: 200 }, reason: 'x' }],
      'rules[0].when.status must be a status such as 429',
    ],
    ['a name that is a number', [{ when: { name: 5 }, reason: 'x' }], 'rules[0].when.name must be a text'],
    ['an expression with look-around', [{ when: { message: 'a(?=b)' }, reason: 'x' }], 'RE2 has no look-around'],
    ['an expression that is open', [{ when: { message: '(' }, reason: 'x' }], 'rules[0].when.message'],
    [
      'a wait that is none',
      [{ when: { code: 1 }, reason: 'x', retryAfter: 'soon' }],
      'rules[0].retryAfter must be a duration',
    ],
    [
      'ambiguity that is no yes or no',
      [{ when: { code: 1 }, reason: 'x', ambiguous: 1 }],
      'rules[0].ambiguous must be true or false',
    ],
  ])('are refused when they are loaded, naming what is wrong: %s', (_, rules, message) => {
    expect(() => classifierFrom(rules as never)).toThrow(message);
    expect(() => classifierFrom(rules as never)).toThrow(expect.objectContaining({ code: 'invalid_input' }));
  });
});

describe('the rules for errors that are only text', () => {
  const { classify } = classifierFrom(messageRules);
  const seen = (message: string) => {
    const { kind, reason } = classify(new Error(message), { now });
    return `${kind} ${reason}`;
  };

  test.each([
    ['Permission denied', 'permanent auth.forbidden'],
    ['/vault/a.md: Permission denied', 'permanent auth.forbidden'],
    ['open failed: access denied (13)', 'permanent auth.forbidden'],
    ['Authentication failed', 'permanent auth.invalid'],
    ['LOGIN: invalid credentials', 'permanent auth.invalid'],
    ['Repository not found', 'permanent not_found'],
    ['fatal: repository "x/y" not found', 'permanent not_found'],
    ['Too many requests', 'rate_limited throttled'],
    ['API rate limit exceeded for installation', 'rate_limited throttled'],
    ['Quota exceeded.', 'rate_limited throttled'],
    ['HTTP 429', 'rate_limited http.429'],
    ['HTTP 503', 'transient http.5xx'],
    ['Resource temporarily unavailable', 'transient http.5xx'],
    ['Service unavailable', 'transient http.5xx'],
    ['Connection refused', 'transient net.refused'],
    ['sync: connection timed out', 'transient timeout'],
    ['Network unreachable', 'transient net.failed'],
  ])('%s', (message, expected) => {
    expect(seen(message)).toBe(expected);
  });

  // The words by which a documented system classifies: one text that is recognised, and one that only contains the word.
  test.each([
    ['permission denied', 'permanent', 'Permission denied', 'permission denied_handler is not set'],
    ['access denied', 'permanent', 'open failed: access denied (13)', 'saw "access denied" in the log of Tuesday'],
    ['authentication failed', 'permanent', 'Authentication failed', 'the authentication failed_logins table is full'],
    ['invalid credentials', 'permanent', 'LOGIN: invalid credentials', 'no invalid credentials were seen'],
    ['not found', 'permanent', 'Repository not found', 'Customer not found in cache, and the refresh is late'],
    ['rate limit', 'rate_limited', 'API rate limit exceeded', 'the rate limits table is empty'],
    ['too many requests', 'rate_limited', 'Too many requests', 'it was never too many requests'],
    ['quota exceeded', 'rate_limited', 'Quota exceeded.', 'the column quota_exceeded is missing'],
    ['429', 'rate_limited', 'HTTP 429', 'task 429 of 503 done'],
    ['timeout', 'transient', 'Read timeout', 'The option "timeout" must be a number'],
    ['connection refused', 'transient', 'Connection refused', 'the connection refused_by is not set'],
    ['temporary', 'transient', 'temporary failure', 'temporary file /tmp/x written'],
    ['unavailable', 'transient', 'Service unavailable', 'marked as unavailable by the owner'],
    ['network', 'transient', 'Network error', 'The network adapter is called eth0'],
    ['503', 'transient', 'HTTP 503', 'Bad value at line 503 of import.csv'],
    ['502', 'transient', 'HTTP 502', 'temporary file /tmp/502 written'],
  ])('know %s as %s, but not in every text', (term, kind, text, other) => {
    expect(seen(text).split(' ')[0]).toBe(kind);
    expect(other.toLowerCase()).toContain(term.replaceAll(' ', other.includes('_exceeded') ? '_' : ' '));
    expect(seen(other)).toBe('unknown unknown');
  });

  test.each([
    'task 429 of 503 done',
    'Bad value at line 404 of import.csv',
    'Customer not found in cache, and the refresh timed_out flag is set',
    'The option "timeout" must be a number',
    'Set permission_denied_handler first',
    'temporary file /tmp/502 written',
    'The network adapter is called eth0',
    'Zugriff verweigert',
    '接続がタイムアウトしました',
    '',
  ])('leaves alone what only looks like it: %s', (message) => {
    expect(seen(message)).toBe('unknown unknown');
  });
});
