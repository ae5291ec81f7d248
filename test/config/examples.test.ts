import { describe, expect, test } from 'vitest';
import { parseExamples, runExample } from '../../src/config/examples.ts';
import { Registry } from '../../src/config/registry.ts';
import { InvalidConfigError } from '../../src/errors.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function registry(text = ''): Registry {
  const made = new Registry();
  if (text !== '') made.load(text);
  return made;
}

function run(example: string, config = '') {
  const [parsed, second] = parseExamples(`tests:\n  - ${example}\n`, 'examples.yaml');
  if (!parsed || second) throw new Error('One example at a time.');
  const thrown = (error: unknown) => (typeof error === 'string' ? new Error(error) : Object.assign(new Error(), error));
  return runExample(registry(config), parsed, thrown, NOW);
}

function problemsOf(text: string): string[] {
  try {
    parseExamples(text, 'examples.yaml');
  } catch (error) {
    if (error instanceof InvalidConfigError)
      return error.problems.map(({ line, column, message, suggestion }) =>
        `${line}:${column} ${message} ${suggestion ?? ''}`.trim(),
      );
    throw error;
  }
  return [];
}

describe('an example', () => {
  test.each([
    [
      'of what was counted before',
      '{ type: file_move, failure: { reason: fs.locked }, given: { charged: { fs.locked: 9 } }, expect: { next: dead, count: 10, limit: 10 } }',
    ],
    [
      'of an error that is classified',
      '{ type: x, error: { status: 503 }, expect: { kind: transient, reason: http.5xx, fault: source } }',
    ],
    ['of a message', "{ type: x, error: 'connect ECONNREFUSED 10.0.0.5:5432', expect: { reason: net.refused } }"],
    [
      'of the bounds of jitter',
      '{ type: imap_mailbox, failure: { reason: timeout }, expect: { after: 2m, between: [84s, 156s] } }',
    ],
    [
      'of a wait that was asked for',
      '{ type: x, failure: { reason: http.429, retryAfter: 10m }, expect: { charge: deferrals, after: 10m, step: deferral } }',
    ],
    ['of a lost worker', '{ type: x, outcome: lost, expect: { next: scheduled, charge: nobody } }'],
    [
      'of the fourth recovery',
      '{ type: x, outcome: lost, given: { recoveries: 3 }, expect: { next: needs_manual, step: crash_loop } }',
    ],
    [
      'of what must not run twice',
      '{ type: x, outcome: lost, given: { idempotent: false }, expect: { next: needs_manual, step: ambiguous } }',
    ],
    [
      'of a deadline',
      '{ type: analysis, failure: { reason: timeout }, given: { untilDeadline: 1m }, expect: { next: dead, step: deadline } }',
    ],
    ['of a cancel', '{ type: x, outcome: interrupted, given: { cancelRequested: true }, expect: { next: cancelled } }'],
    ['of a passed deadline', '{ type: x, outcome: deadline, expect: { next: dead } }'],
    [
      'of a reason of its own',
      '{ type: x, failure: { reason: order.closed, kind: transient }, given: { charged: { order.closed: 1 } }, expect: { count: 2 } }',
    ],
  ])('%s holds', (_, example) => {
    expect(run(example).wrong).toEqual([]);
  });

  test('is answered by the policies that it is run with, its queue and its source too', () => {
    const config =
      'queues: { slow: { retry: { maxAttempts: 7 } } }\nsources: { imap:A: { retry: { maxAttempts: 8 } } }';
    const expecting = (asked: string, limit: number) =>
      `{ type: x, ${asked} failure: { reason: timeout }, expect: { limit: ${limit} } }`;
    expect(run(expecting('queue: slow,', 7), config).wrong).toEqual([]);
    expect(run(expecting('source: "imap:A",', 8), config).wrong).toEqual([]);
    expect(run(expecting('', 5), config).wrong).toEqual([]);
  });

  test('is classified by the rules of the configuration', () => {
    const config = 'classify: [{ when: { status: 409 }, reason: order.closed, kind: permanent }]';
    expect(
      run('{ type: x, error: { status: 409 }, expect: { reason: order.closed, next: dead } }', config).wrong,
    ).toEqual([]);
  });

  test('that does not hold says what was expected and what came', () => {
    const { wrong, foreseen } = run(
      '{ type: analysis, failure: { reason: timeout }, expect: { after: 10m, next: dead, between: [1m, 2m] } }',
    );
    expect(wrong).toEqual([
      { what: 'after', expected: 600_000, got: 300_000 },
      { what: 'next', expected: 'dead', got: 'scheduled' },
      { what: 'between', expected: [60_000, 120_000], got: [300_000, 300_000] },
    ]);
    expect(foreseen.decision.because.text).toContain('attempt 1 of 4');
  });
});

describe('a file of examples', () => {
  test.each([
    ['tests: []', '1:1 The file has no examples. Write them under `tests:`.'],
    [
      'types: {}',
      "1:1 A file of examples has no 'types'. This is a configuration. Test it with --config, and write examples under 'tests'.",
    ],
    ['tests: [{ outcome: lost, expect: { next: dead } }]', '1:9 An example needs the `type` of its task.'],
    [
      'tests: [{ type: x, expect: { next: dead } }]',
      '1:9 An example needs one of error, failure and outcome, and has 0 of them.',
    ],
    [
      'tests: [{ type: x, error: a, outcome: lost, expect: { next: dead } }]',
      '1:9 An example needs one of error, failure and outcome, and has 2 of them.',
    ],
    ['tests: [{ type: x, outcome: lost }]', '1:9 An example needs something under `expect`.'],
    [
      'tests: [{ type: x, failure: { kind: transient }, expect: { next: dead } }]',
      '1:9 Its `failure` needs a `reason`.',
    ],
    [
      'tests: [{ type: x, outcome: lost, expect: { next: ded } }]',
      "1:51 It must be one of scheduled, dead, needs_manual, cancelled, got 'ded'. Did you mean 'dead'?",
    ],
    [
      'tests: [{ type: x, outcome: lost, expect: { after: 90 } }]',
      '1:52 90 has no unit. Write 90s for seconds, or 90ms.',
    ],
    [
      'tests: [{ type: x, outcome: lost, expects: { next: dead } }]',
      "1:35 An example has no 'expects'. Did you mean 'expect'?",
    ],
    [
      'tests: [{ type: x, outcome: lost, expect: { between: [1m, 2m, 3m] } }]',
      '1:9 `between` takes two bounds, got 3. Write between: [8m, 12m].',
    ],
  ])('%s is refused', (text, told) => {
    expect(problemsOf(text)).toContain(told);
  });

  test('names each example, and the line in which it stands', () => {
    const [named, unnamed] = parseExamples(
      'tests:\n  - { name: a promise, type: x, outcome: lost, expect: { next: dead } }\n  - { type: x, outcome: lost, expect: { next: dead } }\n',
      'examples.yaml',
    );
    expect([named?.name, named?.line, unnamed?.name]).toEqual(['a promise', 2, 'the example in line 3']);
  });
});
