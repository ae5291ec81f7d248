import { describe, expect, test } from 'vitest';
import { Registry } from '../../src/config/registry.ts';
import { UNTRIED } from '../../src/failure/untried.ts';
import {
  defineTask,
  exponential,
  Failed,
  fixed,
  NeedsManual,
  openHoldfast,
  PermanentFailure,
  RetryLater,
  TaskNotFoundError,
} from '../../src/index.ts';
import type { Task } from '../../src/queue/task-view.ts';
import { TASK_STATES } from '../../src/task.ts';
import { explain } from '../../src/views/explain.ts';
import type { Known } from '../../src/views/readiness.ts';
import { aStore } from '../a-store.ts';
import { gate, type Kit, useKits } from '../worker/scene.ts';

const kits = useKits();

const MINUTE = 60_000;
const none = { kind: 'none' } as const;

/** Fails in the way that its input names. */
const push = defineTask<{ how?: string }>('push', {
  retry: {
    maxAttempts: 4,
    backoff: exponential({ base: '5m', cap: '1h' }),
    jitter: none,
    rules: { 'fs.locked': { maxAttempts: 10, backoff: fixed('1m') } },
  },
  run({ how }, { execution }) {
    switch (how) {
      case 'locked':
        throw Object.assign(new Error('busy'), { code: 'EBUSY', syscall: 'rename' });
      case 'broken':
        throw new Failed('It broke.', { reason: 'app.broke' });
      case 'later':
        throw new RetryLater('10m');
      case 'later once':
        if (execution === 1) throw new RetryLater('10m');
        return null;
      case 'gone':
        throw new PermanentFailure('It is gone.', { reason: 'app.gone' });
      case 'person':
        throw new NeedsManual('Is that right?');
      default:
        return null;
    }
  },
});

async function opened(): Promise<Kit> {
  return kits({ tasks: [push] });
}

/** The text without the numbers of tasks and the names of workers. */
async function textOf({ holdfast }: Kit, id: number): Promise<string> {
  return (await holdfast.explain(id)).text.replaceAll(/worker-\d+/g, 'w1');
}

