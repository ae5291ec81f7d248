import { describe, expect, test } from 'vitest';
import type { Claimed, NewTask, Recovered } from '../../../src/store/store.ts';
import { ended, lost, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

/** An execution that succeeds after its lease was lost. */
export function promisesOfLateSuccesses(factory: StoreFactory): void {
  const scene = useScene(factory);

  /** What Alice claimed, and what Bob got of it when she was gone. */
  async function takenOver(task: Partial<NewTask> = {}): Promise<{ bob: number; hers: Claimed; his: Recovered }> {
    const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
    const hers = await scene.start(alice, task);
    await scene.store.tasks.leave(alice);
    const [his] = (await scene.recover(bob)) as [Recovered];
    return { bob, hers, his };
  }

  const settled = { answer: 'settled', state: 'succeeded' };

  describe('that nobody contradicts', () => {
    test('counts while the task is being recovered, and the recovery gets `stale`', async () => {
      const { hers, his } = await takenOver();

      expect(await scene.settle(hers, succeeded(), { result: '"done"' })).toEqual(settled);
      expect(await scene.find(hers.lease.task)).toMatchObject({ state: 'succeeded', result: '"done"', executions: 1 });
      expect(await scene.settle(his, lost('free'))).toEqual({ answer: 'stale' });
      expect(await scene.stateOf(hers.lease.task)).toBe('succeeded');
    });

    test('counts while the task waits', async () => {
      const { bob, hers, his } = await takenOver();
      await scene.settle(his, lost('free'));

      expect(await scene.settle(hers, succeeded(), { result: '1' })).toEqual(settled);
      expect(await scene.find(hers.lease.task)).toMatchObject({ state: 'succeeded', result: '1', lostInARow: 0 });
      expect(await scene.claim(bob)).toEqual([]);
    });

    test('counts while the task waits for its time, and while an operator holds it', async () => {
      for (const hold of [false, true]) {
        const { hers, his } = await takenOver();
        await scene.settle(his, { ...lost('free'), after: 60_000 } as ReturnType<typeof lost>);
        if (hold) await scene.move(hers.lease.task, { verb: 'hold' });

        expect(await scene.settle(hers, succeeded())).toEqual(settled);
        expect(await scene.stateOf(hers.lease.task)).toBe('succeeded');
      }
    });

    test('counts where the task needs a person for that very loss', async () => {
      const { hers, his } = await takenOver({ idempotent: false });
      await scene.settle(his, ended('needs_manual', 'worker.lost'), { report: { ranFor: 0, outcome: 'loss' } });

      expect(await scene.settle(hers, succeeded(), { result: '1' })).toEqual(settled);
      expect(await scene.find(hers.lease.task)).toMatchObject({ state: 'succeeded', result: '1' });
    });

    test('counts although the worker that recovered it was lost too', async () => {
      const { bob, hers } = await takenOver();
      await scene.store.tasks.leave(bob);
      const carol = await scene.join('carol');
      const [again] = (await scene.recover(carol)) as [Recovered];

      expect(await scene.settle(hers, succeeded())).toEqual(settled);
      expect(await scene.settle(again, lost('free'))).toEqual({ answer: 'stale' });
    });

    test('counts in a later execution as in the first', async () => {
      const [alice, bob] = [await scene.join('alice'), await scene.join('bob')];
      const id = await scene.enqueueOne();
      await scene.settle(await scene.claimTask(bob, id), retryIn(0));
      const hers = await scene.claimTask(alice, id);
      await scene.store.tasks.leave(alice);
      const [his] = (await scene.recover(bob)) as [Recovered];
      await scene.settle(his, lost('free'));

      expect(await scene.settle(hers, succeeded())).toEqual(settled);
      expect(await scene.find(id)).toMatchObject({ state: 'succeeded', executions: 2 });
    });

    test('gets `already` when it is reported again', async () => {
      const { hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      await scene.settle(hers, succeeded());
      expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'already' });
    });

    test('frees the unique key and the deadline of the task', async () => {
      const unique = { key: 'u', while: 'unfinished', onConflict: 'reject' } as const;
      const { bob, hers, his } = await takenOver({ unique, deadline: scene.now() + 60_000 });
      await scene.settle(his, lost('free'));
      await scene.settle(hers, succeeded());

      await scene.enqueueOne({ unique });
      scene.advance(61_000);
      expect(await scene.recover(bob)).toEqual([]);
    });

    test('stands in the history after the loss, with the reason why it counts', async () => {
      const { hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      await scene.settle(hers, succeeded());

      expect(await scene.store.records.history(hers.lease.task)).toMatchObject([
        { execution: 1, worker: 'alice', outcome: 'loss', late: false },
        {
          execution: 1,
          worker: 'alice',
          outcome: 'success',
          next: 'succeeded',
          late: false,
          message: 'Its lease had been lost, but nobody had begun the task again, so its success counts.',
        },
      ]);
    });
  });

  describe('that somebody contradicts is kept as evidence', () => {
    async function expectStale(hers: Claimed): Promise<void> {
      const before = await scene.find(hers.lease.task);
      expect(await scene.settle(hers, succeeded(), { result: '"A"' })).toEqual({ answer: 'stale' });
      expect(await scene.find(hers.lease.task)).toEqual(before);
      const history = await scene.store.records.history(hers.lease.task);
      expect(history.filter((entry) => entry.kind === 'execution' && entry.late)).toHaveLength(1);
    }

    test('where the task runs again', async () => {
      const { bob, hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      const again = await scene.claimTask(bob, hers.lease.task);

      await expectStale(hers);
      expect(await scene.settle(again, succeeded())).toEqual(settled);
    });

    test('where another execution has failed since', async () => {
      const { bob, hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      await scene.settle(await scene.claimTask(bob, hers.lease.task), retryIn(1_000));
      await expectStale(hers);
    });

    test.each(['dead', 'cancelled'] as const)('where the task was given up: %s', async (end) => {
      const { hers, his } = await takenOver();
      await scene.settle(his, ended(end, 'worker.lost'), { report: { ranFor: 0, outcome: 'loss' } });
      await expectStale(hers);
    });

    test.each([
      ['tries it again', { verb: 'resolve', as: 'retry' }],
      ['gives it up', { verb: 'resolve', as: 'dead' }],
    ] as const)('where a person %s', async (_, verb) => {
      const { hers, his } = await takenOver();
      await scene.settle(his, ended('needs_manual', 'worker.lost'), { report: { ranFor: 0, outcome: 'loss' } });
      await scene.move(hers.lease.task, verb);
      await expectStale(hers);
    });

    test('where the task needs a person for another reason: its deadline passed while it waited', async () => {
      const { bob, hers, his } = await takenOver({ deadline: scene.now() + 1_000 });
      await scene.settle(his, lost('free'));
      scene.advance(1_001);
      const [expired] = (await scene.recover(bob)) as [Recovered];
      await expectStale(hers);
      await scene.settle(expired, ended('needs_manual', 'deadline.passed'), {
        report: { ranFor: 0, outcome: 'expiry' },
      });
      expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'stale' });
    });

    test('where it had said before that it failed', async () => {
      const { hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      expect(await scene.settle(hers, retryIn(0))).toEqual({ answer: 'stale' });
      expect(await scene.settle(hers, succeeded())).toEqual({ answer: 'stale' });
    });

    test('where its token is not the one under which the execution ran', async () => {
      const { hers, his } = await takenOver();
      await scene.settle(his, lost('free'));
      await expectStale({ ...hers, lease: { ...hers.lease, token: 'forged' } });
    });
  });
}
