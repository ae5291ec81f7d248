import { describe, expect, test } from 'vitest';
import type { Decision } from '../../../src/failure/decide.ts';
import type { NewRedrive } from '../../../src/store/redrives.ts';
import { ended, failure, lost, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

const CLAIM = 15_000;

function newRedrive({ filter, ...more }: Partial<NewRedrive> = {}): NewRedrive {
  return {
    filter: { states: ['dead'], ...filter },
    actor: 'eva',
    note: 'the host is fixed',
    perSecond: 10,
    acceptDuplicate: false,
    ...more,
  };
}

export function promisesOfRedrives(factory: StoreFactory): void {
  const scene = useScene(factory);
  const redrives = () => scene.store.redrives;

  /** A task that ended so; `print` is the fingerprint of its failure. */
  async function endedTask(
    reason = 'fs.locked',
    task: object = {},
    print?: string,
    decision?: Decision,
  ): Promise<number> {
    const claimed = await scene.start(await scene.join('stager'), task);
    const failed = { ...failure(reason), ...(print !== undefined && { fingerprint: print }) };
    const report = { ranFor: 5, outcome: 'failure', failure: failed };
    await scene.settle(claimed, decision ?? ended('dead', reason), { report });
    return claimed.lease.task;
  }

  async function endedTasks(count: number): Promise<number[]> {
    const ids: number[] = [];
    for (let i = 0; i < count; i += 1) ids.push(await endedTask());
    return ids;
  }

  async function started(redrive: Partial<NewRedrive> = {}): Promise<number> {
    const id = await redrives().start(newRedrive(redrive));
    while (await redrives().select(id));
    return id;
  }

  /** Puts back as the process `ann`. */
  async function putBack(id: number, count: number, stage = 1, nextIn = 0) {
    expect(await redrives().advance(id, 'ann', CLAIM)).toBeDefined();
    await redrives().putBack(id, 'ann', { stage, count, nextIn });
    return redrives().advance(id, 'ann', CLAIM);
  }

  async function run(task: number, decision: Decision, fingerprint?: string): Promise<void> {
    const claimed = await scene.claimTask(await scene.join('worker'), task);
    const reason = 'reason' in decision ? decision.reason : 'unknown';
    const failed = { ...failure(reason), ...(fingerprint !== undefined && { fingerprint }) };
    const report = { ranFor: 5, outcome: 'failure', failure: failed };
    await scene.settle(claimed, decision, decision.next === 'succeeded' ? {} : { report });
  }

  describe('a selection', () => {
    test('selects the tasks that had ended when the redrive started, and none that end later', async () => {
      const [first] = await endedTasks(2);
      const id = await redrives().start(newRedrive());
      scene.advance(1);
      await endedTask();
      await scene.move(first as number, { verb: 'retry' });
      await run(first as number, ended('dead'));
      while (await redrives().select(id));

      expect(await redrives().find(id)).toMatchObject({ state: 'running', selecting: false, selected: 1, putBack: 0 });
    });

    test.each([
      ['types', { types: ['mail'] }, [0, 1, 4]],
      ['queues', { queues: ['night'] }, [1]],
      ['sources', { sources: ['imap:INBOX', 'x'] }, [0, 1, 2, 3]],
      ['reasons', { reasons: ['net.timeout'] }, [3]],
      ['families', { families: ['fs'] }, [0, 1, 4]],
      ['reasons or families', { reasons: ['net.timeout'], families: ['http'] }, [2, 3]],
      ['fingerprints', { fingerprints: ['f1:a'] }, [1, 2]],
      ['several at once', { families: ['fs'], fingerprints: ['f1:a'] }, [1]],
      ['patterns', { types: [], like: { types: ['p*t'] } }, [2, 3]],
      ['what it is not', { not: { types: ['post'], fingerprints: ['f1:a'] } }, [0, 4]],
      ['families that it has not', { not: { reasons: ['net.timeout'], families: ['fs'] } }, [2]],
      ['a text in the error', { errors: ['nothing says this'] }, []],
      ['states', { states: ['needs_manual', 'dead'] as const }, [0, 1, 2, 3, 4, 5]],
      ['attempts', { attempts: [{ from: 1 }] }, [0, 1, 2, 3, 4]],
      ['attempts that it has not', { not: { attempts: [{ to: 1 }] } }, []],
      ['executions', { executions: [{ from: 1, to: 1 }] }, [0, 1, 2, 3, 4]],
      ['priorities', { priority: [{ from: 9 }] }, [4]],
      ['priorities that it has not', { not: { priority: [{ from: 1 }] } }, [0, 1, 2, 3]],
      ['nothing that is there', { types: ['x'] }, []],
    ])('is narrowed by %s', async (_, filter, wanted) => {
      const ids = [
        await endedTask('fs.locked'),
        await endedTask('fs.locked', { queue: 'night' }, 'f1:a'),
        await endedTask('http.500', { type: 'post' }, 'f1:a'),
        await endedTask('net.timeout', { type: 'post' }),
        await endedTask('fs.locked', { source: 'imap:other', priority: 9 }),
        await endedTask('fs.locked', { type: 'post' }, undefined, ended('needs_manual')),
      ];
      await scene.taskIn('cancelled');
      await scene.taskIn('succeeded');
      await scene.taskIn('scheduled');
      const all = { states: ['dead'] as const, ...filter };

      expect(await redrives().preview(all)).toEqual({ matches: wanted.length, mayHaveHappened: 0, mustNotRunTwice: 0 });
      const id = await started({ filter: all });
      await putBack(id, 10);
      const back = [];
      for (const [i, task] of ids.entries()) if ((await scene.stateOf(task)) === 'ready') back.push(i);
      expect(back).toEqual(wanted);
    });

    test('is narrowed to what ended from one time on and before another', async () => {
      const [a] = await endedTasks(1);
      scene.advance(1_000);
      const from = scene.now();
      const [b] = await endedTasks(1);
      scene.advance(1_000);
      const before = scene.now();
      const [c] = await endedTasks(1);

      const id = await started({ filter: { states: ['dead'], endedFrom: from, endedBefore: before } });
      await putBack(id, 10);

      expect(await Promise.all([a, b, c].map((task) => scene.stateOf(task as number)))).toEqual([
        'dead',
        'ready',
        'dead',
      ]);
    });

    test('is made in slices, which several processes may take, and each task is in it once', async () => {
      await scene.import(
        ...Array.from({ length: 4_100 }, () => ({ stands: 'dead', reason: 'fs.locked', executions: 1 }) as const),
      );
      const id = await redrives().start(newRedrive());
      let calls = 0;
      const selectAll = async () => {
        while (await redrives().select(id)) calls += 1;
      };
      await Promise.all([selectAll(), selectAll()]);

      expect(calls).toBeGreaterThan(1);
      expect(await redrives().find(id)).toMatchObject({ selecting: false, selected: 4_100 });
      let matches = 0;
      for (let after: number | undefined = 0; after !== undefined; ) {
        const found: Awaited<ReturnType<ReturnType<typeof redrives>['preview']>> = await redrives().preview(
          newRedrive().filter,
          after,
        );
        matches += found.matches;
        after = found.next;
      }
      expect(matches).toBe(4_100);
    });

    test('counts what may have happened already, and what of it must not run twice', async () => {
      const ambiguous = { ...failure(), ambiguous: true };
      for (const task of [{}, { idempotent: false }]) {
        const claimed = await scene.start(await scene.join(), task);
        const report = { ranFor: 5, outcome: 'failure', failure: ambiguous };
        await scene.settle(claimed, ended('dead'), { report });
      }
      await endedTasks(1);

      expect(await redrives().preview(newRedrive().filter)).toEqual({
        matches: 3,
        mayHaveHappened: 2,
        mustNotRunTwice: 1,
      });
    });
  });

  describe('putting back', () => {
    test('makes the first tasks ready, in a new round, with the redrive in their history', async () => {
      const ids = await endedTasks(3);
      const id = await started();
      scene.advance(1_000);
      const advanced = await putBack(id, 2, 1, 200);

      expect(await Promise.all(ids.map((task) => scene.stateOf(task)))).toEqual(['ready', 'ready', 'dead']);
      expect(await scene.find(ids[0] as number)).toMatchObject({ charged: [], executions: 1 });
      expect((await scene.store.records.history(ids[0] as number)).at(-1)).toEqual({
        kind: 'action',
        at: scene.now(),
        actor: 'eva',
        verb: 'redrive',
        note: `Redrive ${id}: the host is fixed`,
        from: 'dead',
        to: 'ready',
      });
      expect(advanced).toMatchObject({
        record: { id, selected: 3, putBack: 2, skipped: 0 },
        progress: {
          left: 1,
          undecided: 2,
          stages: [{ stage: 1, putBack: 2, undecided: 2, failedAgain: 0 }],
          nextIn: 200,
        },
      });
    });

    test('skips tasks that somebody changed since the redrive started, and says why', async () => {
      const ids = (await endedTasks(4)) as [number, number, number, number];
      const unique = { unique: { key: 'u', while: 'unfinished', onConflict: 'reject' } } as const;
      const blocked = await endedTask('fs.locked', unique);
      const twice = await scene.start(await scene.join(), { idempotent: false });
      const report = { ranFor: 5, outcome: 'failure', failure: { ...failure(), ambiguous: true } };
      await scene.settle(twice, ended('dead'), { report });
      const id = await started();
      await scene.enqueueOne(unique);
      await scene.move(ids[0], { verb: 'retry' });
      await scene.move(ids[1], { verb: 'retry' });
      scene.advance(1);
      await run(ids[1], ended('dead'));
      await run(ids[0], succeeded());

      const advanced = await putBack(id, 10);

      expect(advanced?.record).toMatchObject({ selected: 6, putBack: 2, skipped: 4 });
      expect(advanced?.progress.left).toBe(0);
      expect(await redrives().skips(id)).toEqual({ changed: 2, may_have_happened: 1, unique_key: 1 });
      expect(await scene.stateOf(blocked)).toBe('dead');
      expect(await scene.stateOf(ids[1])).toBe('dead');
      expect(await redrives().ofTask(ids[1])).toMatchObject({ is: 'skipped', why: 'changed', redrive: { id } });
    });

    test('puts back tasks whose effect may have happened, if duplicates are accepted', async () => {
      const twice = await scene.start(await scene.join(), { idempotent: false });
      const report = { ranFor: 5, outcome: 'failure', failure: { ...failure(), ambiguous: true } };
      await scene.settle(twice, ended('dead'), { report });
      const id = await started({ acceptDuplicate: true });
      expect((await putBack(id, 1))?.record).toMatchObject({ putBack: 1, skipped: 0 });
    });

    test('forgets tasks that were removed meanwhile', async () => {
      const ids = await endedTasks(3);
      const id = await started();
      await putBack(id, 1);
      await run(ids[0] as number, succeeded());
      scene.advance(1_000);
      const keep = { default: 1_000 };
      const all = { succeeded: keep, dead: keep, cancelled: keep, needs_manual: keep };
      expect((await scene.store.upkeep.prune(all)).removed).toHaveLength(3);

      const advanced = await putBack(id, 5, 2);

      expect(advanced?.record).toMatchObject({ selected: 3, putBack: 1, skipped: 2, succeeded: 0, endedOtherwise: 1 });
      expect(advanced?.progress).toMatchObject({ left: 0, undecided: 0 });
    });

    test('leaves tasks of a held source held', async () => {
      const [task] = await endedTasks(1);
      await scene.store.sources.hold('imap:INBOX', { actor: 'eva' });
      await putBack(await started(), 1);
      expect(await scene.find(task as number)).toMatchObject({ state: 'ready', heldBy: 'source_held' });
    });
  });

  describe('outcomes', () => {
    test.each<[string, (task: number) => Promise<unknown>, object]>([
      ['a success', (task) => run(task, succeeded()), { succeeded: 1 }],
      ['the same failure, however it goes on', (task) => run(task, retryIn(1_000), 'f1:a'), { failedAgain: 1 }],
      ['the same reason where no fingerprint is known', (task) => run(task, ended('dead')), { failedAgain: 1 }],
      ['another fingerprint', (task) => run(task, retryIn(1_000), 'f1:b'), { endedOtherwise: 1 }],
      ['another reason', (task) => run(task, retryIn(1_000, 'net.timeout'), 'f1:a'), { endedOtherwise: 1 }],
      ['a cancel', (task) => scene.move(task, { verb: 'cancel' }), { endedOtherwise: 1 }],
      [
        'a success after the first failure, which counts',
        async (task) => {
          await run(task, retryIn(0), 'f1:a');
          await run(task, succeeded());
        },
        { failedAgain: 1 },
      ],
      ['nothing yet', async () => {}, { succeeded: 0, failedAgain: 0, endedOtherwise: 0 }],
      [
        'an execution that was handed back',
        (task) => scene.move(task, { verb: 'hold' }),
        { succeeded: 0, failedAgain: 0 },
      ],
    ])('are counted: %s', async (_, happens, counts) => {
      const task = await endedTask('fs.locked', {}, 'f1:a');
      const id = await started();
      await putBack(id, 1);
      await happens(task);
      expect((await redrives().advance(id, 'ann', CLAIM))?.record).toMatchObject(counts);
      expect((await redrives().advance(id, 'ann', CLAIM))?.record).toMatchObject(counts);
    });

    test('are counted: the loss of a task that crashed its workers before', async () => {
      const claimed = await scene.start(await scene.join());
      const crashed = { ...ended('needs_manual'), reason: 'worker.crash_loop' } as Decision;
      await scene.settle(claimed, crashed, { report: { ranFor: 0, outcome: 'loss' } });
      const id = await started({ filter: { states: ['needs_manual'] } });
      await putBack(id, 1);
      await scene.settle(await scene.claimTask(await scene.join(), claimed.lease.task), lost('charged'));
      expect((await redrives().advance(id, 'ann', CLAIM))?.record).toMatchObject({ failedAgain: 1 });
    });

    test('are counted by stage, of the newest ones', async () => {
      const ids = await endedTasks(7);
      const id = await started();
      for (let stage = 1; stage <= 6; stage += 1) await putBack(id, 1, stage);
      await run(ids[5] as number, ended('dead'));
      const stages = (await redrives().advance(id, 'ann', CLAIM))?.progress.stages;
      expect(stages).toEqual(
        [3, 4, 5, 6].map((stage) => ({
          stage,
          putBack: 1,
          undecided: stage === 6 ? 0 : 1,
          failedAgain: stage === 6 ? 1 : 0,
        })),
      );
    });
  });

  describe('one process drives it', () => {
    test('until its claim ends or it gives it up', async () => {
      await endedTasks(3);
      const id = await started();
      expect(await redrives().open('bob')).toEqual([id]);
      await redrives().advance(id, 'ann', CLAIM);
      expect(await redrives().open('ann')).toEqual([id]);
      expect(await redrives().open('bob')).toEqual([]);
      expect(await redrives().advance(id, 'bob', CLAIM)).toBeUndefined();
      await redrives().putBack(id, 'bob', { stage: 1, count: 1, nextIn: 0 });
      expect(await redrives().end(id, 'bob', 'done', 'x')).toBe(false);
      expect(await redrives().find(id)).toMatchObject({ state: 'running', putBack: 0 });

      scene.advance(CLAIM);
      expect(await redrives().open('bob')).toEqual([id]);
      await redrives().putBack(id, 'ann', { stage: 1, count: 1, nextIn: 0 });
      expect(await redrives().advance(id, 'bob', CLAIM)).toMatchObject({ record: { putBack: 0 } });
      expect(await redrives().advance(id, 'ann', CLAIM)).toBeUndefined();

      await redrives().release('bob');
      expect(await redrives().advance(id, 'ann', CLAIM)).toMatchObject({ record: { id } });
    });

    test('and extends its claim as it goes on', async () => {
      await endedTasks(1);
      const id = await started();
      for (let i = 0; i < 5; i += 1) {
        expect(await redrives().advance(id, 'ann', CLAIM)).toBeDefined();
        scene.advance(CLAIM * 0.4);
        expect(await redrives().open('bob')).toEqual([]);
      }
    });

    test.runIf(scene.hasSecond)('also over a restart', async () => {
      await endedTasks(3);
      const id = await started();
      await putBack(id, 1);
      const before = await redrives().find(id);
      await scene.closeStore().then(() => scene.openSecond());
      expect(await redrives().find(id)).toEqual(before);
      expect((await putBack(id, 1, 2))?.record).toMatchObject({ putBack: 2 });
    });
  });

  describe('an operator', () => {
    test('pauses, resumes and cancels, and nothing is put back meanwhile', async () => {
      await endedTasks(2);
      const id = await started();
      await redrives().advance(id, 'ann', CLAIM);
      const since = scene.now();
      expect(await redrives().change(id, 'running', { actor: 'max' })).toBe(false);
      expect(await redrives().change(id, 'paused', { actor: 'max', note: 'wait' })).toBe(true);
      expect(await redrives().change(id, 'paused', { actor: 'max' })).toBe(false);
      await redrives().putBack(id, 'ann', { stage: 1, count: 1, nextIn: 0 });
      expect(await redrives().open('ann')).toEqual([]);
      expect(await redrives().advance(id, 'ann', CLAIM)).toBeUndefined();
      const by = { actor: 'max', note: 'wait' };
      expect(await redrives().find(id)).toMatchObject({ state: 'paused', since, by, putBack: 0 });

      expect(await redrives().change(id, 'running', { actor: 'max' })).toBe(true);
      expect((await putBack(id, 1))?.record).toMatchObject({ state: 'running', putBack: 1 });
      expect(await redrives().change(id, 'cancelled', { actor: 'max' })).toBe(true);
      expect(await redrives().change(id, 'running', { actor: 'max' })).toBe(false);
      expect(await redrives().find(id)).toMatchObject({ state: 'cancelled', by: { actor: 'max' }, putBack: 1 });
      expect(await redrives().change(id + 1, 'paused', { actor: 'max' })).toBe(false);
    });

    test('sees the newest redrives first, why one ended, and where a task is', async () => {
      const [first, second] = await endedTasks(2);
      const id = await started();
      await putBack(id, 1);
      expect(await redrives().ofTask(first as number)).toMatchObject({
        is: 'put_back',
        at: scene.now(),
        redrive: { id },
      });
      expect(await redrives().ofTask(second as number)).toMatchObject({
        is: 'waits',
        redrive: { id, note: 'the host is fixed' },
      });
      expect(await redrives().end(id, 'ann', 'stopped', 'It failed again.')).toBe(true);
      const other = await started({ note: 'another', filter: { states: ['dead'], types: ['mail'] } });

      expect(await redrives().list(10)).toMatchObject([
        { id: other, note: 'another', filter: { types: ['mail'] }, perSecond: 10, acceptDuplicate: false },
        { id, state: 'stopped', because: 'It failed again.', actor: 'eva', startedAt: expect.any(Number) },
      ]);
      expect(await redrives().list(1)).toHaveLength(1);
      expect(await redrives().ofTask(second as number)).toMatchObject({ redrive: { id: other } });
      expect(await redrives().ofTask(99_999)).toBeUndefined();
      expect(await redrives().find(99_999)).toBeUndefined();
    });

    test('no longer sees those that ended a month ago', async () => {
      await endedTasks(2);
      const id = await started();
      const running = await started();
      await putBack(id, 1);
      await redrives().end(id, 'ann', 'done', 'x');
      scene.advance(30 * 24 * 3_600_000 + 1);
      while ((await scene.store.upkeep.tidy()) > 0);
      expect((await redrives().list(10)).map((one) => one.id)).toEqual([running]);
    });
  });
}
