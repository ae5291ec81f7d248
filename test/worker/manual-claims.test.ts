import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  defineTask,
  Failed,
  type HoldfastOptions,
  immediate,
  LeaseLostError,
  type Logger,
  type ManualClaim,
  openHoldfast,
  PermanentFailure,
  RetryLater,
} from '../../src/index.ts';
import type { AnyTask } from '../../src/worker/define-task.ts';
import { aStore, refusalsOf, STORE } from '../a-store.ts';
import Database from '../database.ts';
import { refused } from '../queue/refused.ts';
import { atOnce, gate, type Kit, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

/** A kit whose own worker takes nothing; it looks every 10 s for what others lost, unless it is stopped. */
async function byHand(tasks: HoldfastOptions['tasks'] = [defineTask('work', { retry: atOnce, run() {} })], more = {}) {
  return open({ tasks, worker: { types: [], leaseFor: '30s', name: 'kit' }, ...more });
}

async function claimed(kit: Kit, options = {}): Promise<ManualClaim> {
  const claim = await kit.holdfast.claim(options);
  if (!claim) throw new Error('Nothing was ready.');
  return claim;
}

const stateOf = async (kit: Kit, id: number) => (await kit.holdfast.get(id)).state;

describe('a claim by hand', () => {
  test('is undefined where nothing is ready', async () => {
    const kit = await byHand();
    expect(await kit.holdfast.claim()).toBeUndefined();
    await kit.holdfast.enqueue('work', null, { delay: '1h' });
    expect(await kit.holdfast.claim()).toBeUndefined();
  });

  test('tells what a handler would be told, and that the task runs', async () => {
    const kit = await byHand([defineTask('work', { retry: { maxAttempts: 7, ...atOnce }, run() {} })]);
    const deadline = new Date(kit.clock.now() + 86_400_000);
    const options = { key: 'k', source: 's', category: 'c', priority: 9, queue: 'q', deadline } as const;
    const { id } = await kit.holdfast.enqueue('work', { n: [1] }, options);

    const first = await claimed(kit, { name: 'me', leaseFor: '2m' });
    const facts = { id, type: 'work', input: { n: [1] }, maxAttempts: 7, leaseFor: 120_000, ...options };
    expect(first).toMatchObject({ ...facts, attempt: 1, execution: 1, recovered: false, lastError: undefined });
    expect(first.submittedAt).toEqual(new Date(kit.clock.now()));
    expect((await kit.holdfast.get(id)).running).toMatchObject({ worker: 'me' });
    await first.fail(new Error('Once.'));

    const second = await claimed(kit);
    expect(second).toMatchObject({ ...facts, leaseFor: 30_000, attempt: 2, execution: 2, lastError: 'Once.' });
    expect((await kit.holdfast.get(id)).running).toMatchObject({ worker: `worker-${process.pid}` });
    await second.complete();
  });

  test('needs no definition of the type, in a process that has none at all', async () => {
    const holdfast = await openHoldfast({ store: aStore() });
    const { id } = await holdfast.enqueue('elsewhere', null);

    await (await holdfast.claim())?.complete('by hand');

    expect(await holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'by hand', executions: 1 });
    await holdfast.close();
  });

  test('takes only what it asks for', async () => {
    const kit = await byHand();
    const ids: Record<string, number> = {};
    for (const [what, options] of Object.entries({
      plain: {},
      queue: { queue: 'q' },
      category: { category: 'c' },
      needs: { needs: { cpu: 4 } },
    })) {
      ids[what] = (await kit.holdfast.enqueue('work', what, options)).id;
    }
    ids.type = (await kit.holdfast.enqueue('other', 'type')).id;

    expect(await claimed(kit, { types: ['other'] })).toMatchObject({ id: ids.type });
    expect(await claimed(kit, { queues: ['q'] })).toMatchObject({ id: ids.queue });
    expect(await claimed(kit, { categories: ['c'] })).toMatchObject({ id: ids.category });
    expect(await kit.holdfast.claim({ categories: ['none'] })).toBeUndefined();
    expect(await claimed(kit)).toMatchObject({ id: ids.plain });
    expect(await kit.holdfast.claim({ capabilities: { cpu: 3 } })).toBeUndefined();
    expect(await claimed(kit, { capabilities: { cpu: 8 } })).toMatchObject({ id: ids.needs });
  });

  test('takes one task by its id, where that is ready', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueue('work', 'first');
    const { id } = await kit.holdfast.enqueue('work', 'second');
    const later = await kit.holdfast.enqueue('work', 'later', { delay: '1h' });

    const claim = await claimed(kit, { id });

    expect(claim.input).toBe('second');
    expect(await kit.holdfast.claim({ id })).toBeUndefined();
    expect(await kit.holdfast.claim({ id: later.id })).toBeUndefined();
    expect(await kit.holdfast.claim({ id: 99 })).toBeUndefined();
    await kit.advance('1h');
    expect(await claimed(kit, { id: later.id })).toMatchObject({ input: 'later' });
  });

  test('takes each task once, however many claims are made at once', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueueAll('work', [1, 2, 3]);

    const claims = await Promise.all([1, 2, 3, 4, 5].map(() => kit.holdfast.claim()));

    expect(claims.map((claim) => claim?.input)).toEqual([1, 2, 3, undefined, undefined]);
  });

  test('takes nothing of a source that is held, nor of a queue that is paused', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null, { source: 's', queue: 'q' });
    await kit.holdfast.sources.hold('s');
    expect(await kit.holdfast.claim({ id })).toBeUndefined();
    await kit.holdfast.sources.release('s');
    await kit.holdfast.pauseQueue('q');
    expect(await kit.holdfast.claim()).toBeUndefined();
  });

  test('no claim gets a task whose deadline has passed', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null, { deadline: new Date(kit.clock.now() + 1_000) });
    await kit.worker.stop();
    kit.clock.moveTo(kit.clock.now() + 2_000);

    expect(await kit.holdfast.claim()).toBeUndefined();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'deadline.passed' });
  });

  test('waits for what falls due together in greater number than one claim makes ready', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueueAll('elsewhere', Array(2_500).fill(null), { delay: '1m' });
    await kit.holdfast.enqueue('work', 'mine', { delay: '61s' });
    kit.clock.moveTo(kit.clock.now() + 61_000);

    expect(await claimed(kit, { types: ['work'] })).toMatchObject({ input: 'mine' });
  });

  test('sets no timer', async () => {
    const kit = await byHand();
    await kit.worker.stop();
    await kit.holdfast.enqueueAll('work', [1, 2]);

    const [first, second] = [await claimed(kit), await claimed(kit)];
    await first.renew();
    await first.complete();
    await second.release();

    expect(kit.clock.nextTimer).toBeUndefined();
  });
});

