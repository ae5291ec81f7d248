import { describe, expect, test } from 'vitest';
import type { Decision, Facts } from '../../../src/failure/decide.ts';
import type { Claimed, HistoryEntry, NewTask, Recovered, Settled, Settlement } from '../../../src/store/store.ts';
import { TRANSITIONS } from '../../../src/task.ts';
import {
  because,
  cancelled,
  deferredFor,
  ended,
  failure,
  handedBack,
  idsOf,
  lost,
  retryIn,
  type Scene,
  type StoreFactory,
  settlement,
  succeeded,
  UNBEGUN,
  useScene,
} from '../scene.ts';

export function promisesOfSettling(factory: StoreFactory): void {
  const scene = useScene(factory);

  describe('where it leads', () => promisesOfStates(scene));
  describe('what it counts', () => promisesOfDeltas(scene));
  describe('many in one call', () => promisesOfBatches(scene));
  describe('when it is refused', () => promisesOfAnswers(scene));
  describe('what it records', () => promisesOfEvidence(scene));
}

function promisesOfStates(scene: Scene): void {
  const decisions: Record<(typeof TRANSITIONS)['running'][number], Decision> = {
    succeeded: succeeded(),
    scheduled: retryIn(5_000),
    ready: handedBack(),
    needs_manual: ended('needs_manual'),
    dead: ended('dead'),
    cancelled: cancelled(),
  };

  test.each(TRANSITIONS.running)('leads a running task to %s', async (state) => {
    const claimed = await scene.start(await scene.join());
    scene.advance(1_000);

    expect(await scene.settle(claimed, decisions[state])).toEqual({ answer: 'settled', state });

    const record = await scene.find(claimed.lease.task);
    expect(record.state).toBe(state);
    expect(record.executions).toBe(1);
    expect(record.running).toBeUndefined();
    const hasEnded = state === 'succeeded' || state === 'dead' || state === 'cancelled';
    expect(record.endedAt).toBe(hasEnded ? scene.now() : undefined);
    expect(record.dueAt).toBe(state === 'scheduled' ? scene.now() + 5_000 : undefined);
  });

  test.each([
    ['that is cut within a character', `${'x'.repeat(1_023)}😀 and more`, 'x'.repeat(1_023)],
    ['with half a character', 'a \ud83d b', 'a \ufffd b'],
    ['with a NUL', 'a \0 b', /^a . b$/s],
  ])('keeps the message of a failure %s, in well-formed text', async (_, message, kept) => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const report = { ranFor: 5, outcome: 'failure' as const, failure: { ...failure(), message }, message };
    expect(await scene.settle(claimed, retryIn(0), { report })).toMatchObject({ answer: 'settled' });

    const { lastFailure } = await scene.claimTask(worker, claimed.lease.task);
    const lastError = lastFailure?.message ?? '';
    expect(lastError).toMatch(kept);
    expect(lastError.isWellFormed()).toBe(true);
  });

  test('makes a task ready at once that is to go on after no time', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    expect(await scene.settle(claimed, retryIn(0))).toEqual({ answer: 'settled', state: 'ready' });
    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task]);
  });

  test('gives a task back when its delay is over, and not before', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    scene.advance(500);
    await scene.settle(claimed, retryIn(60_000));

    scene.advance(59_999);
    expect(await scene.claim(worker)).toEqual([]);
    scene.advance(1);
    expect((await scene.claim(worker)).map(({ lease }) => lease)).toEqual([
      { task: claimed.lease.task, execution: 2, token: expect.not.stringMatching(claimed.lease.token) },
    ]);
  });

  test.each(['succeeded', 'dead', 'cancelled', 'needs_manual'] as const)(
    'gives a task that is %s to nobody',
    async (state) => {
      const worker = await scene.join();
      const id = await scene.taskIn(state);
      scene.advance(30 * 86_400_000);
      await scene.store.tasks.renew(worker, []);

      expect(await scene.claim(worker)).toEqual([]);
      expect(await scene.recover(worker)).toEqual([]);
      expect(await scene.stateOf(id)).toBe(state);
    },
  );

  test('keeps the result of a success', async () => {
    const worker = await scene.join();
    const result = '{"rows":3,"__proto__":{"admin":true}}';
    const [first, second] = [await scene.start(worker), await scene.start(worker)];
    await scene.settle(first, succeeded(), { result });
    await scene.settle(second, succeeded());

    expect((await scene.find(first.lease.task)).result).toBe(result);
    expect((await scene.find(second.lease.task)).result).toBeUndefined();
  });

  test('keeps the reason of the last decision', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(0, 'fs.locked'));
    expect((await scene.find(claimed.lease.task)).reason).toBe('fs.locked');

    await scene.settle(await scene.claimTask(worker, claimed.lease.task), ended('dead', 'http.404'));
    expect((await scene.find(claimed.lease.task)).reason).toBe('http.404');
  });
}

