import { expect, test } from 'vitest';
import {
  addSightings,
  type FailureGroup,
  type FailureVerb,
  retryHelps,
  type Sample,
  type Sighting,
  stateOfGroup,
  withAction,
} from '../../src/failure/groups.ts';

const HOUR = 3_600_000;
const sample: Sample = { type: 't', fingerprint: '2:a', kind: 'unknown', reason: 'r', name: 'E', message: 'm' };
type Calls = readonly (readonly [at: number, ...Sighting[]])[];
const seen = (more: Partial<Sighting> = {}): Sighting => {
  return { task: 1, group: 'a', next: 'scheduled', source: 's', policyVersion: 'v1', ...more };
};

function grouped(...calls: Calls): Map<string, FailureGroup> {
  const groups = new Map<string, FailureGroup>();
  for (const [at, ...each] of calls) addSightings(groups, { samples: { a: sample, b: sample }, seen: each }, at);
  return groups;
}

test.each<[what: string, calls: Calls, expected: object]>([
  [
    'failures',
    [
      [HOUR, seen(), seen()],
      [3 * HOUR, seen()],
    ],
    { count: 3, firstAt: HOUR, lastAt: 3 * HOUR },
  ],
  [
    'hours',
    [
      [HOUR, seen(), seen()],
      [HOUR + 5, seen()],
    ],
    { hours: { [HOUR]: 3 } },
  ],
  [
    'entries in any order',
    [
      [HOUR, seen({ task: 7 })],
      [5, seen()],
    ],
    { task: 7, firstAt: 5, lastAt: HOUR },
  ],
  ['tasks that died', [[1, seen({ next: 'dead' }), seen({ next: 'needs_manual' })]], { dead: 1, needsManual: 1 }],
  [
    'retries',
    [
      [1, seen()],
      [
        2,
        { ...seen({ before: 'a', next: 'succeeded' }), group: undefined } as unknown as Sighting,
        seen({ before: 'a' }),
      ],
      [3, seen({ group: 'b', before: 'a' })],
    ],
    { retries: { succeeded: 1, failed: 2 }, count: 2 },
  ],
  [
    'tasks that said the same in one entry',
    [
      [1, seen()],
      [
        2,
        seen({ task: 9, others: [3, 7], before: 'a', next: 'dead' }),
        seen({ others: [2], group: undefined as never, before: 'a', next: 'succeeded' }),
      ],
    ],
    {
      count: 4,
      task: 9,
      dead: 3,
      retries: { succeeded: 2, failed: 3 },
      sources: { s: 4 },
      policyVersions: { v1: 4 },
      hours: { 0: 4 },
    },
  ],
  [
    'many sources',
    [[1, ...Array.from({ length: 30 }, (_, i) => seen({ source: `s${i}` })), seen({ source: '__proto__' })]],
    { sources: { _other: 11, s0: 1, s19: 1 } },
  ],
  ['two days of hours', [...Array.from({ length: 60 }, (_, i) => [i * HOUR, seen()] as const)], { count: 60 }],
])('a group counts %s', (_, calls, expected) => {
  const group = grouped(...calls).get('a');
  expect(group).toMatchObject(expected);
  expect(Object.keys(group?.hours ?? {}).length).toBeLessThanOrEqual(48);
});

test.each<[verbs: readonly FailureVerb[], failedAgain: boolean, state: string]>([
  [[], true, 'open'],
  [['acknowledge'], true, 'acknowledged'],
  [['acknowledge', 'mute'], true, 'muted'],
  [['mute', 'note'], true, 'muted'],
  [['resolve'], false, 'resolved'],
  [['resolve'], true, 'regressed'],
  [['resolve', 'reopen'], true, 'open'],
])('after %j, and %j a failure, a group is %s', (verbs, failedAgain, state) => {
  let group = grouped([1, seen()]).get('a') as FailureGroup;
  for (const verb of verbs) group = withAction(group, { verb, at: 10, actor: 'ann' });
  const groups = new Map([['a', group]]);
  if (failedAgain) addSightings(groups, { samples: { a: sample }, seen: [seen()] }, 11);
  expect(stateOfGroup(groups.get('a') as FailureGroup, 20)).toBe(state);
});

test('a mute for a time ends by itself, and many notes after it do not make it forgotten', () => {
  let group = grouped([1, seen()]).get('a') as FailureGroup;
  group = withAction(group, { verb: 'mute', at: 10, actor: 'ann', until: 100 });
  for (let i = 0; i < 30; i += 1) group = withAction(group, { verb: 'note', at: 11 + i, actor: 'bea', note: `n${i}` });
  expect(group.actions).toHaveLength(20);
  expect(group.actions.at(-1)).toMatchObject({ note: 'n29' });
  expect([stateOfGroup(group, 99), stateOfGroup(group, 100)]).toEqual(['muted', 'open']);
});

test.each([
  [{ succeeded: 0, failed: 0 }, null],
  [
    { succeeded: 0, failed: 10 },
    { share: 0, low: 0, high: 0.278 },
  ],
  [
    { succeeded: 9, failed: 1 },
    { share: 0.9, low: 0.596, high: 0.982 },
  ],
  [
    { succeeded: 500, failed: 500 },
    { share: 0.5, low: 0.469, high: 0.531 },
  ],
])('retries %j help in %j of all cases', (retries, expected) => {
  const helps = retryHelps(retries);
  const rounded = helps && Object.fromEntries(Object.entries(helps).map(([name, value]) => [name, +value.toFixed(3)]));
  expect(rounded).toEqual(expected);
});
