import { describe, expect, test } from 'vitest';
import type { NewTask } from '../../../src/store/store.ts';
import type { TaskState, UniqueConflict, UniqueScope } from '../../../src/task.ts';
import {
  deferredFor,
  ended,
  handedBack,
  idsOf,
  lost,
  newTask,
  retryIn,
  type Scene,
  type StoreFactory,
  settlement,
  succeeded,
  useScene,
} from '../scene.ts';

export function promisesOfUniqueKeys(factory: StoreFactory): void {
  const scene = useScene(factory);

  describe('while unfinished', () => promisesWhileUnfinished(scene));
  describe('while waiting', () => promisesWhileWaiting(scene));
  describe('replace', () => promisesOfReplacing(scene));
  describe('reject', () => promisesOfRejecting(scene));
  describe('an operator', () => promisesToOperators(scene));
  describe('for a time', () => promisesForATime(scene));
  describe('amending', () => promisesOfAmending(scene));

  test('are kept in the record, and leave no trace in that of a task without one', async () => {
    const [id, other] = await scene.enqueue(unique('waiting'), {});

    expect((await scene.find(id as number)).unique).toEqual({ key: 'u', while: 'waiting' });
    expect(Object.keys(await scene.find(other as number))).not.toContain('unique');
  });

  test('unique keys belong to a type, and are independent of keys', async () => {
    const receipts = await scene.store.tasks.enqueue([
      newTask(unique('unfinished', 'reject')),
      newTask({ ...unique('unfinished', 'reject'), type: 'other' }),
      newTask({ key: 'u' }),
      newTask({ unique: { key: 'v', while: 'unfinished', onConflict: 'reject' } }),
    ]);

    expect(receipts.map(({ created }) => created)).toEqual([true, true, true, true]);
  });

  test('are checked only if the key is new: the same enqueue again has the same receipt', async () => {
    const again = { ...unique('waiting', 'replace'), key: 'k' };
    const first = await scene.enqueueOne(again);

    expect(await enqueue(scene, again)).toMatchObject({ id: first, created: false });
    await scene.enqueueOne(unique('waiting', 'replace'));
    expect(await enqueue(scene, again)).toMatchObject({ id: first, created: false });
    expect(await scene.stateOf(first)).toBe('cancelled');
  });

  test('give ids that rise also where a key of one that was not recorded comes again', async () => {
    const unique = { key: 'u1', while: 'unfinished', onConflict: 'ignore' } as const;
    await scene.enqueue({ unique });
    const [known, ...ids] = await scene.enqueue({ unique, key: 'k2' }, { key: 'k2' }, { key: 'k1' });
    expect(ids).toEqual(ids.toSorted((a, b) => a - b));
    expect(ids).not.toContain(known);
  });

  test('leave the key of a task that was not recorded unused', async () => {
    const worker = await scene.join();
    const first = await scene.start(worker, unique('unfinished'));
    const given = { ...unique('unfinished'), key: 'k' };
    expect(await enqueue(scene, given)).toMatchObject({ id: first.lease.task, created: false });
    await scene.settle(first, succeeded());

    expect(await enqueue(scene, given)).toMatchObject({ created: true });
  });

  test('let one task through of many that are enqueued at the same time', async () => {
    const calls = Array.from({ length: 20 }, () => scene.store.tasks.enqueue([newTask(unique('unfinished'))]));
    const receipts = (await Promise.all(calls)).flat();

    expect(receipts.filter(({ created }) => created)).toHaveLength(1);
    expect(new Set(receipts.map(({ id }) => id)).size).toBe(1);
  });

  test('meet within one batch as they do one after the other', async () => {
    const receipts = await scene.store.tasks.enqueue([
      newTask({ ...unique('unfinished'), payload: '1' }),
      newTask({ payload: 'between' }),
      newTask({ ...unique('unfinished', 'ignore'), payload: '2' }),
      newTask({ ...unique('unfinished', 'replace'), payload: '3' }),
      newTask({ ...unique('unfinished', 'replace'), payload: '4' }),
    ]);

    const [first, between, , third, fourth] = receipts.map(({ id }) => id);
    expect(receipts).toEqual([
      { id: first, created: true },
      { id: between, created: true },
      { id: first, created: false, state: 'cancelled' },
      { id: third, created: true, replaced: first },
      { id: fourth, created: true, replaced: third },
    ]);
    const claimed = await scene.claim(await scene.join());
    expect(claimed.map(({ payload }) => payload)).toEqual(['between', '4']);
  });

  test.runIf(factory.openSecond)('are one for all processes', async () => {
    const second = await scene.openSecond();
    const id = await scene.enqueueOne(unique('unfinished'));

    expect(await second.tasks.enqueue([newTask(unique('unfinished'))])).toMatchObject([{ id, created: false }]);
  });
}