function promisesOfDeltas(scene: Scene): void {
  test('begins no clock with an execution that was handed back before its handler began', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    scene.advance(5_000);
    const report = { ranFor: 0, outcome: 'interruption', message: 'not begun', unbegun: true } as const;
    expect(await scene.settle(claimed, handedBack(), { report })).toMatchObject({ state: 'ready' });
    scene.advance(5_000);

    const again = await scene.claimTask(worker, claimed.lease.task);
    expect(again.facts).toMatchObject({ executions: 2, sinceFirstStartMs: 0 });
  });

  /** Settles one execution after another as decided, one second each, waits as long as was decided, and tells the facts of the next. */
  async function factsAfter(...decisions: readonly Decision[]): Promise<Facts> {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const decision of decisions) {
      const claimed = await scene.claimTask(worker, id);
      scene.advance(1_000);
      await scene.settle(claimed, decision);
      if (decision.next === 'scheduled') scene.advance(decision.after);
    }
    return (await scene.claimTask(worker, id)).facts;
  }

  test('adds up failures by reason', async () => {
    const facts = await factsAfter(
      retryIn(0, 'fs.locked'),
      retryIn(0, 'http.429', 'rate_limited'),
      retryIn(0, 'fs.locked'),
      retryIn(0, 'unknown', 'unknown'),
      retryIn(0, 'fs.locked'),
    );

    expect(facts.executions).toBe(6);
    expect(facts.charged.toSorted((a, b) => b.count - a.count || a.reason.localeCompare(b.reason))).toEqual([
      { reason: 'fs.locked', kind: 'transient', count: 3 },
      { reason: 'http.429', kind: 'rate_limited', count: 1 },
      { reason: 'unknown', kind: 'unknown', count: 1 },
    ]);
  });

  test('adds up the waits after failures of each reason, and after nothing else', async () => {
    const facts = await factsAfter(
      retryIn(2_000, 'fs.locked'),
      retryIn(500, 'http.429', 'rate_limited'),
      deferredFor(7_000),
      retryIn(0, 'unknown', 'unknown'),
      retryIn(3_000, 'fs.locked'),
    );

    expect(facts.charged.toSorted((a, b) => b.count - a.count || a.reason.localeCompare(b.reason))).toEqual([
      { reason: 'fs.locked', kind: 'transient', count: 2, delayMs: 5_000 },
      { reason: 'http.429', kind: 'rate_limited', count: 1, delayMs: 500 },
      { reason: 'unknown', kind: 'unknown', count: 1 },
    ]);
  });

  test('charges the failure that ends a task too', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(0, 'fs.locked'));
    await scene.settle(await scene.claimTask(worker, claimed.lease.task), ended('dead', 'fs.locked'));

    const { charged } = await scene.find(claimed.lease.task);
    expect(charged).toEqual([{ reason: 'fs.locked', kind: 'transient', count: 2 }]);
  });

  test('charges nothing if the decision charges nobody', async () => {
    const facts = await factsAfter(handedBack(), handedBack(), handedBack());
    expect(facts).toMatchObject({
      executions: 4,
      charged: [],
      deferralsInARow: 0,
      recoveriesAgoMs: [],
      lostInARow: 0,
    });
  });

  test('counts deferrals in a row and in all; a charged failure ends the row', async () => {
    expect((await factsAfter(deferredFor(0), deferredFor(0))).deferralsInARow).toBe(2);

    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const decision of [deferredFor(0), deferredFor(0), retryIn(0), deferredFor(0)]) {
      await scene.settle(await scene.claimTask(worker, id), decision);
    }
    expect((await scene.claimTask(worker, id)).facts).toMatchObject({ deferralsInARow: 1, executions: 5 });
    expect((await scene.find(id)).deferrals).toBe(3);
  });

  test('leaves a row of deferrals as it is when nobody is charged, or a recovery', async () => {
    expect((await factsAfter(deferredFor(0), handedBack(), lost('charged'), handedBack())).deferralsInARow).toBe(1);
  });

  test('tells how long ago the first deferral of the row was decided', async () => {
    expect((await factsAfter(retryIn(0))).deferredForMs).toBe(0);
    expect((await factsAfter(deferredFor(0))).deferredForMs).toBe(0);
    expect((await factsAfter(deferredFor(0), deferredFor(0), handedBack())).deferredForMs).toBe(2_000);
    expect((await factsAfter(deferredFor(0), retryIn(0))).deferredForMs).toBe(0);
    expect((await factsAfter(deferredFor(0), retryIn(0), deferredFor(0), deferredFor(0))).deferredForMs).toBe(1_000);
  });

  test('tells how long ago each recovery was charged, and lets that grow with time', async () => {
    const facts = await factsAfter(lost('free'), lost('charged'), handedBack(), lost('charged'));
    expect(facts.recoveriesAgoMs.toSorted((a, b) => a - b)).toEqual([0, 2_000]);

    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, lost('charged'));
    expect((await scene.find(claimed.lease.task)).recoveries).toBe(1);
    scene.advance(72 * 3_600_000);
    expect((await scene.claimTask(worker, claimed.lease.task)).facts.recoveriesAgoMs).toEqual([72 * 3_600_000]);
  });

  test('counts how often a task was lost in a row, until an execution reports anything', async () => {
    expect((await factsAfter(lost('free'))).lostInARow).toBe(1);
    expect((await factsAfter(lost('free'), lost('charged', 2))).lostInARow).toBe(2);
    expect((await factsAfter(lost('free'), lost('free', 2), lost('charged', 3))).lostInARow).toBe(3);
    for (const report of [retryIn(0), deferredFor(0), handedBack()]) {
      expect((await factsAfter(lost('free'), report)).lostInARow).toBe(0);
    }
  });

  test('shows in the record how often a task was lost in a row', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, lost('free', 3));
    expect((await scene.find(claimed.lease.task)).lostInARow).toBe(3);
    await scene.settle(await scene.claimTask(worker, claimed.lease.task), retryIn(5_000));
    expect((await scene.find(claimed.lease.task)).lostInARow).toBe(0);
  });

  test('tells how long ago the first execution started: not when the task was enqueued, nor since its last retry', async () => {
    expect((await factsAfter()).sinceFirstStartMs).toBe(0);
    expect((await factsAfter(handedBack())).sinceFirstStartMs).toBe(1_000);

    const worker = await scene.join();
    const id = await scene.enqueueOne();
    scene.advance(50_000);
    await scene.settle(await scene.claimTask(worker, id), retryIn(10_000));
    scene.advance(10_000);
    expect((await scene.claimTask(worker, id)).facts.sinceFirstStartMs).toBe(10_000);
  });

  test('tells how much time is left until the deadline', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker, { deadline: scene.now() + 100_000 });
    expect(claimed.facts.untilDeadlineMs).toBe(100_000);
    await scene.settle(claimed, retryIn(40_000));
    scene.advance(40_000);
    const again = await scene.claimTask(worker, claimed.lease.task);
    expect(again.facts.untilDeadlineMs).toBe(60_000);
    expect((await scene.start(worker)).facts).not.toHaveProperty('untilDeadlineMs');
  });

  test('keeps a count for each of many tasks settled in one batch', async () => {
    const worker = await scene.join();
    await scene.enqueue(...Array.from({ length: 200 }, () => ({})));
    const claimed = await scene.claim(worker, { limit: 200 });
    const answers = await scene.store.tasks.settle(
      claimed.map((each, n) => settlement(each, retryIn(0, n % 2 === 0 ? 'even' : 'odd'))),
    );

    expect(new Set(answers.map(({ answer }) => answer))).toEqual(new Set(['settled']));
    const again = await scene.claim(worker, { limit: 200 });
    expect(again.map(({ facts }) => facts.charged.map(({ reason }) => reason))).toEqual(
      claimed.map((_, n) => [n % 2 === 0 ? 'even' : 'odd']),
    );
  });
}

