import { expect, test } from 'vitest';
import { compareConfigs } from '../../src/config/compare.ts';
import { Registry } from '../../src/config/registry.ts';

function registry(text: string): Registry {
  const made = new Registry();
  made.load(text);
  return made;
}

function compared(before: string, after: string) {
  return compareConfigs(registry(before), registry(after)).map(({ what, name, changes }) => [
    what,
    name,
    changes.map((change) => [change.path.join(' '), change.before, change.after]),
  ]);
}

test('two ways to say the same are no difference', () => {
  const long = 'types: { a: { retry: { backoff: { fixed: 60s }, jitter: 10% } } }';
  expect(
    compared(long, 'policies: { p: { backoff: { fixed: 1m } } }\ntypes: { a: { retry: { extends: p } } }'),
  ).toEqual([]);
});

test('a value that changes is told for each type that it changes for', () => {
  expect(
    compared(
      'types: { a: { retry: { maxAttempts: 4 } }, b: { retry: { maxAttempts: 4 } } }',
      'types: { a: { retry: { maxAttempts: 5 } }, b: { retry: { maxAttempts: 4 } } }',
    ),
  ).toEqual([['type', 'a', [['maxAttempts', 4, 5]]]]);
});

test('a default reaches every type that says nothing of its own, presets included', () => {
  const changes = compared('version: 1', 'defaults: { retry: { maxAttempts: 9, timeout: 5m } }');
  expect(changes).toContainEqual([
    'other',
    'every other type',
    [
      ['maxAttempts', 5, 9],
      ['timeout', 3_600_000, 300_000],
    ],
  ]);
  expect(changes).toContainEqual(['type', 'imap_mailbox', [['timeout', 3_600_000, 300_000]]]);
});

test('rules come and go by their names, and so do sources, queues and what workers are like', () => {
  expect(
    compared(
      'types: { a: { retry: { rules: { timeout: { maxAttempts: 2 } } } } }\nqueues: { q: { order: lifo } }',
      'sources: { "imap:*": { retry: { maxAttempts: 9 } }, a: { pace: 10/s, concurrency: none } }\nqueues: { q: { retry: { maxAttempts: 6 } } }\nworker: { concurrency: 3 }',
    ),
  ).toEqual([
    ['type', 'a', [['rules timeout maxAttempts', 2, undefined]]],
    ['source', 'imap:*', [['maxAttempts', 5, 9]]],
    ['queue', 'q', [['maxAttempts', 5, 6]]],
    ['worker', 'worker', [['concurrency', undefined, 3]]],
    ['queue settings', 'q', [['order', 'lifo', undefined]]],
    [
      'source limits',
      'a',
      [
        ['pace', undefined, { perSecond: 10, burst: 1 }],
        ['concurrency', undefined, null],
      ],
    ],
  ]);
});