describe('claim refuses', () => {
  test.each<[string, object, RegExp]>([
    ['an option that it does not have', { type: 'work' }, /claim has no option 'type'\. It has: id, types/],
    ['an option of a worker', { concurrency: 2 }, /claim has no option 'concurrency'/],
    ['an id that is none', { id: 0 }, /id must be a whole number/],
    ['a name in place of a list of names', { types: 'work' }, /types must be a list/],
    ['a lease under a second', { leaseFor: '999ms' }, /leaseFor must be at least 1 s/],
    ['a name that is none', { name: '' }, /name must be a text/],
    ['capabilities that are none', { capabilities: { cpu: Number.NaN } }, /capabilities\.cpu/],
  ])('%s, before it takes anything', async (_, options, message) => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const error = await refused(() => kit.holdfast.claim(options));
    expect(error.code).toBe('invalid_input');
    expect(error.message).toMatch(message);
    expect(await stateOf(kit, id)).toBe('ready');
  });
});

describe('its end', () => {
  test('is a success with a result', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);

    const settled = await (await claimed(kit)).complete({ rows: 3 });

    expect(settled).toMatchObject({ kind: 'settled', state: 'succeeded', decision: { next: 'succeeded' } });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: { rows: 3 } });
    expect(await kit.holdfast.history(id)).toEqual([]);
  });

  test('is a success without its result if that cannot be stored, and the history says why', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);

    expect(await (await claimed(kit)).complete({ n: 10n })).toMatchObject({ state: 'succeeded' });

    expect((await kit.holdfast.get(id)).result).toBeUndefined();
    expect(await kit.holdfast.history(id)).toMatchObject([
      { message: expect.stringMatching(/result was not kept.*BigInt/) },
    ]);
  });

  test('is a failure that is classified and answered by the policy of the definition', async () => {
    const work = defineTask('work', { retry: { maxAttempts: 3, backoff: immediate }, run() {} });
    const kit = await byHand([work]);
    const { id } = await kit.holdfast.enqueue(work, null);

    const settled = await (await claimed(kit)).fail(Object.assign(new Error('no'), { code: 'ECONNRESET' }));
    expect(settled).toMatchObject({ outcome: { kind: 'failure', failure: { code: 'ECONNRESET' } }, state: 'ready' });
    await (await claimed(kit)).fail('whatever was thrown');
    const last = await (await claimed(kit)).fail(undefined);

    expect(last).toMatchObject({ state: 'dead', decision: { because: { step: 'max_attempts', count: 3, limit: 3 } } });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 3, executions: 3 });
    expect(await kit.holdfast.history(id)).toHaveLength(3);
  });

  test('obeys a thrown signal', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);

    expect(await (await claimed(kit)).fail(new RetryLater('10m'))).toMatchObject({ state: 'scheduled' });
    expect(await kit.holdfast.get(id)).toMatchObject({ attempts: 0, deferrals: 1 });
    await kit.advance('10m');

    expect(await (await claimed(kit)).fail(new PermanentFailure('never'))).toMatchObject({ state: 'dead' });
  });

  test('is a retry at its own moment, on the clock of the kit', async () => {
    const kit = await byHand([
      defineTask('work', { retry: { backoff: { kind: 'fixed', delay: 60_000 }, jitter: { kind: 'none' } }, run() {} }),
    ]);
    const { id } = await kit.holdfast.enqueue('work', null);
    await (await claimed(kit)).fail(new Error('no'));

    await kit.advance('59s');
    expect(await kit.holdfast.claim({ id })).toBeUndefined();
    await kit.advance('1s');
    expect(await claimed(kit, { id })).toMatchObject({ attempt: 2 });
  });

  test('is a release, which charges nothing and makes it ready at once', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);

    expect(await (await claimed(kit)).release()).toMatchObject({ state: 'ready', outcome: { started: true } });

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0, executions: 1 });
    expect(await kit.holdfast.history(id)).toMatchObject([
      { message: 'Its claim was released while it was worked on.' },
    ]);
  });

  test('needs a person only if work on a task that must not run twice had begun', async () => {
    const kit = await byHand([defineTask('pay', { idempotent: false, run() {} })]);
    const { id } = await kit.holdfast.enqueue('pay', null);

    expect(await (await claimed(kit)).release({ begun: false })).toMatchObject({ state: 'ready' });
    expect(await (await claimed(kit)).release()).toMatchObject({ state: 'needs_manual' });

    expect(await kit.holdfast.history(id)).toHaveLength(2);
  });

  test('is final: later calls are refused, and the error says what happened', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    await claim.fail(new Failed('no'));

    const calls = {
      complete: () => claim.complete(),
      fail: () => claim.fail(1),
      release: () => claim.release(),
      renew: () => claim.renew(),
    };
    for (const [name, call] of Object.entries(calls)) {
      const error = await refused(call);
      expect(error).toMatchObject({ code: 'state_conflict', task: claim.id, state: 'ready' });
      expect(error.message).toContain(`already settled by fail() and the task is now ready, so ${name}() is refused`);
    }
    expect(await kit.holdfast.get(claim.id)).toMatchObject({ state: 'ready', attempts: 1 });
  });

  test('comes once, even if two are called at once', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);

    const [done, refusal] = await Promise.allSettled([claim.complete(1), claim.fail(new Error('no'))]);

    expect(done).toMatchObject({ status: 'fulfilled', value: { state: 'succeeded' } });
    expect(refusal).toMatchObject({ status: 'rejected', reason: { code: 'state_conflict' } });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 1, attempts: 0 });
  });

  test('refuses options that a release does not have', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    expect((await refused(() => claim.release({ begn: true } as never))).message).toMatch(/no option 'begn'/);
    expect((await refused(() => claim.release({ begun: 1 } as never))).message).toMatch(/begun must be true or false/);
    await claim.release();
  });
});