function promisesOfBatches(scene: Scene): void {
  const jitter = (roll: number) => ({ low: 0, high: 9_000, roll });
  const explained = (decision: Decision, roll?: number, density?: number): Decision => ({
    ...decision,
    because: because('retry', {
      text: `With "roll":${roll} of "roll": \\ 0.5`,
      ...(roll !== undefined && { jitter: { ...jitter(roll), ...(density !== undefined && { density }) } }),
    }),
  });
  const told = (name: string, message = `${name} failed`): Partial<Settlement> => ({
    report: { ranFor: 7, outcome: 'failure', failure: { ...failure(), message, evidence: { rule: 'message' } } },
  });
  /** What may end an execution: each of two tasks, the second of them for the second time. */
  const endings: readonly (readonly [Decision, Partial<Settlement>?, Partial<NewTask>?])[] = [
    [retryIn(0)],
    [retryIn(0), {}, { priority: 5 }],
    [retryIn(1_500)],
    [retryIn(0, 'http.503')],
    [retryIn(0, 'http.503', 'unknown')],
    [explained(retryIn(2_001), 0.25)],
    [explained(retryIn(2_001), 0.75)],
    [explained(retryIn(0), 1e-9, 0.5)],
    [explained(retryIn(0))],
    [retryIn(0), told('"one"')],
    [retryIn(0), told('"one"')],
    [retryIn(0), told('two {,} \\ \u{1f600} NULL')],
    [retryIn(0), { report: { ranFor: 3, outcome: 'failure', failure: failure(), message: 'A note, and {"quotes"}.' } }],
    [retryIn(0), {}, { unique: { key: 'first', while: 'waiting', onConflict: 'ignore' } }],
    [retryIn(500), {}, { unique: { key: 'second', while: 'unfinished', onConflict: 'ignore' } }],
    [{ ...retryIn(0), needsToken: true } as Decision],
    [{ ...retryIn(0), verdict: 'fs.locked' } as Decision],
    [deferredFor(3_000)],
    [handedBack()],
    [handedBack(), { report: UNBEGUN }],
    [retryIn(0), { source: 'any' }],
  ];

  test.each(['fifo', 'lifo', 'priority'] as const)(
    'writes many settlements of one call as each alone, in a %s queue',
    async (order) => {
      const worker = await scene.join();
      const queues = ['alone', 'together'] as const;
      const ids = { alone: [] as number[], together: [] as number[] };
      for (const queue of queues) await scene.store.sources.setUp(queue, { order });
      for (const [, , task] of endings) {
        for (const queue of queues) {
          const unique = task?.unique && { ...task.unique, key: `${queue} ${task.unique.key}` };
          ids[queue].push(await scene.enqueueOne({ queue, ...task, ...(unique && { unique }) }));
        }
        scene.advance(10);
      }
      const claimAll = async (queue: (typeof queues)[number]) => {
        const claimed = await scene.claim(worker, { queues: [queue], limit: 100 });
        return claimed.map((each) => ({ claimed: each, n: ids[queue].indexOf(each.lease.task) }));
      };
      const settlementOf = ({ claimed, n }: { claimed: Pick<Claimed, 'lease' | 'revision'>; n: number }) => {
        const [decision, more] = endings[n] as (typeof endings)[number];
        return settlement(claimed, decision, more);
      };

      for (let time = 1; time <= 3; time += 1) {
        const [alone, together] = [await claimAll('alone'), await claimAll('together')];
        expect(together.map(({ n }) => n)).toEqual(alone.map(({ n }) => n));
        expect(together.map(({ claimed: { facts, lastFailure } }) => ({ facts, lastFailure }))).toEqual(
          alone.map(({ claimed: { facts, lastFailure } }) => ({ facts, lastFailure })),
        );
        expect(alone).toHaveLength(endings.length);
        scene.advance(100);
        const answers: Settled[] = [];
        for (const each of alone) answers.push(...(await scene.store.tasks.settle([settlementOf(each)])));
        expect(await scene.store.tasks.settle(together.map(settlementOf))).toEqual(answers);
        scene.advance(10_000);
      }

      for (const [n, [decision, more]] of endings.entries()) {
        const [alone, together] = [ids.alone[n] as number, ids.together[n] as number];
        const { id: _, queue: __, unique: ___, ...record } = await scene.find(together);
        expect(await scene.find(alone)).toMatchObject(record);
        const history = await scene.store.records.history(together);
        expect(await scene.store.records.history(alone)).toEqual(history);
        expect(history).toHaveLength(3);
        for (const entry of history) {
          expect(entry).toMatchObject({
            because: decision.because,
            outcome: settlementOf({ claimed: HELD, n }).report.outcome,
          });
          if (more?.report?.message) expect(entry).toMatchObject({ message: more.report.message });
          if (more?.report?.failure) expect(entry).toMatchObject({ failure: more.report.failure });
        }
      }
    },
  );
}