function unique(scope: UniqueScope, onConflict: UniqueConflict = 'ignore'): Partial<NewTask> {
  return { unique: { key: 'u', while: scope, onConflict } };
}

async function enqueue(scene: Scene, task: Partial<NewTask>) {
  const [receipt] = await scene.store.tasks.enqueue([newTask(task)]);
  return receipt;
}

/** A task with the unique key, brought to this state. */
async function taskIn(
  scene: Scene,
  state: TaskState,
  scope: UniqueScope,
  task: Partial<NewTask> = unique(scope),
): Promise<number> {
  if (state === 'scheduled') return scene.enqueueOne({ ...task, delay: 60_000 });
  const id = await scene.enqueueOne(task);
  if (state === 'held') await scene.move(id, { verb: 'hold' });
  else if (state === 'cancelled') await scene.move(id, { verb: 'cancel' });
  else if (state !== 'ready') {
    const claimed = await scene.claimTask(await scene.join('stager'), id);
    if (state === 'succeeded') await scene.settle(claimed, succeeded());
    else if (state !== 'running') await scene.settle(claimed, ended(state));
  }
  expect(await scene.stateOf(id)).toBe(state);
  return id;
}

/** A receipt says in which state the existing task is. */
function shown(state: TaskState) {
  return state === 'ready' ? expect.stringMatching(/^(scheduled|ready)$/) : state;
}

const ENDED: readonly TaskState[] = ['succeeded', 'dead', 'cancelled'];
const WAITING: readonly TaskState[] = ['scheduled', 'ready', 'held'];

function promisesWhileUnfinished(scene: Scene): void {
  test.each<TaskState>([...WAITING, 'running', 'needs_manual'])('a task that is %s has its key', async (state) => {
    const id = await taskIn(scene, state, 'unfinished');
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id, created: false, state: shown(state) });
    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id, created: false, state: shown(state) });
  });

  test.each(ENDED)('a task that is %s has freed it', async (state) => {
    await taskIn(scene, state, 'unfinished');
    expect(await enqueue(scene, unique('unfinished', 'reject'))).toMatchObject({ created: true });
  });

  test('has it over retries, deferrals and recoveries', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne(unique('unfinished'));
    for (const decision of [retryIn(0), deferredFor(0), handedBack(), lost('free')]) {
      const claimed = await scene.claimTask(worker, id);
      await scene.settle(claimed, decision);
      expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id, created: false });
    }
    await scene.claimTask(worker, id);
    const [recovered] = await scene.recoverAfterSilence(await scene.join('bob'));
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id, created: false });
    await scene.settle(recovered as NonNullable<typeof recovered>, ended('dead'));
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
  });

  test('a success with a result, in one batch with others, frees it', async () => {
    const worker = await scene.join();
    await scene.enqueue({}, unique('unfinished'), {});
    const claimed = await scene.claim(worker);
    const answers = await scene.store.tasks.settle(
      claimed.map((one) => settlement(one, succeeded(), { result: '{"a":1}' })),
    );

    expect(answers).toEqual(Array(3).fill({ answer: 'settled', state: 'succeeded' }));
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
    for (const { lease } of claimed) expect(await scene.find(lease.task)).toMatchObject({ result: '{"a":1}' });
  });

  test('a task that expired while it waited has freed it once that is settled', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ ...unique('unfinished'), deadline: scene.now() + 1_000 });
    scene.advance(1_001);
    const [expired] = await scene.recover(worker);
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id, created: false });

    await scene.settle(expired as NonNullable<typeof expired>, ended('dead', 'deadline.passed'));
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
  });
}