describe('the policy of a claim is', () => {
  const failOnce = async (kit: Kit) => (await claimed(kit)).fail(new Error('no'));

  test('the task’s own before that of its type', async () => {
    const kit = await byHand([defineTask('work', { retry: { maxAttempts: 2, ...atOnce }, run() {} })]);
    await kit.holdfast.enqueue('work', null, { retry: { maxAttempts: 1 } });
    expect(await failOnce(kit)).toMatchObject({ state: 'dead', decision: { because: { limit: 1 } } });
  });

  test('what the type’s own worker published, before a catch-all of this process and the preset of its name', async () => {
    const path = join(folder(), 'tasks.db');
    const theirs = await open({
      store: aStore(path),
      tasks: [defineTask('work', { retry: { maxAttempts: 9, ...atOnce }, run() {} })],
      worker: { types: [] },
    });
    await theirs.drain();
    const ours = await byHand([defineTask('*', { retry: { maxAttempts: 3, ...atOnce }, run() {} })], {
      store: aStore(path),
    });
    await theirs.holdfast.enqueue('work', null);
    await theirs.holdfast.enqueue('stranger', null);

    expect(await claimed(ours, { types: ['work'] })).toMatchObject({ maxAttempts: 9 });
    expect(await claimed(ours, { types: ['stranger'] })).toMatchObject({ maxAttempts: 3 });
  });

  test('the preset of its name where nobody defined it', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueue('imap_mailbox', null);
    const settled = await (await claimed(kit)).fail(new Error('no'));
    expect(settled.decision).toMatchObject({ next: 'scheduled', because: { limit: 5 } });
    expect((settled.decision as { after: number }).after).toBeGreaterThan(80_000);
  });

  test('one whose definition says that it must not run twice, if the enqueue did not say it', async () => {
    const path = join(folder(), 'tasks.db');
    const theirs = await open({ store: aStore(path), tasks: [defineTask('x', { run() {} })], worker: { types: [] } });
    const ours = await byHand([defineTask('pay', { idempotent: false, run() {} })], { store: aStore(path) });
    await theirs.holdfast.enqueue('pay', null);
    expect(await (await claimed(ours)).release()).toMatchObject({ state: 'needs_manual' });
  });
});

