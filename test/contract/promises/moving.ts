import { describe, expect, test } from 'vitest';
import { isLegal, TASK_STATES, type TaskState } from '../../../src/task.ts';
import {
  cancelled,
  deferredFor,
  ended,
  idsOf,
  lost,
  retryIn,
  type Scene,
  type StoreFactory,
  settlement,
  succeeded,
  useScene,
  type Verb,
} from '../scene.ts';

export function promisesOfMoving(factory: StoreFactory): void {
  const scene = useScene(factory);

  describe('legality', () => promisesOfLegality(scene));
  describe('a new round', () => promisesOfRounds(scene));

  test('cancels a task before it runs: nobody gets it', async () => {
    const worker = await scene.join();
    const ids = [await scene.taskIn('ready'), await scene.taskIn('scheduled'), await scene.taskIn('held')];

    const moved = await scene.store.tasks.move(ids, { actor: 'maria', verb: 'cancel' });

    expect(moved).toEqual(
      ['ready', 'scheduled', 'held'].map((from, n) => ({ id: ids[n], moved: true, from, to: 'cancelled' })),
    );
    scene.advance(3_600_000);
    expect(await scene.claim(worker)).toEqual([]);
    for (const id of ids)
      expect(await scene.find(id)).toMatchObject({ state: 'cancelled', endedAt: expect.any(Number) });
  });

  test('only requests that a running task stops, and says so', async () => {
    const claimed = await scene.start(await scene.join());
    const { task } = claimed.lease;

    const answer = { id: task, moved: false, from: 'running', why: 'requested' };
    expect(await scene.move(task, { verb: 'cancel' })).toEqual(answer);
    expect(await scene.find(task)).toMatchObject({ state: 'running', running: { cancelRequested: true } });
    expect(await scene.move(task, { verb: 'cancel' })).toEqual(answer);
  });

  test('leaves a task as it is that is not in one of the given states', async () => {
    const [ready, held, running] = [
      await scene.taskIn('ready'),
      await scene.taskIn('held'),
      await scene.taskIn('running'),
    ];
    const moved = await scene.store.tasks.move([ready, held, running], {
      actor: 'maria',
      verb: 'cancel',
      from: ['held'],
    });

    expect(moved).toEqual([
      { id: ready, moved: false, from: 'ready', why: 'conflict' },
      { id: held, moved: true, from: 'held', to: 'cancelled' },
      { id: running, moved: false, from: 'running', why: 'conflict' },
    ]);
    expect(await scene.find(running)).toMatchObject({ running: { cancelRequested: false } });
  });

  test('leaves a task as it is that has not had exactly the given number of executions', async () => {
    const unchanged = await Promise.all(
      (['ready', 'needs_manual', 'dead', 'succeeded', 'running', 'scheduled'] as const).map(async (state) => {
        const id = await scene.taskIn(state);
        const { executions } = await scene.find(id);
        const verb = state === 'ready' || state === 'running' ? ('cancel' as const) : ('retry' as const);
        return { id, state, executions, verb };
      }),
    );
    for (const { id, state, executions, verb } of unchanged) {
      for (const other of [executions + 1, Number.MAX_SAFE_INTEGER]) {
        const moved = await scene.move(id, { verb, executions: other });
        expect(moved).toEqual({ id, moved: false, from: state, why: 'conflict' });
      }
      const same = await scene.move(id, { verb, executions });
      expect(same).toMatchObject(state === 'running' ? { why: 'requested' } : { moved: true, from: state });
    }
  });

  test('asking twice is asking once: facts that know of the request stay fresh', async () => {
    const claimed = await scene.start(await scene.join());
    await scene.move(claimed.lease.task, { verb: 'cancel' });
    const told = await scene.settle(claimed, retryIn(0));
    await scene.move(claimed.lease.task, { verb: 'cancel' });

    if (told.answer !== 'changed') throw new Error(`The settlement was ${told.answer}.`);
    expect(await scene.settle({ ...claimed, revision: told.revision }, cancelled())).toMatchObject({
      answer: 'settled',
    });
  });

  test('makes a scheduled task due now, and leaves its counts alone', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, retryIn(3_600_000));
    scene.advance(1_000);

    expect(await scene.move(claimed.lease.task, { verb: 'retry' })).toMatchObject({ from: 'scheduled', to: 'ready' });

    const again = await scene.claimTask(worker, claimed.lease.task);
    expect(again.lease.execution).toBe(2);
    expect(again.facts).toMatchObject({ executions: 2, charged: [{ count: 1 }], sinceFirstStartMs: 1_000 });
  });

  test('keeps a task that was made due now from being due a second time', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne({ delay: 60_000 });
    await scene.move(id, { verb: 'retry' });
    await scene.settle(await scene.claimTask(worker, id), succeeded());
    scene.advance(120_000);

    expect(await scene.claim(worker)).toEqual([]);
    expect(await scene.find(id)).toMatchObject({ state: 'succeeded', executions: 1 });
  });

  test('holds a task until it is released, however long that takes', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    expect(await scene.move(id, { verb: 'hold' })).toMatchObject({ moved: true, from: 'ready', to: 'held' });
    scene.advance(30 * 86_400_000);
    await scene.store.tasks.renew(worker, []);
    expect(await scene.claim(worker)).toEqual([]);

    expect(await scene.move(id, { verb: 'release' })).toMatchObject({ moved: true, from: 'held', to: 'ready' });
    expect(idsOf(await scene.claim(worker))).toEqual([id]);
  });

  test('releases a task to wait for its time, or to be ready if that has passed', async () => {
    const worker = await scene.join();
    const [early, late] = (await scene.enqueue({ delay: 60_000 }, { delay: 60_000 })) as [number, number];
    const dueAt = scene.now() + 60_000;
    await scene.store.tasks.move([early, late], { actor: 'maria', verb: 'hold' });

    scene.advance(1_000);
    expect(await scene.move(early, { verb: 'release' })).toMatchObject({ to: 'scheduled' });
    expect(await scene.find(early)).toMatchObject({ state: 'scheduled', dueAt });
    scene.advance(59_000);
    expect(await scene.move(late, { verb: 'release' })).toMatchObject({ to: 'ready' });
    expect(idsOf(await scene.claim(worker)).toSorted((a, b) => a - b)).toEqual([early, late]);
  });

  test('keeps the facts of a task while it is held', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const decision of [retryIn(0), deferredFor(0), lost('charged')]) {
      await scene.settle(await scene.claimTask(worker, id), decision);
    }
    await scene.move(id, { verb: 'hold' });
    await scene.move(id, { verb: 'release' });

    expect((await scene.claimTask(worker, id)).facts).toMatchObject({
      executions: 4,
      charged: [{ reason: 'fs.locked', count: 1 }],
      deferralsInARow: 1,
      recoveriesAgoMs: [0],
      lostInARow: 1,
    });
  });

  test('lets a person say that a task is done, with its result, or that it is given up', async () => {
    const [done, over] = [await scene.taskIn('needs_manual'), await scene.taskIn('needs_manual')];
    scene.advance(1_000);

    const resolved = { moved: true, from: 'needs_manual' };
    expect(await scene.move(done, { verb: 'resolve', as: 'succeeded', result: '{"by":"hand"}' })).toEqual({
      ...resolved,
      id: done,
      to: 'succeeded',
    });
    expect(await scene.move(over, { verb: 'resolve', as: 'dead' })).toEqual({ ...resolved, id: over, to: 'dead' });

    expect(await scene.find(done)).toMatchObject({ state: 'succeeded', result: '{"by":"hand"}', endedAt: scene.now() });
    expect(await scene.find(over)).toMatchObject({ state: 'dead', endedAt: scene.now() });
  });

  test('answers for each task in order, and names those that are missing', async () => {
    const [ready, running, dead] = [
      await scene.taskIn('ready'),
      await scene.taskIn('running'),
      await scene.taskIn('dead'),
    ];

    const answers = await scene.store.tasks.move([999_999, running, ready, dead], { actor: 'maria', verb: 'cancel' });

    expect(answers).toEqual([
      { id: 999_999, moved: false, why: 'missing' },
      { id: running, moved: false, from: 'running', why: 'requested' },
      { id: ready, moved: true, from: 'ready', to: 'cancelled' },
      { id: dead, moved: false, from: 'dead', why: 'conflict' },
    ]);
    expect(await scene.store.tasks.move([], { actor: 'maria', verb: 'cancel' })).toEqual([]);
  });

  test('moves a task that is named twice once', async () => {
    const id = await scene.taskIn('ready');
    const answers = await scene.store.tasks.move([id, id], { actor: 'maria', verb: 'hold' });
    expect(answers.map(({ moved }) => moved)).toEqual([true, false]);
  });

  test('moves a hundred dead tasks back at once', async () => {
    const worker = await scene.join();
    const ids = await scene.enqueue(...Array.from({ length: 100 }, () => ({})));
    const claimed = await scene.claim(worker);
    await scene.store.tasks.settle(claimed.map((each) => settlement(each, ended('dead'))));

    const answers = await scene.store.tasks.move(ids, { actor: 'maria', verb: 'retry' });
    expect(new Set(answers.map((answer) => answer.moved && answer.to))).toEqual(new Set(['ready']));
    expect(idsOf(await scene.claim(worker))).toEqual(ids);
  });

  test('keeps who did it, when and why, in the history of the task', async () => {
    const worker = await scene.join('alice');
    const claimed = await scene.start(worker);
    const { task } = claimed.lease;
    await scene.settle(claimed, ended('needs_manual'));
    scene.advance(1_000);
    const retriedAt = scene.now();
    await scene.move(task, { verb: 'retry', actor: 'ünï “the” operator', note: 'disk was full\n🙂' });
    scene.advance(1_000);
    await scene.move(task, { verb: 'hold', actor: 'bob' });
    await scene.move(task, { verb: 'hold', actor: 'bob' });

    const history = await scene.store.records.history(task);
    expect(history).toMatchObject([
      { kind: 'execution', next: 'needs_manual' },
      { kind: 'action' },
      { kind: 'action' },
    ]);
    expect(history.slice(1)).toEqual([
      {
        kind: 'action',
        at: retriedAt,
        actor: 'ünï “the” operator',
        verb: 'retry',
        note: 'disk was full\n🙂',
        from: 'needs_manual',
        to: 'ready',
      },
      { kind: 'action', at: retriedAt + 1_000, actor: 'bob', verb: 'hold', from: 'ready', to: 'held' },
    ]);
  });

  test('keeps who asked a running task to stop', async () => {
    const id = await scene.taskIn('running');
    await scene.move(id, { verb: 'cancel', actor: 'maria', note: 'wrong mailbox' });

    expect(await scene.store.records.history(id)).toMatchObject([
      { kind: 'action', actor: 'maria', verb: 'cancel', note: 'wrong mailbox', from: 'running' },
    ]);
  });
}