function promisesWhileWaiting(scene: Scene): void {
  test.each(WAITING)('a task that is %s has its key', async (state) => {
    const id = await taskIn(scene, state, 'waiting');
    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id, created: false });
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id, created: false });
  });

  test.each<TaskState>(['running', 'needs_manual', ...ENDED])('a task that is %s has freed it', async (state) => {
    await taskIn(scene, state, 'waiting');
    expect(await enqueue(scene, unique('waiting', 'reject'))).toMatchObject({ created: true });
  });

  test('lets one run and one wait, and nothing more wait', async () => {
    const running = await scene.start(await scene.join(), unique('waiting'));
    const next = await scene.enqueueOne(unique('waiting'));

    expect(next).not.toBe(running.lease.task);
    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id: next, created: false });
    expect(await scene.settle(running, succeeded())).toEqual({ answer: 'settled', state: 'succeeded' });
    expect(await scene.stateOf(next)).toBe('ready');
  });

  test('a retry that finds its key free has it again', async () => {
    const claimed = await scene.start(await scene.join(), unique('waiting'));
    expect(await scene.settle(claimed, retryIn(5_000))).toEqual({ answer: 'settled', state: 'scheduled' });
    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id: claimed.lease.task, created: false });
  });

  test.each([
    ['a retry', retryIn(5_000)],
    ['a retry at once', retryIn(0)],
    ['a deferral', deferredFor(1_000)],
    ['a task that was handed back', handedBack()],
    ['a task that was lost with its worker', lost('free')],
  ])('%s that finds a newer task waiting is superseded by it', async (_, decision) => {
    const worker = await scene.join();
    const old = await scene.start(worker, unique('waiting'));
    const next = await scene.enqueueOne(unique('waiting'));

    expect(await scene.settle(old, decision)).toEqual({ answer: 'settled', state: 'cancelled' });

    const { task } = old.lease;
    expect(await scene.find(task)).toMatchObject({ state: 'cancelled', reason: 'unique.superseded', executions: 1 });
    expect(await scene.store.records.history(task)).toMatchObject([
      { kind: 'execution', next: 'scheduled', because: decision.because },
      {
        kind: 'action',
        actor: 'holdfast',
        verb: 'supersede',
        note: expect.stringContaining(`#${next}`),
        from: 'running',
        to: 'cancelled',
      },
    ]);
    expect(await scene.settle(old, decision)).toEqual({ answer: 'already' });
    scene.advance(3_600_000);
    await scene.store.tasks.renew(worker, []);
    expect(idsOf(await scene.claim(worker))).toEqual([next]);
  });

  test('a superseded retry stops nothing else of its batch', async () => {
    const worker = await scene.join();
    const [old, other, third] = await scene.enqueue(unique('waiting'), {}, {});
    const claimed = await scene.claim(worker);
    await scene.enqueueOne(unique('waiting'));

    const answers = await scene.store.tasks.settle(claimed.map((one) => settlement(one, retryIn(1_000))));

    expect(answers.map((answer) => answer.answer === 'settled' && answer.state)).toEqual([
      'cancelled',
      'scheduled',
      'scheduled',
    ]);
    expect(idsOf(claimed)).toEqual([old, other, third]);
  });

  test('of two that are to be retried in one batch the first waits and the second gives way', async () => {
    const worker = await scene.join();
    const first = await scene.start(worker, unique('waiting'));
    const second = await scene.start(worker, unique('waiting'));

    const answers = await scene.store.tasks.settle([settlement(first, retryIn(0)), settlement(second, retryIn(0))]);

    expect(answers).toEqual([
      { answer: 'settled', state: 'ready' },
      { answer: 'settled', state: 'cancelled' },
    ]);
  });

  test('what ended while a newer one waits has simply ended', async () => {
    const worker = await scene.join();
    for (const decision of [succeeded(), ended('dead'), ended('needs_manual')]) {
      const old = await scene.start(worker, unique('waiting'));
      const next = await scene.enqueueOne(unique('waiting'));
      expect(await scene.settle(old, decision)).toEqual({ answer: 'settled', state: decision.next });
      await scene.settle(await scene.claimTask(worker, next), succeeded());
    }
  });

  test('a task whose deadline passed has freed it when that is looked into', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ ...unique('waiting'), deadline: scene.now() + 1_000 });
    scene.advance(1_001);
    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id, created: false });
    const [expired] = await scene.recover(worker);

    expect(await enqueue(scene, unique('waiting'))).toMatchObject({ created: true });
    expect(await scene.settle(expired as NonNullable<typeof expired>, ended('dead'))).toMatchObject({ state: 'dead' });
  });
}