/** Of a settlement whose lease does not matter. */
const HELD = { lease: { task: 0, execution: 0, token: '' }, revision: 0 };

function promisesOfAnswers(scene: Scene): void {
  test('answers `changed` with fresh facts and revision after a cancel was requested, and writes nothing', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.move(claimed.lease.task, { verb: 'cancel' });
    scene.advance(2_000);

    const answer = await scene.settle(claimed, retryIn(5_000));

    expect(answer).toEqual({
      answer: 'changed',
      revision: expect.any(Number),
      facts: { ...claimed.facts, cancelRequested: true, sinceFirstStartMs: 2_000 },
    });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ state: 'running', charged: [] });

    const revision = answer.answer === 'changed' ? answer.revision : claimed.revision;
    expect(revision).not.toBe(claimed.revision);
    expect(await scene.settle({ ...claimed, revision }, cancelled())).toEqual({
      answer: 'settled',
      state: 'cancelled',
    });
  });

  test('writes a success whatever the revision: work that was done is done', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.move(claimed.lease.task, { verb: 'cancel' });

    expect(await scene.settle(claimed, succeeded(), { result: '1' })).toEqual({
      answer: 'settled',
      state: 'succeeded',
    });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ state: 'succeeded', result: '1' });
  });

  const repeated: readonly [string, Decision][] = [
    ['a success', succeeded()],
    ['a retry', retryIn(60_000)],
    ['a retry at once', retryIn(0)],
    ['a deferral', deferredFor(60_000)],
    ['a task handed back', handedBack()],
    ['an end', ended('dead')],
    ['a question to a person', ended('needs_manual')],
  ];
  test.each(repeated)('answers `already` to a repeated settlement and counts it once: %s', async (_, decision) => {
    const claimed = await scene.start(await scene.join());
    await scene.settle(claimed, decision);
    const record = await scene.find(claimed.lease.task);
    const history = await scene.store.records.history(claimed.lease.task);

    expect(await scene.settle(claimed, decision)).toEqual({ answer: 'already' });

    expect(await scene.find(claimed.lease.task)).toEqual(record);
    expect(await scene.store.records.history(claimed.lease.task)).toEqual(history);
  });

  test('writes the other successes of a claim when one was written before, and one is lost', async () => {
    const worker = await scene.join();
    await scene.enqueue(...Array.from({ length: 10 }, () => ({})));
    const claimed = await scene.claim(worker);
    const [, , early] = claimed as [Claimed, Claimed, Claimed];
    await scene.settle(early, succeeded(), { result: '"early"' });
    const withWrongToken = (one: Claimed, n: number) =>
      n === 5 ? { ...one, lease: { ...one.lease, token: 'of another lease' } } : one;

    const answers = await scene.store.tasks.settle(
      claimed.map(withWrongToken).map((one, n) => settlement(one, succeeded(), n === 7 ? { result: '7' } : {})),
    );

    expect(answers.map(({ answer }) => answer)).toEqual(
      claimed.map((_, n) => (n === 2 ? 'already' : n === 5 ? 'stale' : 'settled')),
    );
    const records = await Promise.all(claimed.map(({ lease }) => scene.find(lease.task)));
    expect(records.map(({ state, result }) => [state, result])).toEqual(
      claimed.map((_, n) => [n === 5 ? 'running' : 'succeeded', n === 2 ? '"early"' : n === 7 ? '7' : undefined]),
    );
  });

  test('answers `already` within one batch', async () => {
    const claimed = await scene.start(await scene.join());
    const same = settlement(claimed, retryIn(1_000));
    const answers = await scene.store.tasks.settle([same, same]);

    expect(answers).toEqual([{ answer: 'settled', state: 'scheduled' }, { answer: 'already' }]);
    expect((await scene.find(claimed.lease.task)).charged).toMatchObject([{ count: 1 }]);
  });

  test('answers `already` to a repeated failure although the task runs again by now', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(0));
    const again = await scene.claimTask(worker, claimed.lease.task);

    expect(await scene.settle(claimed, retryIn(0))).toEqual({ answer: 'already' });
    expect(await scene.settle(again, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });

  test('answers `stale` to a wrong token, a wrong execution or an unknown task, and changes nothing', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const before = await scene.find(claimed.lease.task);
    const { lease } = claimed;

    const wrong = [
      { ...lease, token: 'somebody-elses' },
      { ...lease, execution: lease.execution + 1 },
      { ...lease, execution: lease.execution - 1 },
      { ...lease, task: 999_999 },
    ];
    const answers = await scene.store.tasks.settle(
      wrong.map((each) => settlement({ ...claimed, lease: each }, ended('dead'))),
    );

    expect(answers).toEqual(wrong.map(() => ({ answer: 'stale' })));
    expect(await scene.find(lease.task)).toEqual(before);
    expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });

  test('takes no other task’s token for its own', async () => {
    const worker = await scene.join();
    const [one, other] = [await scene.start(worker), await scene.start(worker)];
    const mixed = { ...one, lease: { ...one.lease, token: other.lease.token } };

    expect(await scene.settle(mixed, succeeded())).toEqual({ answer: 'stale' });
    expect(await scene.stateOf(one.lease.task)).toBe('running');
  });

  test('answers each row of a batch for itself, in their order', async () => {
    const worker = await scene.join();
    const [done, retried, cancelling, gone, finished] = [
      await scene.start(worker),
      await scene.start(worker),
      await scene.start(worker),
      await scene.start(worker),
      await scene.start(worker),
    ];
    await scene.settle(done, succeeded());
    await scene.move(cancelling.lease.task, { verb: 'cancel' });

    const answers = await scene.store.tasks.settle([
      settlement({ ...gone, lease: { ...gone.lease, token: 'wrong' } }, succeeded()),
      settlement(cancelling, retryIn(5)),
      settlement(done, succeeded()),
      settlement(retried, retryIn(5_000)),
      settlement(finished, succeeded(), { result: '[]' }),
    ]);

    expect(answers.map(({ answer }) => answer)).toEqual(['stale', 'changed', 'already', 'settled', 'settled']);
    expect(await scene.stateOf(gone.lease.task)).toBe('running');
    expect(await scene.stateOf(cancelling.lease.task)).toBe('running');
    expect(await scene.stateOf(retried.lease.task)).toBe('scheduled');
    expect(await scene.find(finished.lease.task)).toMatchObject({ state: 'succeeded', result: '[]' });
  });

  test('takes an empty batch', async () => {
    expect(await scene.store.tasks.settle([])).toEqual([]);
  });

  test('accepts the outcome of a worker whose lease ran out if no worker took the task over', async () => {
    const claimed = await scene.start(await scene.join());
    scene.advance(3_600_000);
    expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
  });

  test.runIf(scene.hasSecond)('is the same through another process', async () => {
    const second = await scene.openSecond();
    const claimed = await scene.start(await scene.join());
    await second.tasks.move([claimed.lease.task], { actor: 'maria', verb: 'cancel' });

    expect((await scene.settle(claimed, retryIn(5))).answer).toBe('changed');
    expect(await second.tasks.settle([settlement(claimed, succeeded())])).toEqual([
      { answer: 'settled', state: 'succeeded' },
    ]);
    expect(await scene.settle(claimed, succeeded())).toEqual({ answer: 'already' });
  });

  test.runIf(scene.hasSecond)('writes one of two settlements that come at the same time', async () => {
    const second = await scene.openSecond();
    const claimed = await scene.start(await scene.join());
    const one = settlement(claimed, retryIn(60_000));

    const answers = await Promise.all([scene.store.tasks.settle([one]), second.tasks.settle([one])]);

    expect(
      answers
        .flat()
        .map(({ answer }) => answer)
        .toSorted(),
    ).toEqual(['already', 'settled']);
    expect(await scene.find(claimed.lease.task)).toMatchObject({ charged: [{ count: 1 }] });
  });

  test('a worker that settles and claims in one turn can claim what it settled', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const [next] = await scene.enqueue({});

    const [answer, claim] = await Promise.all([scene.settle(claimed, succeeded()), scene.claim(worker)]);

    expect(answer).toEqual({ answer: 'settled', state: 'succeeded' });
    expect(idsOf(claim)).toEqual([next]);
  });
}