describe('a renewal', () => {
  test('holds the task for another lease, and without one it goes to somebody else', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    for (let minutes = 0; minutes < 10; minutes++) {
      await kit.advance('20s');
      expect(await claim.renew()).toBe('valid');
    }
    expect(await stateOf(kit, id)).toBe('running');

    await kit.advance('60s');

    expect(await stateOf(kit, id)).toBe('ready');
    expect(await claim.renew()).toBe('lost');
    expect(await claim.renew()).toBe('lost');
  });

  test('a renewal after a sleep restores a claim whose lease ran out, if nobody took it over', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    kit.clock.moveTo(kit.clock.now() + 3_600_000);

    expect(await claim.renew()).toBe('valid');
    await kit.advance('20s');

    expect(await stateOf(kit, id)).toBe('running');
    expect(await claim.complete()).toMatchObject({ state: 'succeeded' });
  });

  test('does not hold other claims: one that is forgotten is over when its lease is', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueueAll('work', ['kept', 'forgotten']);
    const kept = await claimed(kit);
    const forgotten = await claimed(kit);
    for (let beat = 0; beat < 6; beat++) {
      await kit.advance('10s');
      expect(await kept.renew()).toBe('valid');
    }
    expect(await stateOf(kit, kept.id)).toBe('running');
    expect(await stateOf(kit, forgotten.id)).toBe('ready');
  });

  test('tells of a cancel; then whatever does not succeed ends as cancelled', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueueAll('work', ['failed', 'released', 'completed']);
    const ends = {
      failed: (claim: ManualClaim) => claim.fail(new Error('stopped')),
      released: (claim: ManualClaim) => claim.release(),
      completed: (claim: ManualClaim) => claim.complete(),
    };
    for (const [how, end] of Object.entries(ends)) {
      const claim = await claimed(kit);
      expect(await claim.renew()).toBe('valid');
      await kit.holdfast.cancel(claim.id);
      expect(await claim.renew()).toBe('cancel_requested');
      expect((await end(claim)).state).toBe(how === 'completed' ? 'succeeded' : 'cancelled');
    }
  });

  test('says lost to a claim whose worker an operator has ended', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit, { name: 'stuck' });
    const [row] = (await kit.holdfast.workers()).filter(({ name }) => name === 'stuck');
    await kit.holdfast.endWorker(row?.id as number);

    expect(await claim.renew()).toBe('lost');

    // The same process goes on with a new row.
    expect(await claimed(kit, { name: 'stuck' })).toMatchObject({ id, execution: 2, recovered: true });
  });

  test('at the same time as the settlement of its claim neither fails nor says lost', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    const answers = await Promise.all([claim.renew(), claim.complete(), claim.renew()]);
    expect(answers).toMatchObject(['valid', { state: 'succeeded' }, 'valid']);
  });
});

