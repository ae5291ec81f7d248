import { describe, expect, test } from 'vitest';
import type { Claimed } from '../../../src/store/store.ts';
import {
  deferredFor,
  ended,
  handedBack,
  idsOf,
  lost,
  retryIn,
  type StoreFactory,
  settlement,
  succeeded,
  UNBEGUN,
  useScene,
} from '../scene.ts';
import { asNew, from, lastStraw, restrict, retryWithToken, sourcesOf } from '../source-scene.ts';

/** What a store keeps of sources that are not in their normal state. */
export function promisesOfSourceStates(factory: StoreFactory): void {
  const scene = useScene(factory);
  const S = 'imap:INBOX';
  const sources = () => sourcesOf(scene);
  const revisionOf = async (source = S) => (await sources().state(source))?.revision ?? 0;

  describe('revisions', () => {
    test('a source has no state until a settlement makes one, which later claims return', async () => {
      const worker = await scene.join();
      const first = await scene.start(worker);
      expect(first.sourceState).toBeUndefined();
      expect(await sources().state(S)).toBeUndefined();

      await scene.settle(first, retryIn(60_000), { source: from(0, { memory: '{"failures":1}' }) });
      scene.advance(2_000);
      const state = { revision: expect.any(Number), memory: '{"failures":1}', age: 2_000 };
      expect(await sources().state(S)).toEqual(state);
      expect((await scene.start(worker)).sourceState).toEqual(state);
      expect((await scene.start(worker, { source: 'other' })).sourceState).toBeUndefined();
    });

    test.each([
      ['a success', succeeded()],
      ['a failure', retryIn(1_000)],
      ['an end', ended('dead')],
    ])(
      '%s that was made from another state of its source changes nothing, and is told the present one',
      async (_, decision) => {
        const worker = await scene.join();
        const claimed = await scene.start(worker);
        expect(await sources().change(S, from(0, { memory: 'new' }))).toBe(true);

        expect(await scene.settle(claimed, decision)).toEqual({
          answer: 'changed',
          revision: claimed.revision,
          facts: claimed.facts,
          sourceState: { revision: await revisionOf(), memory: 'new', age: 0 },
        });
        expect(await scene.stateOf(claimed.lease.task)).toBe('running');
        expect(await scene.settle(claimed, decision, { source: { revision: await revisionOf() } })).toMatchObject({
          answer: 'settled',
        });
        expect(await scene.store.records.history(claimed.lease.task)).toHaveLength(
          decision.next === 'succeeded' ? 0 : 1,
        );
      },
    );

    test('a settlement made from a state that was removed gets the answer that there is none', async () => {
      const worker = await scene.join();
      await restrict(scene, S);
      const claimed = await scene.start(worker);
      const { revision } = claimed.sourceState as { revision: number };
      await sources().change(S, asNew(revision));

      const answer = await scene.settle(claimed, retryIn(0), { source: from(revision, { memory: 'old' }) });
      expect(answer).toMatchObject({ answer: 'changed' });
      expect(answer).not.toHaveProperty('sourceState');
      expect(await sources().state(S)).toBeUndefined();
      expect(await scene.settle(claimed, succeeded())).toMatchObject({ answer: 'settled' });
    });

    test('a settlement that does not concern its source is written, whatever the state of the source', async () => {
      const worker = await scene.join();
      const [one, two, three] = [await scene.start(worker), await scene.start(worker), await scene.start(worker)];
      await restrict(scene, S);

      expect(await scene.settle(one, handedBack(), { source: 'any' })).toMatchObject({ answer: 'settled' });
      expect(await scene.settle(two, lost('free'), { source: 'any' })).toMatchObject({ answer: 'settled' });
      expect(await scene.settle(three, succeeded(), { source: 'any' })).toMatchObject({ answer: 'settled' });
    });

    test('a cancel of the task and a change of its source are both noticed', async () => {
      const worker = await scene.join();
      const claimed = await scene.start(worker);
      await scene.move(claimed.lease.task, { verb: 'cancel' });
      const asked = await scene.settle(claimed, retryIn(0), { source: from(0) });
      expect(asked).toMatchObject({ answer: 'changed', facts: { cancelRequested: true } });
      expect(await sources().state(S)).toBeUndefined();

      await restrict(scene, S);
      const { revision } = asked as { revision: number };
      const again = await scene.settle({ ...claimed, revision }, retryIn(0), { source: from(0) });
      expect(again).toMatchObject({ answer: 'changed', sourceState: { memory: 'm' } });
    });

    test('a stale or repeated settlement does not change its source', async () => {
      const worker = await scene.join();
      const claimed = await scene.start(worker);
      const more = { source: from(0) };
      await scene.settle(claimed, ended('dead'), more);
      const before = await sources().state(S);

      expect(await scene.settle(claimed, ended('dead'), more)).toEqual({ answer: 'already' });
      const forged = { ...claimed, lease: { ...claimed.lease, token: 'forged' } };
      const source = from(await revisionOf(), { memory: 'forged' });
      expect(await scene.settle(forged, succeeded(), { source })).toEqual({ answer: 'stale' });
      expect(await sources().state(S)).toEqual(before);
    });

    test('a success whose lease was lost counts, and changes nothing of its source', async () => {
      const alice = await scene.join('alice');
      const bob = await scene.join('bob');
      const claimed = await scene.start(alice);
      await restrict(scene, S);
      expect(await scene.recoverAfterSilence(bob)).toHaveLength(1);
      const { revision } = (await sources().state(S)) as { revision: number };

      expect(await scene.settle(claimed, succeeded(), { source: asNew(revision) })).toMatchObject({
        answer: 'settled',
      });
      expect(await revisionOf()).toBe(revision);
    });

    test('each change of a source counts one up, and a later state has a higher number than all before it', async () => {
      const seen: number[] = [];
      for (let life = 0; life < 3; life += 1) {
        for (let n = 0; n <= life; n += 1) {
          await restrict(scene, S);
          seen.push(await revisionOf());
        }
        await restrict(scene, 'other');
        expect(await sources().change(S, asNew(await revisionOf()))).toBe(true);
        expect(await sources().state(S)).toBeUndefined();
      }
      expect(seen).toEqual(seen.toSorted((a, b) => a - b));
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen[2]).toBe((seen[1] as number) + 1);
    });

    test('a change outside of settlements is refused where it was made from another state', async () => {
      expect(await sources().change(S, from(7))).toBe(false);
      expect(await sources().change(S, from(0))).toBe(true);
      const revision = await revisionOf();
      expect(await sources().change(S, from(0))).toBe(false);
      expect(await sources().change(S, from(revision - 1))).toBe(false);
      expect(await sources().change(S, { revision })).toBe(true);
      expect(await sources().change(S, from(revision, { memory: 'next' }))).toBe(true);
      expect(await sources().state(S)).toMatchObject({ revision: revision + 1, memory: 'next' });
    });

    test.each([
      ['without a state', 0],
      ['with a state', 1],
    ])('several settlements of one call change a source %s one after the other', async (_, states) => {
      const worker = await scene.join();
      if (states > 0) await restrict(scene, S);
      const first = await revisionOf();
      const claimed = await startAll(worker, 4);
      const each = claimed.map((one, n) =>
        settlement(one, n === 2 ? succeeded() : retryIn(60_000), { source: from(first + n, { memory: `${n}` }) }),
      );

      const answers = await scene.store.tasks.settle([
        ...each,
        settlement(await scene.start(worker, { source: 'x' }), succeeded()),
      ]);
      expect(answers.map(({ answer }) => answer)).toEqual(Array(5).fill('settled'));
      expect((await sources().state(S))?.memory).toBe('3');
    });

    test('after a refused change, all later changes of this source in the same call are refused', async () => {
      const worker = await scene.join();
      const [one, two, three, four] = (await startAll(worker, 4)) as [Claimed, Claimed, Claimed, Claimed];
      const answers = await scene.store.tasks.settle([
        settlement(one, retryIn(60_000), { source: from(0, { memory: 'kept' }) }),
        settlement(two, retryIn(60_000), { source: from(0) }),
        settlement(three, retryIn(60_000), { source: from(1) }),
        settlement(four, handedBack(), { source: 'any' }),
      ]);
      expect(answers.map(({ answer }) => answer)).toEqual(['settled', 'changed', 'changed', 'settled']);
      expect(answers[2]).toMatchObject({ sourceState: { memory: 'kept', revision: await revisionOf() } });
    });

    test.each([
      ['changes', from(0)],
      ['was made from a wrong state of', { revision: 1 }],
    ])(
      'a plain success after one that %s its source in the same call is refused too, and one before it is not',
      async (_, source) => {
        const worker = await scene.join();
        const [before, one, after] = (await startAll(worker, 3)) as [Claimed, Claimed, Claimed];
        const answers = await scene.store.tasks.settle([
          settlement(before, succeeded()),
          settlement(one, retryIn(60_000), { source }),
          settlement(after, succeeded()),
        ]);
        expect([answers[0]?.answer, answers[2]?.answer]).toEqual(['settled', 'changed']);
      },
    );

    test('of two calls at once that were made from the same state, one is refused as a whole', async () => {
      const worker = await scene.join();
      const claimed = await startAll(worker, 4);
      const call = (of: readonly Claimed[], memory: string) =>
        scene.store.tasks.settle(of.map((one, n) => settlement(one, retryIn(60_000), { source: from(n, { memory }) })));
      const [left, right] = await Promise.all([call(claimed.slice(0, 2), 'left'), call(claimed.slice(2), 'right')]);

      const words = [left, right].map((answers) => answers.map(({ answer }) => answer).join());
      expect(words.toSorted()).toEqual(['changed,changed', 'settled,settled']);
      expect((await sources().state(S))?.memory).toBe(words[0] === 'settled,settled' ? 'left' : 'right');
    });

    test.runIf(factory.openSecond)('a state is the same for every process, and after a restart', async () => {
      await restrict(scene, S, { cause: 'breaker', shutFor: 'released' });
      const [id] = await scene.enqueue({});
      const before = await sources().state(S);
      await scene.openSecond();
      await scene.closeStore();

      expect(await sources().state(S)).toEqual(before);
      const worker = await scene.join();
      expect(await scene.claim(worker)).toEqual([]);
      await sources().change(S, asNew(before?.revision as number));
      expect(idsOf(await scene.claim(worker))).toEqual([id]);
    });
  });

  describe('refunds', () => {
    /** A task that failed once, at its own expense. */
    async function charged(worker: number, decision = retryIn(60_000, 'http.503')): Promise<Claimed> {
      const claimed = await scene.start(worker);
      await scene.settle(claimed, decision, { source: 'any' });
      return claimed;
    }
    const refund = async (...claimed: readonly Claimed[]) => {
      const refunds = claimed.map(({ lease: { task, execution } }) => ({ task, execution }));
      expect(await sources().change(S, from(await revisionOf(), { refunds }))).toBe(true);
    };

    test('a charge is refunded once, and the history says so', async () => {
      const worker = await scene.join();
      const claimed = await charged(worker);
      const { task } = claimed.lease;
      await refund(claimed);
      await refund(claimed);

      expect((await scene.find(task)).charged).toEqual([]);
      expect(await scene.store.records.history(task)).toMatchObject([{ charge: 'refunded', execution: 1 }]);
      expect(await scene.stateOf(task)).toBe('scheduled');
    });

    test('only the charge that is named is taken back, of the count of its reason', async () => {
      const worker = await scene.join();
      const { lease } = await charged(worker, retryIn(0, 'http.503'));
      const second = await scene.claimTask(worker, lease.task);
      await scene.settle(second, retryIn(0, 'http.503'), { source: 'any' });
      await scene.settle(await scene.claimTask(worker, lease.task), retryIn(60_000), { source: 'any' });
      await refund(second);

      expect((await scene.find(lease.task)).charged).toEqual([
        { reason: 'http.503', kind: 'transient', count: 1 },
        { reason: 'fs.locked', kind: 'transient', count: 1 },
      ]);
      const charges = await scene.store.records.history(lease.task);
      expect(charges.map((entry) => entry.kind === 'execution' && entry.charge)).toEqual(['task', 'refunded', 'task']);
    });

    test('the wait after a refunded charge is taken back too', async () => {
      const worker = await scene.join();
      const first = await charged(worker, retryIn(5_000, 'http.503'));
      scene.advance(5_000);
      const second = await scene.claimTask(worker, first.lease.task);
      await scene.settle(second, retryIn(9_000, 'http.503'), { source: 'any' });
      await refund(second);

      expect((await scene.store.records.facts(first.lease.task))?.charged).toEqual([
        { reason: 'http.503', kind: 'transient', count: 1, delayMs: 5_000 },
      ]);
    });

    test('nothing is refunded that was not charged, of an earlier round, of a task that has ended, or that never was', async () => {
      const worker = await scene.join();
      const deferred = await charged(worker, deferredFor(60_000));
      const dead = await charged(worker, ended('dead', 'http.503'));
      const earlier = await charged(worker, ended('needs_manual', 'http.503'));
      await scene.move(earlier.lease.task, { verb: 'retry' });
      const unknown = { ...dead, lease: { ...dead.lease, task: 999_999 } };
      await refund(deferred, dead, earlier, unknown);

      expect((await scene.find(dead.lease.task)).charged).toHaveLength(1);
      expect(await scene.store.records.history(deferred.lease.task)).toMatchObject([{ charge: 'deferrals' }]);
      expect((await scene.store.records.history(earlier.lease.task))[0]).toMatchObject({ charge: 'task' });
    });

    test('a task that needs a person, or is held, is refunded', async () => {
      const worker = await scene.join();
      const manual = await charged(worker, ended('needs_manual', 'http.503'));
      const held = await charged(worker);
      await scene.move(held.lease.task, { verb: 'hold' });
      await refund(manual, held);

      expect((await scene.find(manual.lease.task)).charged).toEqual([]);
      expect((await scene.find(held.lease.task)).charged).toEqual([]);
    });

    test('a running task whose earlier charge is refunded is decided again from its fresh facts', async () => {
      const worker = await scene.join();
      const first = await charged(worker, retryIn(0, 'http.503'));
      const second = await scene.claimTask(worker, first.lease.task);
      await refund(first);

      const answer = await scene.settle(second, retryIn(60_000), { source: { revision: await revisionOf() } });
      expect(answer).toMatchObject({ answer: 'changed', facts: { charged: [] } });
      const { revision } = answer as { revision: number };
      await scene.settle({ ...second, revision }, retryIn(60_000), { source: { revision: await revisionOf() } });
      expect((await scene.find(first.lease.task)).charged).toEqual([
        { reason: 'fs.locked', kind: 'transient', count: 1 },
      ]);
    });

    test('a success after a refund of its task leaves the refund', async () => {
      const worker = await scene.join();
      const first = await charged(worker, retryIn(0, 'http.503'));
      const second = await scene.claimTask(worker, first.lease.task);
      await refund(first);
      await scene.settle(second, succeeded(), { source: { revision: await revisionOf() } });

      expect(await scene.find(first.lease.task)).toMatchObject({ state: 'succeeded', charged: [] });
    });

    test('a charge may be refunded by a later settlement of the same call', async () => {
      const worker = await scene.join();
      const [one, two] = (await startAll(worker, 2)) as [Claimed, Claimed];
      const { task, execution } = one.lease;
      const answers = await scene.store.tasks.settle([
        settlement(one, retryIn(60_000, 'http.503'), { source: from(0) }),
        settlement(two, deferredFor(60_000), { source: from(1, { refunds: [{ task, execution }] }) }),
      ]);
      expect(answers.map(({ answer }) => answer)).toEqual(['settled', 'settled']);
      expect((await scene.find(task)).charged).toEqual([]);
    });

    test('a settlement from an old state of its source has those after it decided anew, also if its own task was changed', async () => {
      const worker = await scene.join();
      const [one, two] = (await startAll(worker, 2)) as [Claimed, Claimed];
      expect(await sources().change(S, from(await revisionOf()))).toBe(true);
      await scene.move(one.lease.task, { verb: 'cancel' });
      const answers = await scene.store.tasks.settle([
        settlement(one, retryIn(60_000)),
        settlement(two, retryIn(60_000), { source: { revision: await revisionOf() } }),
      ]);
      expect(answers.map(({ answer }) => answer)).toEqual(['changed', 'changed']);
    });

    test('an answer `changed` has the state of the source after the whole call', async () => {
      const worker = await scene.join();
      const [one, two] = (await startAll(worker, 2)) as [Claimed, Claimed];
      await scene.move(one.lease.task, { verb: 'cancel' });
      const answers = await scene.store.tasks.settle([
        settlement(one, retryIn(60_000)),
        settlement(two, retryIn(60_000), { source: from(0) }),
      ]);
      const revision = await revisionOf();
      expect(answers).toMatchObject([{ answer: 'changed', sourceState: { revision } }, { answer: 'settled' }]);
    });

    test('a refund of a charge that is written counts, also if the call repeats the settlement that made it', async () => {
      const worker = await scene.join();
      const [one, two] = (await startAll(worker, 2)) as [Claimed, Claimed];
      const made = settlement(one, retryIn(60_000, 'http.503'));
      await scene.store.tasks.settle([made]);
      const { task, execution } = one.lease;
      await scene.store.tasks.settle([
        settlement(two, retryIn(60_000), { source: from(0, { refunds: [{ task, execution }] }) }),
        made,
      ]);
      expect((await scene.find(task)).charged).toEqual([]);
    });

    test('the rest of a call from the second settlement of a task on is judged like a call of its own', async () => {
      const worker = await scene.join();
      const [one, two, three] = (await startAll(worker, 3)) as [Claimed, Claimed, Claimed];
      const answers = await scene.store.tasks.settle([
        settlement(one, retryIn(60_000), { source: { revision: 7 } }),
        settlement(two, retryIn(60_000), { source: 'any' }),
        settlement(two, retryIn(60_000), { source: 'any' }),
        settlement(three, retryIn(60_000)),
      ]);
      expect(answers.map(({ answer }) => answer)).toEqual(['changed', 'settled', 'already', 'settled']);
    });

    test('a settlement after a stale one of its task is made before later settlements of the call refund the task', async () => {
      const worker = await scene.join();
      const first = await charged(worker, retryIn(0, 'http.503'));
      const second = await scene.claimTask(worker, first.lease.task);
      const opener = await scene.start(worker);
      const { task, execution } = first.lease;
      const answers = await scene.store.tasks.settle([
        settlement(first, retryIn(60_000, 'http.503'), { source: 'any' }),
        settlement(second, retryIn(60_000), { source: { revision: 0 } }),
        settlement(opener, deferredFor(60_000), { source: from(0, { refunds: [{ task, execution }] }) }),
      ]);
      expect(answers.slice(1).map(({ answer }) => answer)).toEqual(['settled', 'settled']);
    });

    test('a refund by a later settlement of a call is seen by a settlement of its task in that call', async () => {
      const worker = await scene.join();
      const first = await charged(worker, retryIn(0, 'http.503'));
      const second = await scene.claimTask(worker, first.lease.task);
      const opener = await scene.start(worker);
      const { task, execution } = first.lease;
      const answers = await scene.store.tasks.settle([
        settlement(opener, deferredFor(60_000), { source: from(0, { refunds: [{ task, execution }] }) }),
        settlement(second, retryIn(60_000), { source: { revision: 1 } }),
      ]);
      expect(answers).toMatchObject([{ answer: 'settled' }, { answer: 'changed', facts: { charged: [] } }]);
    });

    test('a task that waits for the verdict on its source says so to its next claim, unless it was refunded', async () => {
      const worker = await scene.join();
      const ending = await charged(worker, lastStraw());
      const spared = await charged(worker, lastStraw());
      await refund(spared);
      scene.advance(60_000);

      const [first, second] = await scene.claim(worker);
      expect([first?.lease.task, second?.lease.task]).toEqual([ending.lease.task, spared.lease.task]);
      expect(first?.facts).toMatchObject({ verdict: 'http.503', charged: [{ count: 1 }] });
      expect(second?.facts.charged).toEqual([]);
      expect(second?.facts).not.toHaveProperty('verdict');
    });

    test('the verdict is kept until the next settlement', async () => {
      const worker = await scene.join();
      const { lease } = await charged(worker, lastStraw(0));
      expect((await scene.store.records.facts(lease.task))?.verdict).toBe('http.503');
      const [claimed] = await scene.claim(worker);
      await scene.settle(claimed as Claimed, retryIn(0), { source: { revision: await revisionOf() } });
      expect(await scene.store.records.facts(lease.task)).not.toHaveProperty('verdict');
    });
  });

  describe('restrictions', () => {
    const claimOnce = async (worker: number, limit = 100) => {
      const { tasks, nextDueIn } = await scene.store.tasks.claim({
        ...{ worker, limit, capabilities: {}, suspects: 1, alone: true, except: [] },
      });
      return { ids: idsOf(tasks), tasks, nextDueIn };
    };
    const done = (one: Claimed) => scene.settle(one, succeeded(), { source: 'any' });

    test('a source that is held for a time opens by itself, its tasks start in the order of the queue, and a claim says when', async () => {
      const worker = await scene.join();
      await restrict(scene, 'a', { cause: 'rate_limit', shutFor: 5_000 });
      const ids = await scene.enqueue({ source: 'a' }, { source: 'b' }, { source: 'a', priority: 1 }, { source: 'b' });

      expect(await claimOnce(worker)).toMatchObject({ ids: [ids[1], ids[3]], nextDueIn: 5_000 });
      expect(await scene.claim(worker, { only: ids })).toEqual([]);
      scene.advance(4_999);
      expect(await claimOnce(worker)).toMatchObject({ ids: [], nextDueIn: 1 });
      scene.advance(1);
      expect(await claimOnce(worker)).toMatchObject({ ids: [ids[0], ids[2]] });
    });

    test('a source that needs a person stays held until its state says otherwise', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'needs_person', shutFor: 'released' });
      const id = await scene.enqueueOne();
      scene.advance(30 * 86_400_000);
      const { ids, nextDueIn } = await claimOnce(worker);
      expect([ids, nextDueIn]).toEqual([[], undefined]);

      await restrict(scene, S);
      expect(idsOf(await scene.claim(worker))).toEqual([id]);
    });

    test('an operator’s hold counts also where the source would be open, and the restriction also after a release', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', shutFor: 5_000 });
      await scene.store.sources.hold(S, { actor: 'eva' });
      const id = await scene.enqueueOne();
      expect((await scene.find(id)).heldBy).toBe('source_held');
      scene.advance(2_000);
      await scene.store.sources.release(S);
      expect(await claimOnce(worker)).toMatchObject({ ids: [], nextDueIn: 3_000 });
      await scene.store.sources.hold(S, { actor: 'eva' });
      scene.advance(3_000);
      expect(await scene.claim(worker)).toEqual([]);
      await scene.store.sources.release(S);
      expect(idsOf(await scene.claim(worker))).toEqual([id]);
    });

    test('a source that is probed lets one task start at a time, which is marked', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const ids = await scene.enqueue({}, { type: 'other' }, {});

      const [probe, ...others] = await scene.claim(alice);
      expect([probe?.lease.task, probe?.probe, others]).toEqual([ids[0], true, []]);
      expect(await scene.claim(bob)).toEqual([]);
      expect(await scene.claim(bob, { only: ids })).toEqual([]);
      await done(probe as Claimed);
      expect(await scene.claim(bob, { only: [ids[2] as number] })).toMatchObject([{ probe: true }]);
      expect(await scene.claim(alice)).toEqual([]);
    });

    test('a task that ran already when its source went down is no probe, and delays none', async () => {
      const worker = await scene.join();
      const running = await scene.start(worker);
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const [first, second] = await scene.enqueue({}, {});

      const [probe] = await scene.claim(worker);
      expect(probe).toMatchObject({ lease: { task: first }, probe: true });
      await done(running);
      expect(await scene.claim(worker)).toEqual([]);
      await scene.settle(probe as Claimed, retryIn(60_000), { source: 'any' });
      expect(idsOf(await scene.claim(worker))).toEqual([second]);
    });

    test('a probe that is handed back unbegun makes room for the next one', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', probing: true });
      await scene.enqueue({}, {});
      const [probe] = await scene.claim(worker);
      await scene.settle(probe as Claimed, handedBack(), { report: UNBEGUN, source: 'any' });

      expect(await scene.claim(worker)).toMatchObject([{ probe: true }]);
    });

    test('a probe that hangs holds up the next one for a minute', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const [first, second, third] = await scene.enqueue({}, {}, {});
      const [hanging] = (await scene.claim(alice)) as [Claimed];
      scene.advance(59_999);
      expect(await scene.claim(bob)).toEqual([]);
      expect((await scene.find(second as number)).heldFor).toBe(1);
      scene.advance(1);
      const [next] = (await scene.claim(bob, { limit: 5 })) as [Claimed];
      expect([hanging, next]).toMatchObject([
        { lease: { task: first }, probe: true },
        { lease: { task: second }, probe: true },
      ]);
      expect(await scene.claim(bob)).toEqual([]);
      await done(next);
      expect(idsOf(await scene.claim(bob))).toEqual([third]);
    });

    test('a probe whose worker is lost stops nothing: once it is recovered, there is another', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const [first, second] = await scene.enqueue({}, {});
      expect(idsOf(await scene.claim(alice))).toEqual([first]);

      const [recovered] = await scene.recoverAfterSilence(bob);
      expect(await scene.claim(bob)).toEqual([]);
      await scene.settle(recovered as Claimed, lost('free'), { source: 'any' });
      const next = await scene.claim(bob, { suspects: 0, alone: false });
      expect(next).toMatchObject([{ lease: { task: second }, probe: true }]);
    });

    test('a probe that ends by a cancel, or changes its source, makes room for the next probe', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const ids = await scene.enqueue({}, {}, {});
      const [probe] = await scene.claim(worker);
      await scene.settle(probe as Claimed, succeeded(), {
        source: from(await revisionOf(), { restriction: { cause: 'breaker', shutFor: 5_000, probing: true } }),
      });
      expect(await claimOnce(worker)).toMatchObject({ ids: [], nextDueIn: 5_000 });
      scene.advance(5_000);
      expect(await scene.claim(worker)).toMatchObject([{ lease: { task: ids[1] }, probe: true }]);
    });

    test('starts are spaced, and a claim takes only as many tasks as the pace allows', async () => {
      const worker = await scene.join();
      await restrict(scene, 'a', { cause: 'breaker', pace: { perSecond: 2, burst: 1 } });
      const a = await scene.enqueue(...Array(4).fill({ source: 'a' }));
      const [b] = await scene.enqueue({ source: 'b' });

      expect(await claimOnce(worker)).toMatchObject({ ids: [a[0], b], nextDueIn: 500 });
      scene.advance(499);
      expect(await claimOnce(worker)).toMatchObject({ ids: [], nextDueIn: 1 });
      scene.advance(1);
      expect((await claimOnce(worker)).ids).toEqual([a[1]]);
      scene.advance(60_000);
      expect((await claimOnce(worker)).ids).toEqual([a[2]]);
      expect(await scene.claim(worker, { only: [a[3] as number] })).toEqual([]);
    });

    test('after a pause, a claim takes the burst and no more', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', pace: { perSecond: 10, burst: 3 } });
      const ids = await scene.enqueue(...Array(9).fill({}));
      expect((await claimOnce(worker)).ids).toEqual(ids.slice(0, 1));
      scene.advance(60_000);
      expect((await claimOnce(worker)).ids).toEqual(ids.slice(1, 4));
      scene.advance(100);
      expect((await claimOnce(worker)).ids).toEqual(ids.slice(4, 5));
      scene.advance(200);
      expect((await claimOnce(worker)).ids).toEqual(ids.slice(5, 7));
    });

    test('a new pace counts at once, even if the earlier pace was much slower', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'rate_limit', pace: { perSecond: 1 / 3_600, burst: 1 } });
      const ids = await scene.enqueue({}, {}, {});
      expect((await claimOnce(worker)).nextDueIn).toBe(3_600_000);
      await restrict(scene, S, { cause: 'rate_limit', pace: { perSecond: 10, burst: 1 } });

      expect(await claimOnce(worker)).toMatchObject({ ids: [], nextDueIn: 100 });
      scene.advance(100);
      expect((await claimOnce(worker)).ids).toEqual([ids[1]]);
    });

    test('while a source ramps, its backlog gets every second start beside new work, and either all where it is alone', async () => {
      const worker = await scene.join();
      const backlog = await scene.enqueue(...Array(5).fill({}));
      await restrict(scene, S, { cause: 'breaker', ramping: true, pace: { perSecond: 1_000, burst: 100 } });
      scene.advance(1_000);
      const fresh = await scene.enqueue(...Array(4).fill({}));

      const taken: number[] = [];
      for (let n = 0; n < 9; n += 1) {
        scene.advance(1_000);
        taken.push(...(await claimOnce(worker, 1)).ids);
      }
      const isNew = taken.map((id) => (fresh.includes(id) ? 'n' : 'b')).join('');
      expect(['nbnbnbnbb', 'bnbnbnbnb']).toContain(isNew);
      expect(taken.filter((id) => fresh.includes(id))).toEqual(fresh);
      expect(taken.filter((id) => backlog.includes(id))).toEqual(backlog);
    });

    test('the turns of backlog and new work are kept within one claim, and a retry is backlog', async () => {
      const worker = await scene.join();
      const retried = await scene.start(worker);
      const backlog = await scene.enqueue({}, { type: 'other' });
      await restrict(scene, S, { cause: 'breaker', ramping: true, pace: { perSecond: 1_000, burst: 100 } });
      scene.advance(1_000);
      const fresh = await scene.enqueue({ type: 'other' }, {}, {});
      await scene.settle(retried, retryIn(0), { source: 'any' });
      await claimOnce(worker, 0);
      scene.advance(1_000);

      const first = await claimOnce(worker, 1);
      scene.advance(1_000);
      const taken = [...first.ids, ...(await claimOnce(worker)).ids];
      expect(taken.filter((id) => fresh.includes(id))).toEqual(fresh);
      expect(taken.filter((id) => !fresh.includes(id))).toEqual([...backlog, retried.lease.task]);
      expect(taken.map((id) => fresh.includes(id)).slice(0, 6)).toEqual(
        [0, 1, 2, 3, 4, 5].map((n) => fresh.includes(taken[0] as number) === (n % 2 === 0)),
      );
    });

    test('after the ramp, only the order of its queue counts', async () => {
      const worker = await scene.join();
      const backlog = await scene.enqueue({}, {});
      await restrict(scene, S, { cause: 'breaker', ramping: true, pace: { perSecond: 10, burst: 1 } });
      scene.advance(1_000);
      const fresh = await scene.enqueue({}, {});
      await restrict(scene, S);

      expect((await claimOnce(worker)).ids).toEqual([...backlog, ...fresh]);
    });

    test('a task that came while its source ramped can be cancelled, held and claimed by id as any', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', ramping: true, pace: { perSecond: 1_000, burst: 10 } });
      const [one, two, three] = (await scene.enqueue({}, {}, {})) as [number, number, number];
      await scene.move(one, { verb: 'cancel' });
      await scene.move(two, { verb: 'hold' });
      await scene.move(two, { verb: 'release' });
      scene.advance(1_000);
      expect(idsOf(await scene.claim(worker, { only: [two] }))).toEqual([two]);
      scene.advance(1_000);
      expect(idsOf(await scene.claim(worker, { except: [three] }))).toEqual([]);
      expect(idsOf(await scene.claim(worker))).toEqual([three]);
    });

    test('says that a claim took the last ready task of a source with a state', async () => {
      const worker = await scene.join();
      await restrict(scene, S);
      await scene.enqueue({}, { type: 'other' }, { source: 'b' });
      const [first, other] = [await scene.claim(worker, { limit: 1 }), await scene.claim(worker)];
      expect(first[0]).not.toHaveProperty('drained');
      expect(other.map(({ source, drained }) => [source, drained])).toEqual([
        [S, true],
        ['b', undefined],
      ]);
    });

    test('nothing of a source with a state or a restriction is claimed ahead', async () => {
      const worker = await scene.join();
      const ahead = { limit: 9, types: ['mail'] };
      await restrict(scene, 'a');
      const ids = await scene.enqueue({ source: 'b' }, { source: 'b' }, { source: 'a' }, { source: 'b' });
      expect(idsOf(await scene.claim(worker, { limit: 1, ahead }))).toEqual(ids.slice(0, 2));
      expect(idsOf(await scene.claim(worker, { limit: 1, ahead }))).toEqual(ids.slice(2));
      await restrict(scene, 'a', { cause: 'breaker', pace: { perSecond: 1_000, burst: 100 } });
      const more = await scene.enqueue({ source: 'b' }, { source: 'a' }, { source: 'b' });
      expect(idsOf(await scene.claim(worker, { limit: 1, ahead }))).toEqual(more.slice(0, 1));
    });

    test.each([
      ['is held for a time', { cause: 'rate_limit', shutFor: 5_000 }, true],
      ['needs a person', { cause: 'needs_person', shutFor: 'released' }, true],
      ['is probed', { cause: 'breaker', probing: true }, true],
      ['is only paced', { cause: 'breaker', pace: { perSecond: 0.001, burst: 1 } }, false],
    ] as const)('what waits in a worker while its source %s is called back: %s', async (_, restriction, isHeld) => {
      const worker = await scene.join();
      const [one, two] = [await scene.start(worker), await scene.start(worker, { source: 'b' })];
      const held = async () => (await scene.store.tasks.recalls(worker, [one.lease, two.lease])).held;
      expect(await held()).toEqual([]);
      await restrict(scene, S, restriction);
      expect(await held()).toEqual(isHeld ? [one.lease] : []);
      scene.advance(5_000);
      if ('shutFor' in restriction && restriction.shutFor === 5_000) expect(await held()).toEqual([]);
    });

    test('a probe is not called back', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', probing: true });
      await scene.enqueue({});
      const [probe] = (await scene.claim(worker)) as [Claimed];
      expect((await scene.store.tasks.recalls(worker, [probe.lease])).held).toEqual([]);
    });

    test('notifies workers when a settlement opens a source, and when one holds it', async () => {
      const worker = await scene.join();
      const news: string[] = [];
      const heard = (what: string) =>
        expect.poll(() => news.some((each) => each === what || each === 'any')).toBe(true);
      const [one, two] = (await startAll(worker, 2)) as [Claimed, Claimed];
      scene.store.upkeep.onNews((each) => news.push(each));
      await scene.settle(one, succeeded(), { source: from(0, { restriction: { cause: 'breaker', shutFor: 5_000 } }) });
      await heard('recall');
      news.splice(0);
      await scene.settle(two, succeeded(), { source: asNew(await revisionOf()) });
      await heard('work');
    });

    test('many sources that open at the same time all open; until then, a claim says that there is more to do', async () => {
      const worker = await scene.join();
      const names = Array.from({ length: 450 }, (_, n) => `s${n}`);
      for (const name of names) await restrict(scene, name, { cause: 'breaker', shutFor: 1_000 });
      await scene.enqueue(...names.map((source) => ({ source })));
      scene.advance(1_000);

      const taken: number[] = [];
      for (let n = 0; n < 10 && taken.length < names.length; n += 1) {
        const { ids, nextDueIn } = await claimOnce(worker, 500);
        taken.push(...ids);
        if (taken.length < names.length) expect(nextDueIn).toBe(0);
      }
      expect(taken).toHaveLength(names.length);
    });

    test.each(['fifo', 'lifo', 'priority', 'weighted_random'] as const)(
      'what a source lets start comes in the order of its queue among all others, also where that is fair: %s',
      async (order) => {
        await scene.store.sources.setUp('default', { order, fair: true });
        const worker = await scene.join();
        await scene.enqueue(...Array(6).fill({ source: 'a' }), ...Array(3).fill({ source: 'b' }));
        await restrict(scene, 'a', { cause: 'breaker', pace: { perSecond: 10, burst: 2 } });
        scene.advance(60_000);
        const taken = await scene.claim(worker, { limit: 9 });
        const given = taken.map(({ source }) => source).join('');
        expect(given.replaceAll('b', '').length).toBe(1);
        expect(given.length).toBe(4);
        scene.advance(60_000);
        expect((await scene.claim(worker)).map(({ source }) => source).join('')).toBe('aa');
      },
    );
  });

  describe('budgets', () => {
    const take = async (worker: number, limit = 100) => {
      const { tasks, nextDueIn } = await scene.store.tasks.claim({
        ...{ worker, limit, capabilities: {}, suspects: 1, alone: true, except: [] },
      });
      return { count: tasks.length, nextDueIn, tasks };
    };

    /** So many tasks that are ready, and need a token to be claimed again. */
    async function needTokens(worker: number, count: number): Promise<void> {
      const claimed = await startAll(worker, count);
      await scene.store.tasks.settle(claimed.map((one) => settlement(one, retryWithToken(), { source: 'any' })));
    }

    test('retries that need a token take one each from a full budget of 20, and then wait for the next', async () => {
      const worker = await scene.join();
      await needTokens(worker, 23);
      expect(await take(worker)).toMatchObject({ count: 20, nextDueIn: 10_000 });
      scene.advance(9_999);
      expect((await take(worker)).count).toBe(0);
      scene.advance(1);
      expect(await take(worker)).toMatchObject({ count: 1, nextDueIn: 10_000 });
      scene.advance(60_000);
      expect((await take(worker)).count).toBe(2);
    });

    test('a retry whose charge was refunded needs no token, whether it is ready by then, due later, or held', async () => {
      const worker = await scene.join();
      await needTokens(worker, 20);
      await take(worker);
      const [ready, later, held, charged] = (await startAll(worker, 4)) as [Claimed, Claimed, Claimed, Claimed];
      const retry = (one: Claimed, after: number) => settlement(one, retryWithToken(after), { source: 'any' });
      await scene.store.tasks.settle([retry(ready, 0), retry(later, 5_000), retry(held, 0), retry(charged, 0)]);
      await scene.move(held.lease.task, { verb: 'hold' });
      expect((await take(worker)).count).toBe(0);

      const refunds = [ready, later, held].map(({ lease: { task, execution } }) => ({ task, execution }));
      expect(await sources().change(S, from(await revisionOf(), { refunds }))).toBe(true);
      expect(idsOf((await take(worker)).tasks)).toEqual([ready.lease.task]);
      await scene.move(held.lease.task, { verb: 'release' });
      scene.advance(5_000);
      const others = idsOf((await take(worker)).tasks).sort((a, b) => a - b);
      expect(others).toEqual([later.lease.task, held.lease.task]);
      expect(await scene.stateOf(charged.lease.task)).toBe('ready');
    });

    test('only those wait that need a token, and they keep their place in the order', async () => {
      const worker = await scene.join();
      await needTokens(worker, 22);
      const ids = idsOf((await take(worker)).tasks);
      const other = await scene.enqueueOne();
      expect(idsOf((await take(worker)).tasks)).toEqual([other]);
      const [left] = await scene.store.records.list({ states: ['ready'], limit: 1 });
      expect(left).toMatchObject({ heldBy: 'budget', heldFor: 10_000 });
      expect(ids).not.toContain(left?.id);
      expect(await scene.claim(worker, { only: [left?.id as number] })).toEqual([]);
    });

    test('a task that took a token needs none for its next retry unless the decision says so', async () => {
      const worker = await scene.join();
      await needTokens(worker, 1);
      const [claimed] = (await take(worker)).tasks;
      await scene.settle(claimed as Claimed, deferredFor(0), { source: 'any' });
      await needTokens(worker, 19);
      expect((await take(worker)).count).toBe(20);
    });

    test('ten successes add a token, whether their source has a state, a limit, or neither', async () => {
      const worker = await scene.join();
      for (const has of ['neither', 'a state', 'a limit']) {
        await needTokens(worker, 21);
        expect((await take(worker)).count).toBe(20);
        if (has === 'a state') await restrict(scene, S);
        if (has === 'a limit') await sources().limit(S, { concurrency: 500 }, { actor: 'eva', origin: 'person' });
        const source = { revision: await revisionOf() };
        const claimed = await startAll(worker, 10, 'quick');
        const answers = await scene.store.tasks.settle(claimed.map((one) => settlement(one, succeeded(), { source })));
        expect(answers.every(({ answer }) => answer === 'settled')).toBe(true);
        expect((await take(worker)).count).toBe(1);
        scene.advance(3_600_000);
      }
    });

    test('a change says what it adds to the budget, which is never more than full', async () => {
      const worker = await scene.join();
      await needTokens(worker, 30);
      expect((await take(worker)).count).toBe(20);
      await sources().change(S, asNew(0, 3));
      expect((await take(worker)).count).toBe(3);
      await sources().change(S, asNew(0, 1_000));
      await needTokens(worker, 30);
      expect((await take(worker)).count).toBe(20);
    });

    test('a budget that is not full is not a state, and is listed with the tokens that are left', async () => {
      const worker = await scene.join();
      await needTokens(worker, 5);
      await take(worker);
      expect(await sources().state(S)).toBeUndefined();
      expect(await scene.store.records.sources()).toMatchObject([{ name: S, tokens: 15, running: 5 }]);
      scene.advance(60_000);
      expect(await scene.store.records.sources()).toEqual([]);
    });

    test.runIf(factory.openSecond)('a restart does not refill a budget', async () => {
      const worker = await scene.join();
      await needTokens(worker, 25);
      await take(worker, 18);
      await scene.openSecond();
      await scene.closeStore();
      expect((await take(worker)).count).toBe(2);
    });
  });

  describe('records', () => {
    test('lists every source with a state, a hold or a limit, and what is known of it', async () => {
      const worker = await scene.join();
      await scene.start(worker, { source: 'b' });
      await restrict(scene, 'b', { cause: 'breaker', shutFor: 9_000, probing: true });
      await restrict(scene, 'evidence');
      await scene.store.sources.hold('h', { actor: 'eva', note: 'moving' }, 60_000);
      scene.advance(1_000);

      expect(await scene.store.records.sources()).toEqual([
        {
          name: 'b',
          running: 1,
          state: {
            revision: await revisionOf('b'),
            memory: 'm',
            age: 1_000,
            restriction: { cause: 'breaker', shutFor: 8_000, probing: true },
            opensIn: 8_000,
          },
        },
        { name: 'evidence', running: 0, state: { revision: await revisionOf('evidence'), memory: 'm', age: 1_000 } },
        {
          name: 'h',
          running: 0,
          hold: { at: scene.now() - 1_000, actor: 'eva', note: 'moving', until: scene.now() + 59_000 },
        },
      ]);
    });

    test.each([
      ['breaker', { cause: 'breaker', shutFor: 5_000 }, 5_000],
      ['rate_limit', { cause: 'rate_limit', shutFor: 5_000 }, 5_000],
      ['needs_person', { cause: 'needs_person', shutFor: 'released' }, undefined],
    ] as const)('says of a ready task that it is held by %s, and until when', async (heldBy, restriction, heldFor) => {
      const id = await scene.enqueueOne();
      await restrict(scene, S, restriction);
      const told = await scene.find(id);
      expect([told.state, told.heldBy, told.heldFor]).toEqual(['ready', heldBy, heldFor]);
      await scene.join();
      scene.advance(5_000);
      if (heldFor !== undefined) expect((await scene.find(id)).heldBy).toBeUndefined();
    });

    test('says that a task waits behind the probe of its source', async () => {
      const worker = await scene.join();
      await restrict(scene, S, { cause: 'breaker', probing: true });
      const [, waiting] = await scene.enqueue({}, {});
      await scene.claim(worker);
      expect(await scene.find(waiting as number)).toMatchObject({ heldBy: 'breaker' });
    });
  });

  async function startAll(worker: number, count: number, type = 'mail'): Promise<readonly Claimed[]> {
    const ids = await scene.enqueue(...Array(count).fill({ type }));
    return scene.claim(worker, { only: ids, limit: count });
  }
}
