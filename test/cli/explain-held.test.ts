import { expect, test } from 'vitest';
import { Registry } from '../../src/config/registry.ts';
import { UNTRIED } from '../../src/failure/untried.ts';
import type { Task } from '../../src/queue/task-view.ts';
import type { Trouble } from '../../src/source/trouble.ts';
import type { Restriction, SourceRecord } from '../../src/store/store.ts';
import { type Explanation, explain } from '../../src/views/explain.ts';
import type { Known } from '../../src/views/readiness.ts';

const NOW = 10_000_000;
const by = { actor: 'eva', at: NOW - 60_000 };
const down: Trouble = { condition: 'down', sinceMs: 31 * 60_000, reason: 'net.refused', failedProbes: 14 };

function explained(
  task: Partial<Task>,
  source?: Omit<SourceRecord, 'name'>,
  trouble?: Trouble,
  more: Partial<Known> = {},
): Explanation {
  return explain({
    now: NOW,
    task: {
      id: 12,
      type: 'order.push',
      state: 'ready',
      queue: 'default',
      source: 'api',
      priority: 0,
      input: null,
      idempotent: true,
      submittedAt: new Date(0),
      createdAt: new Date(0),
      executions: 0,
      attempts: 0,
      attemptsByReason: [],
      deferrals: 0,
      recoveries: 0,
      suspect: false,
      lostInARow: 0,
      ...task,
    },
    history: [],
    facts: UNTRIED,
    policy: new Registry().policyFor({ type: 'order.push' }),
    workers: [
      {
        id: 1,
        name: 'w1',
        host: 'h',
        pid: 1,
        joinedAt: 0,
        leaseUntil: Number.POSITIVE_INFINITY,
        keepsTasks: true,
        running: 0,
        takes: { capabilities: {} },
      },
    ],
    ...(source && { source: { record: { name: 'api', ...source }, ...(trouble && { trouble }) } }),
    ...more,
  });
}

/** The state of a source with such a restriction; without `opensIn` it does not open by itself. */
function state(restriction: Restriction, opensIn?: number): NonNullable<SourceRecord['state']> {
  return { revision: 3, memory: '{}', age: 0, restriction, ...(opensIn !== undefined && { opensIn }) };
}

const PAID = ' Until then it uses up no attempt and keeps its place.';
const PROBES =
  'It goes on when two probes have succeeded: a probe is one task of the source that is let through to test it.';