function promisesOfEvidence(scene: Scene): void {
  test('costs no row of history when a task succeeds the first time', async () => {
    const claimed = await scene.start(await scene.join());
    await scene.settle(claimed, succeeded());
    expect(await scene.store.records.history(claimed.lease.task)).toEqual([]);
  });

  test('keeps the stack and the causes of each failure, also of many alike', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    const told = [1, 2, 3].map((n) => ({
      ...failure(),
      message: `order ${n}`,
      stack: 'save (/app/order.ts:1:2)\nmain (/app/main.ts:1:1)',
      causes: [
        { path: 'cause', name: 'Error', message: `row ${n}`, code: 'EPIPE', stack: 'write (/app/db.ts:3:4)' },
        { path: 'errors.0', name: 'Error', message: `"\u001b[2J ${n}` },
      ],
    }));
    let running = claimed;
    for (const failed of told) {
      const report = { ranFor: 5, outcome: 'failure' as const, failure: failed };
      await scene.settle(running, retryIn(0), { report });
      running = await scene.claimTask(worker, claimed.lease.task);
    }
    const history = await scene.store.records.history(claimed.lease.task);
    expect(history.map((entry) => entry.kind === 'execution' && entry.failure)).toEqual(told);
  });

  test('records a failed execution whole: times, worker, failure, decision, and its because', async () => {
    const worker = await scene.join('alice');
    const claimed = await scene.start(worker);
    const startedAt = scene.now();
    const why = because('retry', {
      rule: 'fs.*',
      count: 1,
      limit: 5,
      formula: 'exponential(1s), retry 1',
      jitter: { low: 900, high: 1_100, roll: 0.25, density: 0.005 },
      text: 'Because “so” — 🙂.',
    });
    const told = {
      ...failure('fs.locked'),
      fault: 'source' as const,
      ambiguous: true,
      retryAfterMs: 0,
      code: 'EBUSY',
      message: 'line 1\nline 2 "quoted" 🙂',
    };
    scene.advance(1_500);
    await scene.settle(claimed, { ...retryIn(950), because: why } as Decision, {
      report: { ranFor: 1_500, outcome: 'failure', failure: told, message: 'a note' },
    });

    expect(await scene.store.records.history(claimed.lease.task)).toEqual([
      {
        kind: 'execution',
        execution: 1,
        worker: 'alice',
        startedAt,
        endedAt: startedAt + 1_500,
        outcome: 'failure',
        next: 'scheduled',
        after: 950,
        charge: 'task',
        failure: told,
        message: 'a note',
        because: why,
        late: false,
      },
    ]);
  });

  test('records every eventful execution, oldest first', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    const decisions = [retryIn(0), deferredFor(0), handedBack(), lost('charged'), ended('needs_manual')];
    for (const decision of decisions) {
      await scene.settle(await scene.claimTask(worker, id), decision);
      scene.advance(10);
    }

    expect(await scene.store.records.history(id)).toMatchObject([
      { execution: 1, outcome: 'failure', next: 'scheduled', charge: 'task' },
      { execution: 2, outcome: 'deferral', next: 'scheduled', charge: 'deferrals', message: 'Later.' },
      { execution: 3, outcome: 'interruption', next: 'scheduled', charge: 'nobody' },
      { execution: 4, outcome: 'loss', next: 'scheduled', charge: 'recoveries' },
      { execution: 5, outcome: 'failure', next: 'needs_manual', charge: 'task' },
    ]);
  });

  test('keeps a success with a note', async () => {
    const claimed = await scene.start(await scene.join());
    await scene.settle(claimed, succeeded(), {
      report: { ranFor: 1, outcome: 'success', message: 'Its result could not be kept.' },
    });
    expect(await scene.store.records.history(claimed.lease.task)).toMatchObject([
      { outcome: 'success', next: 'succeeded', message: 'Its result could not be kept.', late: false },
    ]);
  });

  test('keeps what a lost worker reported as late evidence', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const claimed = await scene.start(alice);
    await scene.store.tasks.leave(alice);
    const [taken] = await scene.recover(bob);

    const late = { ranFor: 9_000, outcome: 'failure', failure: failure('http.503'), message: 'much later' };
    expect(await scene.settle(claimed, retryIn(5, 'http.503'), { report: late })).toEqual({ answer: 'stale' });

    const evidence = await lateEntries(claimed.lease.task);
    expect(evidence).toMatchObject([
      { execution: 1, outcome: 'failure', failure: failure('http.503'), message: 'much later', late: true },
    ]);
    if (taken === undefined) throw new Error('Nothing was taken over.');
    expect(await scene.settle(taken, lost('free'))).toEqual({ answer: 'settled', state: 'ready' });
    expect(await lateEntries(claimed.lease.task)).toEqual(evidence);
  });

  test('keeps a late success as evidence, and does not apply it, if the task runs again', async () => {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const claimed = await scene.start(alice);
    await scene.store.tasks.leave(alice);
    const [taken] = (await scene.recover(bob)) as [Recovered];
    await scene.settle(taken, lost('free'));
    await scene.claimTask(bob, claimed.lease.task);

    expect(await scene.settle(claimed, succeeded(), { result: '"late"' })).toEqual({ answer: 'stale' });

    expect(await scene.find(claimed.lease.task)).not.toHaveProperty('result');
    expect(await scene.stateOf(claimed.lease.task)).toBe('running');
    expect(await lateEntries(claimed.lease.task)).toMatchObject([{ outcome: 'success', late: true }]);
  });

  async function lateEntries(id: number): Promise<readonly HistoryEntry[]> {
    const history = await scene.store.records.history(id);
    return history.filter((entry) => entry.kind === 'execution' && entry.late);
  }
}