function promisesOfReplacing(scene: Scene): void {
  test.each(['scheduled', 'ready'] as const)('cancels the one that is %s, in favour of the new one', async (state) => {
    const worker = await scene.join();
    const old = await taskIn(scene, state, 'unfinished');
    const receipt = await enqueue(scene, { ...unique('unfinished', 'replace'), payload: '"new"', priority: 7 });

    expect(receipt).toEqual({ id: expect.any(Number), created: true, replaced: old });
    const { id } = receipt as NonNullable<typeof receipt>;
    expect(await scene.find(old)).toMatchObject({
      state: 'cancelled',
      reason: 'unique.superseded',
      endedAt: scene.now(),
    });
    expect(await scene.store.records.history(old)).toMatchObject([
      { kind: 'action', actor: 'holdfast', verb: 'supersede', note: expect.stringContaining(`#${id}`), from: state },
    ]);
    scene.advance(60_000);
    await scene.store.tasks.renew(worker, []);
    expect(await scene.claim(worker)).toMatchObject([{ lease: { task: id }, payload: '"new"', priority: 7 }]);
  });

  test('begins with counts of its own: the failures of the other input are not its', async () => {
    const worker = await scene.join();
    await scene.settle(await scene.start(worker, unique('unfinished')), retryIn(60_000));
    const id = await scene.enqueueOne(unique('unfinished', 'replace'));

    const claimed = await scene.claimTask(worker, id);
    expect(claimed.lease.execution).toBe(1);
    expect(claimed.facts.charged).toEqual([]);
  });

  test('keeps work aside that an operator holds: the new one is held, and released with its own time', async () => {
    const old = await taskIn(scene, 'held', 'waiting');
    const id = await scene.enqueueOne({ ...unique('waiting', 'replace'), delay: 60_000 });

    expect(await scene.stateOf(old)).toBe('cancelled');
    expect(await scene.stateOf(id)).toBe('held');
    expect(await scene.store.records.history(id)).toMatchObject([
      {
        kind: 'action',
        actor: 'holdfast',
        verb: 'hold',
        note: expect.stringContaining(`#${old}`),
        from: 'scheduled',
        to: 'held',
      },
    ]);
    expect(await scene.move(id, { verb: 'release' })).toMatchObject({ moved: true, to: 'scheduled' });
    expect(await scene.find(id)).toMatchObject({ dueAt: scene.now() + 60_000 });
  });

  test.each(['running', 'needs_manual'] as const)(
    'leaves the one that is %s as it is, and answers it',
    async (state) => {
      const id = await taskIn(scene, state, 'unfinished');
      expect(await enqueue(scene, unique('unfinished', 'replace'))).toMatchObject({ id, created: false });
      expect(await scene.stateOf(id)).toBe(state);
    },
  );
}