describe('a claim that was lost', () => {
  async function lost() {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit, { name: 'slow' });
    await kit.advance('60s');
    return { kit, id, claim };
  }

  test.each<[string, (claim: ManualClaim) => unknown]>([
    ['failed', (claim) => claim.fail(new Error('no'))],
    ['released', (claim) => claim.release()],
  ])('cannot be %s: it is told so, and what it said is kept', async (_, end) => {
    const { kit, id, claim } = await lost();

    const error = await refused(() => end(claim));

    expect(error).toBeInstanceOf(LeaseLostError);
    expect(error).toMatchObject({ code: 'lease_lost', task: id, execution: 1 });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true, attempts: 0 });
    expect((await kit.holdfast.history(id)).at(-1)).toMatchObject({ late: true });
    expect(await claim.renew()).toBe('lost');
    expect((await refused(() => claim.complete())).code).toBe('lease_lost');
  });

  test('can still be completed while nobody has begun the task again', async () => {
    const { kit, id, claim } = await lost();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', suspect: true });

    expect(await claim.complete('done')).toMatchObject({ state: 'succeeded' });

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done', executions: 1 });
  });

  test('leaves alone the claim that came after it', async () => {
    const { kit, id, claim } = await lost();
    const next = await claimed(kit);
    expect(next).toMatchObject({ id, execution: 2, recovered: true });

    await expect(claim.complete('old')).rejects.toMatchObject({ code: 'lease_lost' });
    await next.complete('new');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'new' });
  });

  test('is recovered by the next claim where there is no worker at all', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    await kit.worker.stop();
    kit.clock.moveTo(kit.clock.now() + 31_000);
    expect(await kit.holdfast.claim()).toBeUndefined();
    kit.clock.moveTo(kit.clock.now() + 10_000);

    expect(await claimed(kit)).toMatchObject({ id, execution: 2, recovered: true });

    expect(await claim.renew()).toBe('lost');
  });
});

