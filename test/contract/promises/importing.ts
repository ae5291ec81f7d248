import { describe, expect, test } from 'vitest';
import type { ImportedTask } from '../../../src/store/store.ts';
import { ended, failure, idsOf, imported, retryIn, type StoreFactory, succeeded, useScene } from '../scene.ts';

const DAY = 86_400_000;
const LOCKED = { reason: 'fs.locked', kind: 'transient', count: 3 } as const;
const TRIED = { executions: 4, charged: [LOCKED], reason: 'fs.locked', error: 'EBUSY: it is open' } as const;

export function promisesOfImporting(factory: StoreFactory): void {
  const scene = useScene(factory);

  test('keeps the state and the counts of each task, and that it was imported', async () => {
    const now = scene.now();
    const endedAt = now - 86_400_000;
    const ids = await scene.import(
      { dueAt: now + 60_000, ...TRIED },
      { ...TRIED },
      { stands: 'held', ...TRIED },
      { stands: 'needs_manual', ...TRIED },
      { stands: 'dead', endedAt, ...TRIED },
      { stands: 'cancelled', endedAt, reason: 'cancelled' },
      { stands: 'succeeded', endedAt, executions: 1, result: '{"ok":true}' },
    );

    const records = await Promise.all(ids.map((id) => scene.find(id)));
    expect(records.map(({ state }) => state)).toEqual([
      ...['scheduled', 'ready', 'held', 'needs_manual', 'dead', 'cancelled', 'succeeded'],
    ]);
    for (const record of records.slice(0, 5)) {
      expect(record).toMatchObject({ executions: 4, charged: [LOCKED], reason: 'fs.locked', deferrals: 0 });
    }
    expect(records[0]).toMatchObject({ dueAt: now + 60_000 });
    expect(records.slice(4).map((record) => record.endedAt)).toEqual([endedAt, endedAt, endedAt]);
    expect(records[6]).toMatchObject({ result: '{"ok":true}', executions: 1, charged: [] });
    expect(records[6]).not.toHaveProperty('reason');

    for (const [i, id] of ids.entries()) {
      const [act, ...more] = await scene.store.records.history(id);
      expect(more).toEqual([]);
      expect(act).toMatchObject({ kind: 'action', verb: 'imported', actor: 'maria', from: 'elsewhere', at: now });
      expect(act).toMatchObject({ to: records[i]?.state });
    }
  });

  test('keeps the imported counts in the history, even when the counts change later', async () => {
    const [tried, fresh] = await scene.import({ ...TRIED, by: { actor: 'eva', note: 'old.json' } }, {});
    await scene.settle(await scene.claimTask(await scene.join(), tried as number), retryIn(5_000));

    expect(await scene.store.records.history(tried as number)).toMatchObject([
      { verb: 'imported', actor: 'eva', note: 'old.json', imported: { ...TRIED, deferrals: 0 } },
      { kind: 'execution', execution: 5 },
    ]);
    const [act] = await scene.store.records.history(fresh as number);
    expect(act).not.toHaveProperty('imported');
  });

  test('counts the next failure after the imported ones', async () => {
    const [id] = (await scene.import({ ...TRIED, deferrals: 1, executions: 6 })) as [number];
    const claimed = await scene.claimTask(await scene.join(), id);

    expect(claimed.lease.execution).toBe(7);
    expect(claimed.lastFailure).toEqual({ kind: 'unknown', reason: 'unknown', message: 'EBUSY: it is open' });
    expect(claimed.facts).toMatchObject({
      executions: 7,
      charged: [LOCKED],
      deferralsInARow: 0,
      sinceFirstStartMs: 0,
      lostInARow: 0,
    });
    await scene.settle(claimed, retryIn(5_000));
    expect(await scene.find(id)).toMatchObject({
      state: 'scheduled',
      executions: 7,
      charged: [{ ...LOCKED, count: 4 }],
    });
  });

  test('counts deferrals as a row where no failure was charged', async () => {
    const [id] = (await scene.import({ executions: 3, deferrals: 2, reason: 'explicit.later' })) as [number];
    scene.advance(1_000);
    const { facts } = await scene.claimTask(await scene.join(), id);

    expect(facts).toMatchObject({ executions: 4, deferralsInARow: 2, deferredForMs: 1_000 });
  });

  test('counts what waits after a failure among the retrying, and what ended by its reason', async () => {
    await scene.import(
      { delay: 60_000, ...TRIED },
      { delay: 60_000 },
      { stands: 'dead', reason: 'http.404' },
      { stands: 'needs_manual', ...TRIED },
    );

    const counts = await scene.store.records.counts();
    expect(counts.byState).toMatchObject({ scheduled: 2, dead: 1, needs_manual: 1 });
    expect(counts.retrying).toBe(1);
    expect(counts.byReason).toEqual([
      { state: 'needs_manual', reason: 'fs.locked', count: 1 },
      { state: 'dead', reason: 'http.404', count: 1 },
    ]);
  });

  test('puts waiting tasks into the order of their queue by their submission, among new tasks', async () => {
    const now = scene.now();
    const [late] = await scene.enqueue({});
    const [old, older] = await scene.import({ submittedAt: now - 1_000 }, { submittedAt: now - 2_000 });
    await scene.import({ stands: 'held' }, { stands: 'dead', reason: 'x' }, { dueAt: now + 1 });

    expect(idsOf(await scene.claim(await scene.join()))).toEqual([older, old, late]);
  });

  test('leaves what a key was imported or recorded with before as it is', async () => {
    const [known] = await scene.enqueue({ key: 'k', payload: '1' });
    const again: Partial<ImportedTask> = { stands: 'dead', ...TRIED };

    const receipts = await scene.store.tasks.import([
      imported({ key: 'k', ...again }),
      imported({ key: 'new', ...again }),
      imported({ key: 'new' }),
    ]);
    expect(receipts.map(({ created }) => created)).toEqual([false, true, false]);
    expect(receipts[0]?.id).toBe(known);
    expect(receipts[2]?.id).toBe(receipts[1]?.id);
    expect(await scene.find(known as number)).toMatchObject({ payload: '1', state: 'ready', charged: [] });
    expect(await scene.store.records.history(known as number)).toEqual([]);
    expect(await scene.stateOf(receipts[1]?.id as number)).toBe('dead');
    expect(await scene.store.tasks.import([imported({ key: 'new' })])).toEqual([{ ...receipts[1], created: false }]);
  });

  test('takes an empty batch, and a thousand at once', async () => {
    expect(await scene.store.tasks.import([])).toEqual([]);
    const ids = await scene.import(...Array.from({ length: 1_000 }, () => ({ ...TRIED })));
    expect(new Set(ids).size).toBe(1_000);
  });

  test('takes tasks that ended on many different days, also before 1970, and removes those over age once each', async () => {
    const endedAt = (n: number) => scene.now() - n * 30 * DAY;
    // Sixty years, a day in each month.
    const days = Array.from(
      { length: 730 },
      (_, n) => ({ stands: 'succeeded', executions: 1, endedAt: endedAt(n) }) as const,
    );
    const ids = await scene.import(...days);
    expect(endedAt(729)).toBeLessThan(0);
    expect(await scene.find(ids[729] as number)).toMatchObject({ state: 'succeeded', endedAt: endedAt(729) });

    const year = { succeeded: { default: 365 * DAY }, dead: {}, cancelled: {}, needs_manual: {} };
    const removed: number[] = [];
    for (let next: number | undefined = 0; next !== undefined; ) {
      const pruned = await scene.store.upkeep.prune(year, next);
      removed.push(...pruned.removed.map(({ id }) => id));
      next = pruned.next;
    }
    expect(removed).toEqual(ids.slice(13));
    expect(await scene.store.upkeep.verify()).toEqual([]);
  });

  test('takes a task that ended on a day of which retention has removed everything, and removes it in its turn', async () => {
    const month = { succeeded: { default: 30 * DAY }, dead: {}, cancelled: {}, needs_manual: {} };
    const endedAt = scene.now();
    await scene.settle(await scene.start(await scene.join()), succeeded());
    while ((await scene.store.upkeep.tidy()) > 0);
    scene.advance(40 * DAY);
    const removeAll = async () => {
      const removed: number[] = [];
      for (let next: number | undefined = 0; next !== undefined; ) {
        const pruned = await scene.store.upkeep.prune(month, next);
        removed.push(...pruned.removed.map(({ id }) => id));
        next = pruned.next;
      }
      return removed;
    };
    expect(await removeAll()).toHaveLength(1);

    const [id] = await scene.import({ stands: 'succeeded', executions: 1, endedAt, key: 'k' });
    expect(await scene.find(id as number)).toMatchObject({ state: 'succeeded', endedAt });
    expect(await removeAll()).toEqual([id]);
    expect(await scene.store.records.find({ key: 'k' })).toBeUndefined();
  });

  describe('afterwards', () => {
    test('an imported task that ended can be retried in a new round, and one that needs a person can be resolved', async () => {
      const [dead, asked] = (await scene.import(
        { stands: 'dead', ...TRIED },
        { stands: 'needs_manual', ...TRIED },
      )) as [number, number];
      expect(await scene.move(dead, { verb: 'retry' })).toMatchObject({ moved: true, from: 'dead', to: 'ready' });
      expect(await scene.find(dead)).toMatchObject({ executions: 4, charged: [] });
      expect(await scene.move(asked, { verb: 'resolve', as: 'dead' })).toMatchObject({ moved: true, to: 'dead' });
      expect(await scene.find(asked)).toMatchObject({ reason: 'fs.locked', charged: [LOCKED] });
    });

    test('a held task continues at its time when it is released, with its counts', async () => {
      const dueAt = scene.now() + 60_000;
      const [id] = (await scene.import({ stands: 'held', dueAt, ...TRIED })) as [number];
      expect(await scene.move(id, { verb: 'release' })).toMatchObject({ moved: true, to: 'scheduled' });
      expect(await scene.find(id)).toMatchObject({ dueAt, charged: [LOCKED] });
    });

    test('an imported task past its deadline is handed out to be ended, unless it had ended already', async () => {
      const deadline = scene.now() - 1;
      const [waiting] = await scene.import({ deadline, ...TRIED }, { stands: 'dead', deadline, ...TRIED });
      const recovered = await scene.recover(await scene.join());

      expect(recovered).toMatchObject([{ why: 'expiry', lease: { task: waiting } }]);
      expect(recovered[0]?.facts.charged).toEqual([LOCKED]);
      await scene.settle(recovered[0] as (typeof recovered)[number], ended('dead', 'deadline.passed'));
    });

    test('an imported task succeeds or fails like any other', async () => {
      const [a, b] = (await scene.import({ ...TRIED }, { ...TRIED })) as [number, number];
      const worker = await scene.join();
      await scene.settle(await scene.claimTask(worker, a), succeeded());
      await scene.settle(await scene.claimTask(worker, b), ended('needs_manual'), {
        report: { ranFor: 1, outcome: 'failure', failure: failure() },
      });
      expect(await scene.find(a)).toMatchObject({ state: 'succeeded', executions: 5 });
      expect(await scene.find(b)).toMatchObject({ state: 'needs_manual', charged: [{ ...LOCKED, count: 4 }] });
    });
  });

  test.runIf(factory.openSecond)('is seen by another process once it is acknowledged', async () => {
    const second = await scene.openSecond();
    const [id] = await scene.import({ key: 'k', stands: 'dead', ...TRIED });

    expect(await second.records.find(id as number)).toMatchObject({ key: 'k', state: 'dead', charged: [LOCKED] });
    expect(await second.tasks.import([imported({ key: 'k' })])).toEqual([{ id, created: false }]);
  });
}