function promisesOfAmending(scene: Scene): void {
  const amend = (id: number, before: string, after: string) => scene.store.tasks.amend(id, before, after);

  test.each(WAITING)('changes the payload of a task that is %s, if it is the one that was read', async (state) => {
    const id = await taskIn(scene, state, 'unfinished', { ...unique('unfinished'), payload: '1' });
    expect(await amend(id, '1', '2')).toBe(true);
    expect(await amend(id, '1', '3')).toBe(false);
    expect(await scene.find(id)).toMatchObject({ payload: '2', state: shown(state) });
  });

  test.each<TaskState>(['running', 'needs_manual', ...ENDED])('does not change a task that is %s', async (state) => {
    const id = await taskIn(scene, state, 'unfinished', { ...unique('unfinished'), payload: '1' });
    expect(await amend(id, '1', '2')).toBe(false);
    expect(await amend(999_999, '1', '2')).toBe(false);
    expect((await scene.find(id)).payload).toBe('1');
  });

  test('and a retry with a new key count the executions before: those after it have another idempotency key', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ payload: '1' });
    const keyFrom = async () => {
      const claimed = await scene.claimTask(worker, id);
      await scene.settle(claimed, retryIn(1_000));
      return claimed.keyFrom ?? 0;
    };
    const retry = (newKey: boolean) => scene.move(id, { verb: 'retry', newKey });
    const seen = [await keyFrom()];
    await retry(false);
    seen.push(await keyFrom());
    await retry(true);
    seen.push(await keyFrom());
    await retry(false);
    seen.push(await keyFrom());
    await amend(id, '1', '2');
    await retry(false);
    seen.push(await keyFrom());
    expect(seen).toEqual([0, 0, 2, 2, 4]);
    await scene.move(id, { verb: 'cancel' });
    await retry(true);
    expect((await scene.claimTask(worker, id)).facts.executions).toBe(1);
  });
}

function promisesForATime(scene: Scene): void {
  const anHour = (scope: UniqueScope, onConflict: UniqueConflict = 'ignore'): Partial<NewTask> => ({
    unique: { key: 'u', while: scope, onConflict, for: 3_600_000 },
  });

  test.each<[UniqueScope, TaskState]>([
    ['unfinished', 'succeeded'],
    ['unfinished', 'dead'],
    ['unfinished', 'cancelled'],
    ['waiting', 'running'],
    ['waiting', 'needs_manual'],
    ['waiting', 'succeeded'],
  ])('a task unique while %s has its key although it is %s, and not longer than that', async (scope, state) => {
    const id = await taskIn(scene, state, scope, anHour(scope));
    scene.advance(3_599_999);
    for (const task of [unique('unfinished'), unique('waiting', 'replace'), anHour(scope)]) {
      expect(await enqueue(scene, task)).toEqual({ id, created: false, state });
    }
    const rejected = enqueue(scene, unique('unfinished', 'reject'));
    await expect(rejected).rejects.toMatchObject({ code: 'unique_conflict', task: id });
    scene.advance(1);
    const after = await enqueue(scene, unique('unfinished'));
    expect(after).toMatchObject({ created: true });
    expect(await enqueue(scene, anHour('unfinished'))).toMatchObject({ id: after?.id, created: false });
  });

  test('a task that has not ended then has it longer', async () => {
    const id = await scene.enqueueOne({ ...anHour('unfinished'), delay: 7_200_000 });
    scene.advance(3_600_001);
    expect(await enqueue(scene, unique('unfinished'))).toEqual({ id, created: false, state: 'scheduled' });
    await scene.move(id, { verb: 'cancel' });
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
  });

  test('a retry takes its own key again, before that time and after it', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne(anHour('waiting'));
    for (const passed of [0, 3_600_000]) {
      await scene.settle(await scene.claimTask(worker, id), retryIn(0));
      expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id, created: false });
      await scene.settle(await scene.claimTask(worker, id), ended('dead'));
      scene.advance(passed);
      await scene.store.tasks.renew(worker, []);
      expect(await scene.move(id, { verb: 'retry' })).toMatchObject({ moved: true });
      expect(await enqueue(scene, unique('waiting'))).toMatchObject({ id, created: false });
    }
  });

  test('a replaced task leaves its key to the new one, which has it for its own time', async () => {
    await scene.enqueueOne(anHour('unfinished'));
    const id = await scene.enqueueOne(unique('unfinished', 'replace'));
    await scene.move(id, { verb: 'cancel' });
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
  });

  test('of one call, the first that finds the time over has the key', async () => {
    await scene.move(await scene.enqueueOne(anHour('unfinished')), { verb: 'cancel' });
    scene.advance(3_600_000);
    const receipts = await scene.store.tasks.enqueue([newTask(unique('waiting')), newTask(anHour('waiting'))]);
    expect(receipts.map(({ created }) => created)).toEqual([true, false]);
  });
}