function promisesOfLegality(scene: Scene): void {
  const verbs: readonly Verb[] = [
    { verb: 'cancel' },
    { verb: 'retry' },
    { verb: 'hold' },
    { verb: 'release' },
    { verb: 'resolve', as: 'succeeded' },
    { verb: 'resolve', as: 'dead' },
  ];
  const nameOf = (verb: Verb) => ('as' in verb ? `resolve as ${verb.as}` : verb.verb);

  /** Where each step leads; where it has no entry it is refused. */
  const leads: Record<string, Partial<Record<TaskState, TaskState>>> = {
    cancel: { scheduled: 'cancelled', ready: 'cancelled', held: 'cancelled', needs_manual: 'cancelled' },
    retry: { scheduled: 'ready', succeeded: 'ready', needs_manual: 'ready', dead: 'ready', cancelled: 'ready' },
    hold: { scheduled: 'held', ready: 'held' },
    release: { held: 'ready' },
    'resolve as succeeded': { needs_manual: 'succeeded' },
    'resolve as dead': { needs_manual: 'dead' },
  };

  describe.each(TASK_STATES)('from %s', (from) => {
    test.each(verbs.map((verb) => [nameOf(verb), verb] as const))('%s', async (name, verb) => {
      const id = await scene.taskIn(from);
      const before = await scene.find(id);
      const answer = await scene.move(id, verb);
      const after = await scene.find(id);

      const to = leads[name]?.[from];
      if (to !== undefined) {
        expect(answer).toEqual({ id, moved: true, from, to });
        expect(isLegal(from, to)).toBe(true);
        expect(after.state).toBe(to);
      } else if (name === 'cancel' && from === 'running') {
        expect(answer).toMatchObject({ moved: false, why: 'requested' });
        expect(after).toEqual({ ...before, running: { ...before.running, cancelRequested: true } });
      } else {
        expect(answer).toEqual({ id, moved: false, from, why: 'conflict' });
        expect(after).toEqual(before);
      }
    });
  });

  test.each(TASK_STATES.filter((state) => state !== 'running'))(
    'lets no settlement move a task that is %s',
    async (state) => {
      const worker = await scene.join();
      const claimed = await scene.start(worker);
      const { task } = claimed.lease;
      await scene.settle(claimed, ended('needs_manual'));
      const steps: Record<Exclude<TaskState, 'running'>, readonly Verb[]> = {
        scheduled: [],
        ready: [{ verb: 'retry' }],
        held: [{ verb: 'retry' }, { verb: 'hold' }],
        succeeded: [{ verb: 'resolve', as: 'succeeded', result: '1' }],
        needs_manual: [],
        dead: [{ verb: 'resolve', as: 'dead' }],
        cancelled: [{ verb: 'cancel' }],
      };
      for (const step of steps[state]) await scene.move(task, step);
      if (state === 'scheduled') {
        await scene.move(task, { verb: 'retry' });
        await scene.settle(await scene.claimTask(worker, task), retryIn(60_000));
      }
      const before = await scene.find(task);
      expect(before.state).toBe(state);

      for (const decision of [succeeded(), retryIn(0), retryIn(5_000), ended('dead'), cancelled()]) {
        const { answer } = await scene.settle(claimed, decision, { result: '2' });
        expect(['stale', 'already']).toContain(answer);
      }
      expect(await scene.find(task)).toEqual(before);
    },
  );
}

