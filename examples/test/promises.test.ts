import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { commandIn } from '../../scripts/examples/commands.mjs';
import { problemOf } from '../../scripts/examples/mutations.mjs';
import { systemsPage } from '../../scripts/examples/page.mjs';
import { readPromises } from '../../scripts/examples/promises.mjs';
import { brokenFiles, resultsByTest, unfounded, whyNotProven } from '../../scripts/examples/results.mjs';
import { report } from '../../scripts/examples/table.mjs';

const FILE = 'examples/a/test/a.test.ts';

/** A report of Vitest about one file. */
function reported(tests: readonly [ancestors: readonly string[], title: string, status: string][]) {
  const assertionResults = tests.map(([ancestorTitles, title, status]) => ({ ancestorTitles, title, status }));
  return [{ name: join('/root', FILE), status: 'passed', assertionResults }];
}

describe('a promise', () => {
  const results = resultsByTest(
    reported([
      [['a run'], 'is retried', 'passed'],
      [['a run'], 'is given up', 'failed'],
      [['a run'], 'is lost', 'skipped'],
      [[], 'twice', 'passed'],
      [[], 'twice', 'failed'],
    ]),
    '/root',
  );

  test('is proven by a test that passed', () => {
    expect(whyNotProven(`${FILE} > a run > is retried`, results)).toBeUndefined();
  });

  test.each([
    ['a run > is given up', 'its test failed'],
    ['a run > is lost', 'its test did not run (skipped)'],
    ['a run > is renamed', 'there is no test of that name'],
    ['is retried', 'there is no test of that name'],
    ['twice', 'its test failed'],
  ])('is not proven by the test %s: %s', (name, why) => {
    expect(whyNotProven(`${FILE} > ${name}`, results)).toBe(why);
  });

  test.each([
    ['promises: []', 'must be a list'],
    ['[]', 'must be a list'],
    ['- promise: a: b', 'promises.yaml is no YAML'],
    ['- 1', 'entry 1: it needs a `promise`'],
    ['- { promise: a, section: b }', 'entry 1: it needs either a `test` or'],
    ['- { promise: a, section: b, left: c, test: "x.test.ts > d" }', 'entry 1: it needs either a `test` or'],
    ['- { promise: a, section: b, left: "" }', '`left` must be a text'],
    ['- { promise: a, section: b, lft: c }', "'lft' is none of"],
    ['- { promise: a, section: b, test: only a name }', '`test` must be like'],
  ])('is refused, with its place, as %s', (text, why) => {
    expect(() => readPromises(text, 'promises.yaml')).toThrow(why);
  });
});

test('a file of tests that could not be loaded is named', () => {
  const broken = { name: '/root/b.test.ts', status: 'failed', message: 'Cannot find x\nat y', assertionResults: [] };
  expect(brokenFiles([...reported([[[], 'a', 'passed']]), broken], '/root')).toEqual(['b.test.ts: Cannot find x']);
});

test('the command of an example is the first of its README that runs it', () => {
  const readme =
    'Text.\n\n```js\nnode examples/no\n```\n\n```sh\nnpm ci\nnode examples/a/main.js --x 1   # why\nnode examples/b.js\n```\n';
  expect(commandIn(readme)).toEqual(['examples/a/main.js', '--x', '1']);
  expect(commandIn('```sh\nnpm run build && node examples/a/main.js\n```\n')).toEqual(['examples/a/main.js']);
  expect(commandIn('none')).toBeUndefined();
});

describe('of a system', () => {
  const system = { title: 'Pending moves', page: 'pending-moves.md', example: 'a' };
  const proven = { promise: 'It is retried.', section: 'Retries', test: `${FILE} > a run > is retried [once]` };
  const left = { promise: 'It is deleted.', section: 'Hygiene', left: 'Not yet.' };

  test('the page links what is proven to its test, and says why the rest is left', () => {
    const text = systemsPage([{ ...system, promises: [proven, left] }]);
    expect(text).toContain('Of 2 promises 1 are proven, and 1 are left out.');
    expect(text).toContain(`- It is retried. [a run › is retried \\[once\\]](../../${FILE})`);
    expect(text).toContain('- It is deleted. (Hygiene) **Left out:** Not yet.');
  });

  test('the table counts what was promised, proven, left and not proven', () => {
    const failed = { ...proven, promise: 'It ends.', test: `${FILE} > a run > ends` };
    const results = resultsByTest(
      reported([
        [['a run'], 'is retried [once]', 'passed'],
        [['a run'], 'ends', 'failed'],
      ]),
      '/root',
    );
    const text = report([{ ...system, promises: [proven, failed, left] }], results);
    expect(text).toMatch(/Pending moves +3 +1 +1 +1$/m);
    expect(text).toContain(`FAILED  It ends.\n          its test failed: ${FILE}`);
    expect(text).toContain(`proven  It is retried.\n          ${FILE}`);
  });

  test('a promise whose test is unknown or did not run is a failure of its own', () => {
    const results = resultsByTest(reported([[['a run'], 'is retried [once]', 'skipped']]), '/root');
    const renamed = { ...proven, test: `${FILE} > a run > is renamed` };
    expect(unfounded([proven, renamed, left], results)).toEqual([
      `its test did not run (skipped): ${FILE} > a run > is retried [once] (It is retried.)`,
      `there is no test of that name: ${FILE} > a run > is renamed (It is retried.)`,
    ]);
    const failed = resultsByTest(reported([[['a run'], 'is retried [once]', 'failed']]), '/root');
    expect(unfounded([proven], failed)).toEqual([]);
  });
});

test.each([
  [{}, '`what` must be a text.'],
  [{ find: 'readNothing' }, '"readNothing" must be in plan.js exactly once, and is there 0 times.'],
  [{ find: '@param' }, 'must be in plan.js exactly once, and is there'],
  [{ put: 'export function readPlan' }, '`put` must differ from `find`.'],
  [{ tests: 'none' }, 'there is no test/none.test.ts.'],
  [{ file: 'none.js' }, 'there is no file none.js.'],
  [{ put: '' }, undefined],
])('a mutation with %j is refused: %s', (members, why) => {
  const whole = { what: 'x', file: 'plan.js', find: 'export function readPlan', put: 'x', tests: 'plan' };
  const folder = fileURLToPath(new URL('../tidy', import.meta.url));
  const given = Object.keys(members).length === 0 ? {} : { ...whole, ...members };
  if (why === undefined) expect(problemOf(given, folder)).toBeUndefined();
  else expect(problemOf(given, folder)).toContain(why);
});