function promisesOfRejecting(scene: Scene): void {
  test('refuses, with the id of the one that has the key, and records nothing', async () => {
    const id = await scene.enqueueOne(unique('unfinished'));
    const call = scene.store.tasks.enqueue([
      newTask(),
      newTask({ unique: { key: 'free', while: 'unfinished', onConflict: 'replace' } }),
      newTask(unique('unfinished', 'reject')),
    ]);

    await expect(call).rejects.toMatchObject({ code: 'unique_conflict', task: id, type: 'mail', key: 'u' });
    expect(await scene.store.records.list({ limit: 10 })).toHaveLength(1);
  });

  test('does not affect what others enqueue at the same moment', async () => {
    await scene.enqueueOne(unique('unfinished'));
    const calls = await Promise.allSettled([
      scene.store.tasks.enqueue([newTask()]),
      scene.store.tasks.enqueue([newTask(unique('unfinished', 'reject'))]),
      scene.store.tasks.enqueue([newTask()]),
    ]);

    expect(calls.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await scene.store.records.list({ limit: 10 })).toHaveLength(3);
  });
}

function promisesToOperators(scene: Scene): void {
  test.each(ENDED)(
    'does not put back a task that is %s beside another one, and the error names that one',
    async (state) => {
      const old = await taskIn(scene, state, 'unfinished');
      const id = await scene.enqueueOne(unique('unfinished'));

      expect(await scene.move(old, { verb: 'retry' })).toEqual({
        id: old,
        moved: false,
        from: state,
        why: 'conflict',
        occupiedBy: id,
      });
      expect(await scene.stateOf(old)).toBe(state);
      await scene.move(id, { verb: 'cancel' });
      expect(await scene.move(old, { verb: 'retry' })).toMatchObject({ moved: true, to: 'ready' });
      expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ id: old, created: false });
    },
  );

  test('cannot answer a task with a retry while a newer one waits, but with anything else', async () => {
    const old = await taskIn(scene, 'needs_manual', 'waiting');
    const id = await scene.enqueueOne(unique('waiting'));

    expect(await scene.move(old, { verb: 'resolve', as: 'retry' })).toMatchObject({ why: 'conflict', occupiedBy: id });
    expect(await scene.move(old, { verb: 'resolve', as: 'succeeded' })).toMatchObject({ moved: true });
    expect(await scene.stateOf(id)).toBe('ready');
  });

  test('puts back the rest of a selection; of two tasks with one key, the first', async () => {
    const worker = await scene.join();
    const dead: number[] = [];
    for (const task of [unique('unfinished'), unique('unfinished'), {}, {}]) {
      const claimed = await scene.start(worker, task);
      await scene.settle(claimed, ended('dead'));
      dead.push(claimed.lease.task);
    }

    const moved = await scene.store.tasks.move(dead, { actor: 'maria', verb: 'retry' });

    expect(moved.map((one) => one.moved)).toEqual([true, false, true, true]);
    expect(moved[1]).toMatchObject({ why: 'conflict', occupiedBy: dead[0] });
  });

  test.each(['waiting', 'unfinished'] as const)(
    'may hold, release and hurry a task that has its key, while %s',
    async (scope) => {
      const id = await scene.enqueueOne({ ...unique(scope), delay: 60_000 });
      for (const verb of ['hold', 'release', 'retry'] as const) {
        expect(await scene.move(id, { verb })).toMatchObject({ moved: true });
        expect(await enqueue(scene, unique(scope))).toMatchObject({ id, created: false });
      }
      await scene.move(id, { verb: 'cancel' });
      expect(await enqueue(scene, unique(scope))).toMatchObject({ created: true });
    },
  );

  test.each(['succeeded', 'dead'] as const)('frees the key by resolving as %s', async (as) => {
    const id = await taskIn(scene, 'needs_manual', 'unfinished');
    await scene.move(id, { verb: 'resolve', as });
    expect(await enqueue(scene, unique('unfinished'))).toMatchObject({ created: true });
  });
}