test.each<[string, Explanation, { headline: string; next: string; heldBy: string[]; actions: string[] }]>([
  [
    'its source is down',
    explained(
      { heldBy: 'breaker' },
      { state: state({ cause: 'breaker', shutFor: 60_000, probing: true }, 22_000) },
      down,
    ),
    {
      headline: 'is ready, but api is down for 31m: net.refused, 14 probes failed. The next probe is in 22s.',
      next: PROBES + PAID,
      heldBy: ['breaker'],
      actions: ['probeSource', 'releaseSource', 'cancel'],
    },
  ],
  [
    'a probe of its source runs',
    explained({ heldBy: 'breaker' }, { state: state({ cause: 'breaker', probing: true }, 0), running: 1 }, down),
    {
      headline: 'is ready, but api is down for 31m: net.refused, 14 probes failed. A probe runs.',
      next: PROBES + PAID,
      heldBy: ['breaker'],
      actions: ['probeSource', 'releaseSource', 'cancel'],
    },
  ],
  [
    'its source works again',
    explained(
      { heldBy: 'breaker' },
      { state: state({ cause: 'breaker', ramping: true, pace: { perSecond: 5, burst: 1 } }, 0) },
      down,
    ),
    {
      headline: 'is ready, but api works again, and its tasks are released slowly, 5/s now.',
      next: `It goes on when its turn comes.${PAID}`,
      heldBy: ['breaker'],
      actions: ['probeSource', 'releaseSource', 'cancel'],
    },
  ],
  [
    'its source asked to wait',
    explained(
      { heldBy: 'rate_limit' },
      { state: state({ cause: 'rate_limit', ramping: true }, 120_000) },
      { condition: 'asked_to_wait', sinceMs: 9, reason: 'http.429' },
    ),
    {
      headline: 'is ready, but api asked to wait (http.429): none of its tasks starts for 2m.',
      next: `It goes on when the time that its source asked for is over.${PAID}`,
      heldBy: ['rate_limit'],
      actions: ['releaseSource', 'cancel'],
    },
  ],
  [
    'little is left of the limit of its source',
    explained({ heldBy: 'rate_limit' }, { state: state({ cause: 'rate_limit', pace: { perSecond: 2, burst: 1 } }, 0) }),
    {
      headline: 'is ready, but api said that little of its own limit is left: 2/s until it resets.',
      next: `It goes on when its turn comes.${PAID}`,
      heldBy: ['rate_limit'],
      actions: ['releaseSource', 'cancel'],
    },
  ],
  [
    'its source needs a person',
    explained(
      { heldBy: 'needs_person' },
      { state: state({ cause: 'needs_person', shutFor: 'released' }) },
      { condition: 'needs_person', sinceMs: 7_200_000, reason: 'http.401', why: 'permanent' },
    ),
    {
      headline: 'is ready, but api has needed a person for 2h: http.401.',
      next: `It goes on when a person has mended and released its source.${PAID}`,
      heldBy: ['needs_person'],
      actions: ['releaseSource', 'cancel'],
    },
  ],
  [
    'its source asked for too long a wait',
    explained(
      { heldBy: 'needs_person' },
      { state: state({ cause: 'needs_person', shutFor: 'released' }) },
      { condition: 'needs_person', sinceMs: 7_200_000, reason: 'http.429', why: 'long_retry_after' },
    ),
    {
      headline:
        'is ready, but api has needed a person for 2h: it asked for a longer wait than maxRetryAfter allows (http.429).',
      next: `It goes on when a person has mended and released its source.${PAID}`,
      heldBy: ['needs_person'],
      actions: ['releaseSource', 'cancel'],
    },
  ],
  [
    'the budget for retries is used up',
    explained({ heldBy: 'budget', heldFor: 7_000 }, { tokens: 0.3 }),
    {
      headline: 'is ready, but api had too many retries lately. The next one may start in 7s.',
      next: 'It goes on when its source may have a retry again.',
      heldBy: ['budget'],
      actions: ['cancel'],
    },
  ],
  [
    'the pace of its source is reached',
    explained(
      { heldBy: 'pace', heldFor: 80 },
      { limits: { pace: { perSecond: 10, burst: 1 }, by: { ...by, origin: 'person' } } },
    ),
    {
      headline: 'is ready, but api starts at most 10/s; the next start is in 80ms.',
      next: 'It goes on when the next start is allowed.',
      heldBy: ['pace'],
      actions: ['cancel'],
    },
  ],
  [
    'its queue runs as many as it may',
    explained({ heldBy: 'concurrency' }, undefined, undefined, {
      queue: { name: 'default', order: 'fifo', fair: false, concurrency: 4 },
    }),
    {
      headline: 'is ready, but the queue default runs 4 at a time, and so many run.',
      next: 'It goes on when one of those that run ends.',
      heldBy: ['concurrency'],
      actions: ['cancel'],
    },
  ],
  [
    'an operator holds its source for a time',
    explained({ heldBy: 'source_held' }, { hold: { ...by, note: 'NAS is moved', until: NOW + 7_200_000 } }),
    {
      headline: 'is ready, but api is held (by eva 1m ago: NAS is moved), and goes on in 2h.',
      next: 'It goes on when its source is released, or in 2h.',
      heldBy: ['source_held'],
      actions: ['releaseSource', 'cancel'],
    },
  ],
])('explain says of a ready task that %s', (_, explanation, { headline, next, heldBy, actions }) => {
  expect(explanation.headline).toBe(`#12 order.push ${headline}`);
  expect(explanation.next).toBe(next);
  expect(explanation.heldBy).toEqual(heldBy);
  expect(explanation.text).toContain('← this holds it');
  expect(explanation.actions.map(({ verb }) => verb)).toEqual(actions);
});

test('explain says of a retry what would hold it when it is due', () => {
  const shut = { state: state({ cause: 'breaker', shutFor: 60_000, probing: true } as const, 22_000) };
  const { headline, text } = explained({ state: 'scheduled', dueAt: new Date(NOW + 40_000), attempts: 1 }, shut, down);
  expect(headline).toBe('#12 order.push is retrying: attempt 2 is due in 40s.');
  expect(text).toContain('The next probe is in 22s   ← this would hold it');
});

test('explain names the limits of a task that they do not hold', () => {
  const limits = { pace: { perSecond: 10, burst: 1 }, concurrency: 2, by: { ...by, origin: 'config' } } as const;
  const { headline, text } = explained({}, { limits });
  expect(headline).toBe('#12 order.push is ready and waits for its turn.');
  expect(text).toContain('  limit   api starts at most 10/s and 2 at a time\n');
});