describe('suspects', () => {
  /** Tasks that went down with a ghost, ready again. */
  async function suspects(inputs: readonly unknown[], tasks?: HoldfastOptions['tasks']) {
    const kit = await byHand(tasks);
    const receipts = await kit.holdfast.enqueueAll('work', inputs);
    const { tasks: store } = kit.holdfast.store;
    const ghost = await store.join({ name: 'ghost', leaseFor: 1_000, publishes: {} });
    await store.claim({ worker: ghost, limit: 100, capabilities: {}, suspects: 1, alone: true, except: [] });
    await store.leave(ghost);
    return { kit, ids: receipts.map(({ id }) => id) };
  }

  test('are claimed one at a time, and other tasks meanwhile', async () => {
    const { kit, ids } = await suspects(['a', 'b']);
    await kit.advance('1ms');
    await kit.holdfast.enqueue('work', 'c');

    const first = await claimed(kit);
    expect(first).toMatchObject({ id: ids[0], recovered: true });
    expect(await kit.holdfast.claim({ id: ids[1] as number })).toBeUndefined();
    expect(await claimed(kit)).toMatchObject({ input: 'c' });
    expect(await kit.holdfast.claim()).toBeUndefined();
    await first.complete();

    expect(await claimed(kit)).toMatchObject({ id: ids[1], recovered: true });
  });

  test('are one at a time of claims that are made at once, too', async () => {
    const { kit } = await suspects(['a', 'b', 'c']);
    const claims = await Promise.all([1, 2, 3].map(() => kit.holdfast.claim()));
    expect(claims.filter((claim) => claim !== undefined)).toHaveLength(1);
  });

  test('are not held back by one that was forgotten', async () => {
    const { kit, ids } = await suspects(['a', 'b']);
    await claimed(kit);
    kit.clock.moveTo(kit.clock.now() + 31_000);
    expect(await claimed(kit)).toMatchObject({ id: ids[1] });
  });

  test('that must run alone are handed back by a process that was busy for a minute, until it is empty', async () => {
    const { kit, ids } = await suspects(['a']);
    // Recovered once; the ghost then takes it down a second time.
    await (await claimed(kit)).release({ begun: false });
    const { tasks: store } = kit.holdfast.store;
    const ghost = await store.join({ name: 'ghost', leaseFor: 1_000, publishes: {} });
    await store.claim({ worker: ghost, limit: 100, capabilities: {}, suspects: 1, alone: true, except: [] });
    await store.leave(ghost);
    const other = await kit.holdfast.enqueue('work', 'b', { priority: 1 });
    const busy = await claimed(kit, { id: other.id });
    for (let n = 0; n < 7; n++) {
      kit.clock.moveTo(kit.clock.now() + 10_000);
      await busy.renew();
    }

    expect(await kit.holdfast.claim()).toBeUndefined();
    await kit.holdfast.enqueue('work', 'c');
    expect(await kit.holdfast.claim()).toBeUndefined();
    await busy.complete();
    expect(await claimed(kit)).toMatchObject({ id: ids[0] });
  });

  test('stay suspect when they are released before anything was done, and not afterwards', async () => {
    const { kit } = await suspects(['a']);
    await (await claimed(kit)).release({ begun: false });
    const again = await claimed(kit);
    expect(again.recovered).toBe(true);
    await again.release();
    expect((await claimed(kit)).recovered).toBe(false);
  });
});