describe('explain', () => {
  test.each([
    [1, 'waits for its turn among few since it was lost with its worker', 'A worker takes few such tasks at a time'],
    [2, 'waits to run alone since it was lost with its worker twice', 'takes nothing else for 10s.'],
    [4, 'waits to run alone since it was lost with its worker 4 times', 'takes nothing else for 40s.'],
  ])('of a task that was lost with its worker in a row names the rule that holds it: %i', (times, rule, next) => {
    const worker = {
      id: 1,
      name: 'w1',
      host: 'h',
      pid: 1,
      joinedAt: 0,
      leaseUntil: Infinity,
      keepsTasks: true,
      running: 0,
    };
    const workers = [{ ...worker, takes: { capabilities: {} } }];
    const explained = explain({ ...known({ suspect: true, lostInARow: times }), workers });
    expect(explained.headline).toBe(`#7 push is ready, and ${rule}.`);
    expect(explained.next).toContain(next);
    expect(explained.text).toContain(`w1 takes it; it ${rule}`);
  });

  test('of a ready task that nothing holds says that it waits for its turn', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, {}, { delay: '1h' });
    kit.clock.moveTo(kit.clock.now() + 60 * MINUTE);
    const explanation = await kit.holdfast.explain(id);
    expect(explanation).toMatchObject({
      heldBy: [],
      headline: `#${id} push is ready and waits for its turn.`,
    });
    expect(explanation.next).toBe('A worker takes it as soon as it has a free slot.');
  });

  test('of a task that is not due says when it is, and what would hold it then', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(
      push,
      {},
      { delay: '1h', deadline: new Date(kit.clock.now() + 180 * MINUTE) },
    );
    await kit.holdfast.sources.hold('push', { actor: 'eva', note: 'maintenance' });
    expect(await textOf(kit, id)).toBe(
      [
        `#${id} push was recorded for later: it is due in 1h.`,
        '  due     in 1h',
        '  source  push is held (by eva just now: maintenance)   ← this would hold it',
        '  queue   default is not paused',
        '  worker  w1 takes it',
        '  fails   if it fails: again after 5m; it ends after 4 attempts: dead; at its deadline, in 3h: dead',
        '  next    When it is due, it goes on when its source is released. It ends if it has not started when its deadline comes, in 3h.',
      ].join('\n'),
    );
  });

  test('of a retry says why it failed, which attempt is next, and what follows if it fails like that again', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'locked' });
    await kit.advance('90s');
    const explanation = await kit.holdfast.explain(id);
    expect(explanation.headline).toBe(`#${id} push is retrying: attempt 3 is due in 30s.`);
    expect(explanation.because).toMatchObject({ step: 'retry', rule: 'fs.locked', count: 2, limit: 10 });
    expect(explanation.text).toContain(
      '  why     fs.locked: attempt 2 of 10 failed; next attempt in 1m (fixed 1m, retry 2). (30s ago on ',
    );
    expect(explanation.text).toContain(
      '  fails   if it fails with fs.locked again, by the rule fs.locked: again after 1m; it ends after 10 attempts under fs.locked: dead',
    );
    expect(explanation.nextFailure?.decision.because).toMatchObject({ count: 3 });
    expect(explanation.actions.map(({ verb }) => verb)).toEqual(['retry', 'cancel']);
  });

  test('of a last try says that the next failure ends it', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'broken' });
    await kit.advance('20m');
    expect(await textOf(kit, id)).toContain(
      'if it fails with app.broke again: dead. app.broke: attempt 4 of 4 failed.',
    );
  });

  test('of a deferral says that it was put off, and that nothing was counted', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'later' });
    await kit.advance('11m');
    const { headline, text } = await kit.holdfast.explain(id);
    expect(headline).toBe(`#${id} push is deferred: it is due in 9m.`);
    expect(text).toContain('Nothing is charged.');
    expect(await kit.holdfast.store.records.facts(id)).toMatchObject({
      executions: 3,
      charged: [],
      deferralsInARow: 2,
      deferredForMs: 11 * MINUTE,
      sinceFirstStartMs: 11 * MINUTE,
    });
  });

  test('of a task behind a held source says who held it, since when, and how to release it', async () => {
    const kit = await opened();
    await kit.holdfast.sources.hold('imap:A', { actor: 'eva' });
    const { id } = await kit.holdfast.enqueue(push, {}, { source: 'imap:A' });
    await kit.advance('31m');
    const { headline, heldBy, actions, text } = await kit.holdfast.explain(id);
    expect(headline).toBe(`#${id} push is ready, but imap:A is held (by eva 31m ago).`);
    expect(heldBy).toEqual(['source_held']);
    expect(text).toContain('  source  imap:A is held (by eva 31m ago)   ← this holds it');
    expect(actions[0]).toEqual({ words: 'release its source', verb: 'releaseSource', name: 'imap:A' });
  });

  test('of a task in a queue that is paused says so, beside whatever else holds it', async () => {
    const kit = await opened();
    await kit.holdfast.pauseQueue('mail', { actor: 'eva', note: 'moving house' });
    const { id } = await kit.holdfast.enqueue('nobody.has.it', {}, { queue: 'mail' });
    await kit.drain();
    const { heldBy, next, text } = await kit.holdfast.explain(id);
    expect(heldBy).toEqual(['queue_paused', 'no_worker']);
    expect(next).toBe('It goes on when its queue is resumed, and a worker runs that takes it.');
    expect(text).toContain('  queue   mail is paused (by eva just now: moving house)   ← this holds it');
    expect(text).toContain('  worker  the running worker does not take the type nobody.has.it   ← this holds it');
  });

  test('of a task that no worker takes says what is missing', async () => {
    const kit = await kits({
      tasks: [push],
      worker: { queues: ['default'], categories: ['small'], capabilities: { cpu: 2 } },
    });
    const lackOf = async (options: object) => {
      const { id } = await kit.holdfast.enqueue(push, {}, { delay: '1h', ...options });
      const check = (await kit.holdfast.explain(id)).checks.find(({ name }) => name === 'worker');
      return { ...check, text: check?.text.replaceAll(/worker-\d+/g, 'w1') };
    };
    expect(await lackOf({ category: 'small', needs: { cpu: 2 } })).toMatchObject({ ok: true });
    expect(await lackOf({ queue: 'mail' })).toMatchObject({
      text: 'the running worker does not take the queue mail: w1 takes only the queue default',
    });
    expect(await lackOf({ category: 'big' })).toMatchObject({
      text: 'the running worker does not take the category big: w1 takes only the category small',
    });
    expect(await lackOf({})).toMatchObject({
      text: 'the running worker does not take what has no category: w1 takes only the category small',
    });
    expect(await lackOf({ category: 'small', needs: { cpu: 4 } })).toMatchObject({
      text: 'the running worker does not take what needs {"cpu":4}: w1 has {"cpu":2}',
    });
  });

  test('of a task with needs that no worker meets says to start one with these capabilities, not its program', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, {}, { needs: { gpu: true } });
    const { headline, next, actions } = await kit.holdfast.explain(id);
    expect(headline.replaceAll(/worker-\d+/g, 'w1')).toBe(
      `#${id} push is ready, but the running worker does not take what needs {"gpu":true}: w1 has no \`capabilities\`.`,
    );
    expect(next).toBe('It goes on when a worker runs that takes it.');
    expect(actions[0]).toEqual({
      words: 'start a worker that has these `capabilities`',
      verb: 'work',
      worker: 'needs',
    });
  });

  test('of a task whose deadline comes before its due time says that it will not start', async () => {
    const kit = await opened();
    const options = { delay: '1h', deadline: new Date(kit.clock.now() + 30 * MINUTE) } as const;
    const [{ id }, held] = [
      await kit.holdfast.enqueue(push, {}, options),
      await kit.holdfast.enqueue(push, {}, options),
    ];
    const { headline, next } = await kit.holdfast.explain(id);
    expect(headline).toBe(`#${id} push will not start: its deadline comes in 30m, before it is due in 1h.`);
    expect(next).toBe('A worker ends it in 30m, unless it is made due before.');
    await kit.holdfast.hold(held.id, { actor: 'eva' });
    await kit.advance('31m');
    expect((await kit.holdfast.explain(held.id)).next).toContain(
      'Its deadline passed 1m ago: if it is released, a worker ends it.',
    );
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'deadline.passed' });
  });

  test('of a task whose deadline passed while it waited says first that it does not start any more', async () => {
    const holdfast = await openHoldfast({ store: aStore() });
    const { id } = await holdfast.enqueue('anything', {});
    const task = await holdfast.get(id);
    const late = explain({ ...known({ ...task, deadline: new Date(-60_000) }), workers: [] });
    expect(late.headline).toBe(`#${id} anything does not start any more: its deadline passed 1h1m ago.`);
    expect(late.next).toBe('No worker is running. The next one that starts ends it.');
    expect(late.actions.map(({ verb }) => verb)).toEqual(['work', 'cancel']);
    expect(late.text).not.toContain('if it fails');
    await holdfast.close();
  });

  test('of a due task where nobody works says that no worker is running', async () => {
    const holdfast = await openHoldfast({ store: aStore() });
    const { id } = await holdfast.enqueue('anything', {});
    const { headline, heldBy, actions } = await holdfast.explain(id);
    expect(headline).toBe(`#${id} anything is ready, but no worker is running.`);
    expect(heldBy).toEqual(['no_worker']);
    expect(actions[0]).toMatchObject({ verb: 'work' });
    await holdfast.close();
  });

  test('of a task that an operator holds says who holds it, and why', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, {}, { delay: '1h' });
    await kit.holdfast.hold(id, { actor: 'eva', note: 'ask Max' });
    await kit.advance('2h');
    const { headline, heldBy, checks, next, actions } = await kit.holdfast.explain(id);
    expect(headline).toBe(`#${id} push is held (by eva 2h ago: ask Max).`);
    expect(heldBy).toEqual(['operator']);
    expect(next).toBe(
      'It goes on when it is released. Until then it does not run. When it is released, it waits for its due time, if that is still to come.',
    );
    expect(checks.map(({ name }) => name)).toEqual(['source', 'queue', 'worker']);
    expect(actions.map(({ verb }) => verb)).toEqual(['release', 'cancel']);
  });

  test('of a running task says where, for how long, and what happens to a silent one', async () => {
    const passing = gate();
    const slow = defineTask('slow', { retry: { timeout: '30m' }, run: () => passing.passed });
    const kit = await kits({ tasks: [slow], workerName: 'w7' });
    const { id } = await kit.holdfast.enqueue(slow, {});
    await kit.seen(({ kind }) => kind === 'started');
    kit.clock.moveTo(kit.clock.now() + 12_000);
    const running = await kit.holdfast.explain(id);
    expect(running.headline).toBe(`#${id} slow is running on w7 for 12s.`);
    expect(running.next).toBe('Its worker says how it ended. It is stopped after 30m of silence.');

    await kit.holdfast.cancel(id, { actor: 'eva' });
    const cancelled = await kit.holdfast.explain(id);
    expect(cancelled.headline).toBe(`#${id} slow is running on w7 for 12s, and was asked to stop.`);
    expect(cancelled.next).toContain('If it still succeeds, it is succeeded, otherwise cancelled.');
    expect(cancelled.nextFailure?.decision).toMatchObject({ next: 'cancelled' });
    passing.open();
    await kit.drain();
  });

  describe('of a running task whose worker was lost', () => {
    const running = { worker: 'w1', since: new Date(0), cancelRequested: false };
    const lost = {
      id: 1,
      name: 'w1',
      host: 'h',
      pid: 1,
      joinedAt: 0,
      leaseUntil: 61 * MINUTE,
      keepsTasks: false,
      running: 1,
      takes: { capabilities: {} },
    };
    const other = { ...lost, id: 2, name: 'w2', keepsTasks: true };
    const explained = (more: Partial<Known> = {}) =>
      explain({ ...known({ state: 'running', running }), workers: [lost], ...more });

    test('says that a worker must be started, and forecasts no failure', () => {
      const { next, actions, nextFailure, text } = explained();
      expect(next).toBe('Its process has ended. When a worker starts, it records the loss. Then it is ready again.');
      expect(actions.map(({ verb }) => verb)).toEqual(['work', 'cancel']);
      expect(nextFailure).toBeUndefined();
      expect(text).not.toContain('if it fails');
    });

    test('says that a running worker does it', () => {
      const { next, actions } = explained({ workers: [lost, other] });
      expect(next).toBe('Its process has ended. A running worker records the loss. Then it is ready again.');
      expect(actions.map(({ verb }) => verb)).toEqual(['cancel']);
    });

    test('does not count on a worker that takes only certain tasks', () => {
      const { next } = explained({ workers: [lost, { ...other, takes: { types: [], capabilities: {} } }] });
      expect(next).toContain('When a worker starts');
    });

    test('says that the lease has ended only if it has', () => {
      const { next } = explained({ workers: [{ ...lost, leaseUntil: 59 * MINUTE }] });
      expect(next).toContain('Its worker is silent, and its lease has ended. If it succeeds');
      expect(explained({ workers: [] }).next).toContain('Its worker is gone.');
    });

    test('says that a person is asked if it must not run twice', () => {
      const { next } = explained({ facts: { ...UNTRIED, idempotent: false } });
      expect(next).toContain('Then a person is asked, because the task must not run twice.');
    });

    test('says that it is cancelled if that was asked for', () => {
      const { next, actions } = explained({
        ...known({ state: 'running', running: { ...running, cancelRequested: true } }),
        facts: { ...UNTRIED, cancelRequested: true },
        workers: [lost],
      });
      expect(next).toContain('Then it is cancelled.');
      expect(actions.map(({ verb }) => verb)).toEqual(['work']);
    });
  });

  test('of a task that needs a person says what is asked, and how it can be answered', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'person' });
    await kit.drain();
    const { headline, actions, nextFailure } = await kit.holdfast.explain(id);
    expect(headline).toBe(`#${id} push needs a person: The handler asked for a person.`);
    expect(actions.map(({ verb, as }) => [verb, as])).toEqual([
      ['resolve', 'succeeded'],
      ['retry', undefined],
      ['resolve', 'dead'],
    ]);
    expect(nextFailure).toBeUndefined();
  });

  test('of a task whose effect may have happened asks a person to check first', async () => {
    const charge = defineTask('charge', {
      idempotent: false,
      run() {
        throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET', syscall: 'read' });
      },
    });
    const kit = await kits({ tasks: [charge] });
    const { id } = await kit.holdfast.enqueue(charge, {});
    await kit.drain();
    const { next, actions } = await kit.holdfast.explain(id);
    expect(next).toContain('Check whether it happened');
    expect(actions.map(({ words }) => words)).toEqual(['it happened', 'it did not', 'give up']);
  });

  test('of a dead task says what ended it, and of one that was given up, who', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'gone' });
    const { id: other } = await kit.holdfast.enqueue(push, { how: 'person' });
    await kit.drain();
    await kit.holdfast.resolve(other, { as: 'dead', actor: 'eva' });
    expect((await kit.holdfast.explain(id)).headline).toBe(
      `#${id} push is dead: The handler said that retrying cannot help.`,
    );
    const { headline, next } = await kit.holdfast.explain(other);
    expect(headline).toBe(`#${other} push is dead: eva gave it up just now.`);
    expect(next).toBe('Nothing happens by itself. A retry starts a new round, with all counts at zero.');
  });

  test('of a cancelled task says who cancelled it, or which task superseded it', async () => {
    const kit = await opened();
    const unique = { key: 'k', while: 'waiting', onConflict: 'replace' } as const;
    const { id } = await kit.holdfast.enqueue(push, {}, { delay: '1h' });
    const { id: replaced } = await kit.holdfast.enqueue(push, {}, { delay: '1h', unique });
    const { id: newer } = await kit.holdfast.enqueue(push, {}, { delay: '1h', unique });
    await kit.holdfast.cancel(id, { actor: 'eva', note: 'no longer needed' });
    expect((await kit.holdfast.explain(id)).headline).toBe(
      `#${id} push is cancelled: eva cancelled it just now: no longer needed.`,
    );
    expect((await kit.holdfast.explain(replaced)).headline).toBe(
      `#${replaced} push is cancelled: Task #${newer} has the same unique key and replaces it.`,
    );
  });

  test('of a task that has succeeded says after how many attempts, or who said so', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, {});
    const { id: other } = await kit.holdfast.enqueue(push, { how: 'person' });
    await kit.drain();
    await kit.holdfast.resolve(other, { as: 'succeeded', actor: 'eva' });
    expect(await textOf(kit, id)).toBe(
      `#${id} push has succeeded just now, at the first attempt.\n  next    Nothing: it is done.`,
    );
    expect((await kit.holdfast.explain(other)).headline).toBe(`#${other} push has succeeded just now: eva said so.`);
  });

  test('of a task that was executed before, and charged for nothing, does not call its success the first attempt', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'later once' });
    await kit.advance('10m');
    expect((await kit.holdfast.explain(id)).headline).toBe(`#${id} push has succeeded just now, in execution 2.`);
  });

  test('counts a new round from zero', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'gone' });
    await kit.drain();
    await kit.holdfast.retry(id, { actor: 'eva' });
    expect((await kit.holdfast.explain(id)).text).toContain('  why     eva retried it just now\n');
    expect(await kit.holdfast.store.records.facts(id)).toMatchObject({
      executions: 1,
      charged: [],
      sinceFirstStartMs: 0,
    });
    await kit.drain();
  });

  test.each(TASK_STATES)('has a word, a next thing and a text for %s, even where nothing else is known', (state) => {
    const { headline, next, text, actions } = explain(known({ state }));
    expect(headline).toMatch(/^#7 push \S.+\.$/);
    expect(next).toMatch(/\.$/);
    expect(text.startsWith(headline)).toBe(true);
    expect(actions.length > 0).toBe(state !== 'succeeded');
  });

  test('takes a key, and says which task there is not', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, {}, { key: 'k', delay: '1h' });
    expect((await kit.holdfast.explain('k')).task.id).toBe(id);
    await expect(kit.holdfast.explain(99)).rejects.toThrow(TaskNotFoundError);
  });
});