function promisesOfRounds(scene: Scene): void {
  const ends = {
    succeeded: succeeded(),
    dead: ended('dead'),
    needs_manual: ended('needs_manual'),
    cancelled: cancelled(),
  };

  test.each(Object.entries(ends))('begins when a person retries a task that is %s', async (state, end) => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const decision of [retryIn(0), deferredFor(0), lost('charged'), deferredFor(0), end]) {
      await scene.settle(await scene.claimTask(worker, id), decision);
      scene.advance(1_000);
    }
    const history = await scene.store.records.history(id);
    expect(await scene.stateOf(id)).toBe(state);

    expect(await scene.move(id, { verb: 'retry' })).toMatchObject({ moved: true, from: state, to: 'ready' });

    const record = await scene.find(id);
    expect(record).toMatchObject({ executions: 5, charged: [], deferrals: 0, recoveries: 0, lostInARow: 0 });
    expect(record.endedAt).toBeUndefined();
    scene.advance(1_000);
    const claimed = await scene.claimTask(worker, id);
    expect(claimed.lease.execution).toBe(6);
    expect(claimed.facts).toMatchObject({
      executions: 1,
      charged: [],
      deferralsInARow: 0,
      deferredForMs: 0,
      recoveriesAgoMs: [],
      lostInARow: 0,
      cancelRequested: false,
      sinceFirstStartMs: 0,
    });
    const kept = await scene.store.records.history(id);
    expect(kept.slice(0, history.length)).toEqual(history);
  });

  test('counts from zero, and its clocks too', async () => {
    const worker = await scene.join();
    const id = await scene.enqueueOne();
    for (const decision of [retryIn(0), deferredFor(0), ended('dead')]) {
      await scene.settle(await scene.claimTask(worker, id), decision);
      scene.advance(60_000);
    }
    await scene.move(id, { verb: 'retry' });
    for (const decision of [deferredFor(0), retryIn(0, 'http.503'), deferredFor(0)]) {
      await scene.settle(await scene.claimTask(worker, id), decision);
      scene.advance(1_000);
    }

    const { lease, facts } = await scene.claimTask(worker, id);
    expect(lease.execution).toBe(7);
    expect(facts).toMatchObject({
      executions: 4,
      charged: [{ reason: 'http.503', count: 1 }],
      deferralsInARow: 1,
      deferredForMs: 1_000,
      sinceFirstStartMs: 3_000,
    });
    expect((await scene.find(id)).deferrals).toBe(2);
  });

  test('forgets a cancel that was asked for in the last one', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.move(claimed.lease.task, { verb: 'cancel' });
    const told = await scene.settle(claimed, retryIn(0));
    if (told.answer !== 'changed') throw new Error(`The settlement was ${told.answer}.`);
    await scene.settle({ ...claimed, revision: told.revision }, cancelled());
    await scene.move(claimed.lease.task, { verb: 'retry' });

    expect((await scene.claimTask(worker, claimed.lease.task)).facts.cancelRequested).toBe(false);
  });

  test('begins also for a task that was cancelled before it ever ran', async () => {
    const id = await scene.taskIn('cancelled');
    await scene.move(id, { verb: 'retry' });
    expect(await scene.claimTask(await scene.join(), id)).toMatchObject({
      lease: { execution: 1 },
      facts: { executions: 1 },
    });
  });

  test('begins after a success at the first try, and counts on', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, succeeded(), { result: '1' });
    await scene.move(claimed.lease.task, { verb: 'retry' });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ state: 'ready', executions: 1 });

    const again = await scene.claimTask(worker, claimed.lease.task);
    expect(again).toMatchObject({ lease: { execution: 2 }, facts: { executions: 1 } });
    await scene.settle(again, succeeded(), { result: '2' });
    expect(await scene.find(claimed.lease.task)).toMatchObject({ state: 'succeeded', executions: 2, result: '2' });
  });

  test('keeps the task’s place in its queue', async () => {
    const worker = await scene.join();
    const claimed = await scene.start(worker);
    await scene.settle(claimed, ended('dead'));
    scene.advance(1_000);
    const [younger] = await scene.enqueue({});
    await scene.move(claimed.lease.task, { verb: 'retry' });

    expect(idsOf(await scene.claim(worker))).toEqual([claimed.lease.task, younger]);
  });
}