describe('the rows of workers', () => {
  test('are as many as claims are open at once, and are used again', async () => {
    const kit = await byHand();
    await kit.holdfast.enqueueAll('work', [1, 2, 3, 4, 5, 6]);
    for (let round = 0; round < 3; round++) {
      const claims = [await claimed(kit, { name: 'me' }), await claimed(kit, { name: 'me' })];
      for (const claim of claims) await claim.complete();
    }
    const mine = (await kit.holdfast.workers()).filter(({ name }) => name === 'me');
    expect(mine).toMatchObject([{ running: 0 }, { running: 0 }]);
  });

  test('are given up once nobody has used them for as long as their lease', async () => {
    const kit = await byHand();
    await kit.holdfast.claim({ name: 'once' });
    await kit.advance('31s');
    await kit.holdfast.claim({ name: 'twice' });
    await kit.drain();
    expect((await kit.holdfast.workers()).map(({ name }) => name)).toEqual(['kit', 'twice']);
  });

  test('publish what they claim, so that a waiting task is not reported as without a worker', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('elsewhere', null, { delay: '1s' });
    await kit.holdfast.claim({ types: ['elsewhere'] });
    await kit.advance('1s');
    expect(await kit.holdfast.get(id)).not.toHaveProperty('heldBy');
    await kit.advance('30s');
    expect(await kit.holdfast.get(id)).toMatchObject({ heldBy: 'no_worker' });
    await kit.holdfast.claim({ id: 99 });
    expect(await kit.holdfast.get(id)).toMatchObject({ heldBy: 'no_worker' });
  });

  test.runIf(STORE === 'sqlite')('are not written again by claims that find nothing', async () => {
    const path = join(folder(), 'tasks.db');
    const kit = await byHand(undefined, { store: aStore(path) });
    await kit.drain();
    await kit.holdfast.claim();
    const watcher = new Database(path, { readonly: true });
    const version = () => watcher.pragma('data_version', { simple: true });
    const before = version();
    for (let look = 0; look < 5; look++) expect(await kit.holdfast.claim()).toBeUndefined();
    expect(version()).toBe(before);
    watcher.close();
  });
});

describe('an open claim', () => {
  test('is released when it is disposed of, and a settled one is left as it is', async () => {
    const kit = await byHand();
    const { id } = await kit.holdfast.enqueue('work', null);
    {
      await using claim = await claimed(kit);
      expect(claim.id).toBe(id);
    }
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
    {
      await using claim = await claimed(kit);
      await claim.complete();
    }
    expect(await stateOf(kit, id)).toBe('succeeded');
  });

  /** A file that is opened, closed and looked at again. */
  function onFile(...types: readonly AnyTask[]) {
    const path = join(folder(), 'tasks.db');
    const tasks = [defineTask('work', { run() {} }), ...types];
    return () => openHoldfast({ store: aStore(path), tasks });
  }

  test('is handed back when Holdfast closes, and takes no calls after that', async () => {
    const openAgain = onFile(defineTask('pay', { idempotent: false, run() {} }));
    const holdfast = await openAgain();
    const [plain, pay] = await Promise.all([holdfast.enqueue('work', null), holdfast.enqueue('pay', null)]);
    const claims = [await holdfast.claim(), await holdfast.claim()] as ManualClaim[];

    await holdfast.close();

    for (const claim of claims) {
      for (const call of ['renew', 'complete', 'release'] as const) {
        expect((await refused(() => claim[call]())).code).toBe('closed');
      }
      await claim[Symbol.asyncDispose]();
    }
    expect((await refused(() => holdfast.claim())).code).toBe('closed');
    await using again = await openAgain();
    expect(await again.get(plain.id)).toMatchObject({ state: 'ready', attempts: 0, suspect: false });
    expect(await again.get(pay.id)).toMatchObject({ state: 'needs_manual' });
    expect(await again.workers()).toEqual([]);
    expect(await again.store.upkeep.verify()).toEqual([]);
  });

  test('that is still being made when Holdfast closes is handed back unbegun, or was never made', async () => {
    const openAgain = onFile(defineTask('pay', { idempotent: false, run() {} }));
    for (let turns = 0; turns < 8; turns++) {
      const holdfast = await openAgain();
      const { id } = await holdfast.enqueue('pay', null);
      const claiming = holdfast.claim().catch((error: unknown) => error);
      for (let turn = 0; turn < turns; turn++) await new Promise((resolve) => setImmediate(resolve));
      let made: unknown;
      void claiming.then((claim) => {
        made = claim;
      });
      await null;
      const inTime = made !== undefined;
      await holdfast.close();

      if (!inTime) expect(await claiming).toMatchObject({ code: 'closed' });
      const again = await openAgain();
      expect(await again.get(id)).toMatchObject({ state: inTime ? 'needs_manual' : 'ready' });
      expect(await again.workers()).toEqual([]);
      await again.cancel(id);
      await again.close();
    }
  });

  test('may be settled by a handler while its Holdfast closes', async () => {
    const started = gate();
    const go = gate();
    const parent = defineTask('parent', {
      async run() {
        started.open();
        await go.passed;
        const claim = await holdfast.claim({ types: ['child'] });
        return (await claim?.complete('done'))?.state;
      },
    });
    const openAgain = onFile(parent);
    const holdfast = await openAgain();
    const { id } = await holdfast.enqueue(parent, null);
    await holdfast.enqueue('child', null);
    holdfast.work();
    await started.passed;
    const closed = holdfast.close();
    go.open();
    await closed;

    await using again = await openAgain();
    expect(await again.get(id)).toMatchObject({ state: 'succeeded', result: 'succeeded' });
  });

  test('that is being settled when Holdfast closes ends with that settlement', async () => {
    const openAgain = onFile();
    const holdfast = await openAgain();
    const { id } = await holdfast.enqueue('work', null);
    const claim = (await holdfast.claim()) as ManualClaim;

    const [settled] = await Promise.all([claim.complete('done'), holdfast.close()]);

    expect(settled).toMatchObject({ state: 'succeeded' });
    await using again = await openAgain();
    expect(await again.get(id)).toMatchObject({ state: 'succeeded', result: 'done' });
  });
});