describe('explainError', () => {
  const refused = Object.assign(new Error('no'), { code: 'ECONNREFUSED', syscall: 'connect' });

  test('says what an error would be, which rule answers, how it counts, when it is tried again, and what ends it', async () => {
    const config = new Registry();
    config.load(
      'types: { push: { retry: { rules: { net.*: { maxAttempts: 12, backoff: { fixed: 10m }, jitter: 20% } } } } }',
    );
    const kit = await kits({ tasks: [push], config });
    const explained = await kit.holdfast.explainError(refused, { type: 'push' });
    expect(explained.text).toBe(
      [
        'failure  net.refused (transient, fault of the source) by system, read in code',
        'rule     net.* (holdfast.yaml:1)',
        'count    1 of 12, counted under net.*',
        'then     again after 10m (fixed 10m, retry 1), random wait from 8m to 12m',
        'ends     after 12 attempts under net.*: dead',
      ].join('\n'),
    );
    expect(explained).toMatchObject({
      rule: 'net.*',
      delay: { nominal: 10 * MINUTE, low: 8 * MINUTE, high: 12 * MINUTE },
    });
  });

  test('continues from the counts of a task', async () => {
    const kit = await opened();
    const { id } = await kit.holdfast.enqueue(push, { how: 'broken' });
    await kit.advance('20m');
    const { decision, text } = await kit.holdfast.explainError(refused, id);
    expect(decision).toMatchObject({ next: 'scheduled', because: { step: 'awaits_verdict', count: 4, limit: 4 } });
    expect(text).toContain(
      'count    4 of 4\nthen     net.refused: attempt 4 of 4 failed. It waits 1m to see whether its source is down.',
    );
    expect(text).toContain('ends     unless its source turns out to be down');
  });

  test('of an imported task counts on from its deferrals, as the worker does', async () => {
    const kit = await opened();
    const [receipt] = await kit.holdfast.importTasks([
      { type: 'push', input: { how: 'later' }, state: 'ready', deferrals: 99, executions: 99 },
    ]);
    const id = receipt?.id as number;
    const { decision } = await kit.holdfast.explainError(new RetryLater('10m'), id);
    expect(decision.because).toMatchObject({ count: 100, limit: 100 });
    await kit.drain();
    expect(await kit.holdfast.history(id)).toMatchObject([
      { verb: 'imported' },
      { kind: 'execution', because: { count: 100, limit: 100 } },
    ]);
  });

  test('knows what charges nobody', async () => {
    const kit = await opened();
    const limited = Object.assign(new Error('slow down'), { status: 429, headers: { 'retry-after': '120' } });
    const { text } = await kit.holdfast.explainError(limited, { type: 'push' });
    expect(text).toContain('count    not counted; deferral 1 of at most 100 in a row');
    expect(text).toContain('ends     after 100 deferrals in a row or 1d: needs_manual');
    const { text: later, failure } = await kit.holdfast.explainError(new RetryLater('10m'), { type: 'push' });
    expect(failure).toBeUndefined();
    expect(later).toContain('outcome  deferral');
    expect(later).toContain('then     again after 10m (asked for 10m), no jitter');
  });
});

/** A task of this form an hour after the epoch, and nothing else. */
function known(task: Partial<Task>): Known {
  return {
    now: 60 * MINUTE,
    task: {
      id: 7,
      type: 'push',
      state: 'ready',
      queue: 'default',
      source: 'push',
      priority: 0,
      input: null,
      idempotent: true,
      submittedAt: new Date(0),
      createdAt: new Date(0),
      executions: 1,
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
    policy: new Registry().policyFor({ type: 'push' }),
    workers: [],
  };
}