describe('while the store refuses', () => {
  async function withTrouble() {
    const path = join(folder(), 'tasks.db');
    const logged: string[] = [];
    const note = (_: object, message: string) => void logged.push(message);
    const log: Logger = { debug() {}, info() {}, warn: note, error() {} };
    const kit = await byHand(undefined, { store: aStore(path), log });
    await kit.drain();
    return { kit, logged, ...refusalsOf(path) };
  }

  test('a settlement that failed rejects; only the same call may be repeated', async () => {
    const { kit, refuse, relent } = await withTrouble();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    await refuse('settling');

    const unwritten = await refused(() => claim.complete('done'));
    expect(unwritten).toMatchObject({ name: 'StoreError', cause: { message: 'not now' } });
    // As of somebody who completes within a `try` and fails in its `catch`.
    const refusal = await refused(() => claim.fail(unwritten));
    expect(refusal).toMatchObject({ code: 'state_conflict', state: 'running' });
    expect(refusal.message).toMatch(/complete\(\) of the claim .* could not be written.*Call complete\(\) again/);
    await claim[Symbol.asyncDispose]();
    expect(await claim.renew()).toBe('valid');
    await relent();

    expect(await claim.complete('done')).toMatchObject({ state: 'succeeded' });
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done', attempts: 0 });
  });

  test('a claim rejects, and the next one takes the task', async () => {
    const { kit, refuse, relent } = await withTrouble();
    const { id } = await kit.holdfast.enqueue('work', null);
    await refuse('claiming');
    expect(await refused(() => kit.holdfast.claim())).toMatchObject({ code: 'store_unavailable' });
    await relent();
    expect(await claimed(kit)).toMatchObject({ id, execution: 1 });
  });

  test('a disposal lets the lease run out, and logs it', async () => {
    const { kit, logged, refuse, relent } = await withTrouble();
    const { id } = await kit.holdfast.enqueue('work', null);
    const claim = await claimed(kit);
    await refuse('settling');
    await claim[Symbol.asyncDispose]();
    expect(logged).toEqual(['A claim could not be handed back; its lease runs out by itself']);
    await relent();
    await kit.advance('60s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0 });
  });
});
