import { describe, expect, test, vi } from 'vitest';
import { type StoreKind, useScene } from '../who-pays/scene.ts';

const TASKS = 150;

/** Workers that look often for what others left. */
const LOOKING = { worker: { leaseFor: '2s' } };

describe.each<StoreKind>(['sqlite', 'postgres'])('a redrive whose worker is killed in the middle, on %s', (kind) => {
  const scene = useScene(kind);

  test('goes on in another process: each task is put back once, and none is forgotten', async () => {
    const { holdfast } = scene();
    const dead = {
      type: 'work',
      input: { does: 'succeed' },
      state: 'dead',
      reason: 'net.reset',
      executions: 1,
    } as const;
    const receipts = await holdfast.importTasks(Array.from({ length: TASKS }, () => dead));
    const { id } = await holdfast.redrive({ filter: {}, note: 'it works again', rate: '25/s' });

    // In the middle of the stages, and again at the rate.
    for (const [name, settled] of [
      ['first', 5],
      ['second', 60],
    ] as const) {
      const worker = await scene().worker(name, LOOKING);
      const count = () => holdfast.counts().then(({ byState }) => byState.succeeded);
      await vi.waitFor(async () => expect(await count()).toBeGreaterThanOrEqual(settled), {
        timeout: 60_000,
        interval: 20,
      });
      worker.signal('SIGKILL');
      await worker.ended;
    }
    expect((await holdfast.redrives.get(id)).state).toBe('running');
    const last = await scene().worker('last', LOOKING);
    const redrive = () => holdfast.redrives.get(id);
    await vi.waitFor(async () => expect((await redrive()).state).toBe('done'), { timeout: 60_000, interval: 50 });
    last.signal('SIGTERM');
    await last.ended;

    expect(await redrive()).toMatchObject({ selected: TASKS, putBack: TASKS, skipped: 0, failedAgain: 0 });
    let lost = 0;
    for (const receipt of receipts) {
      const history = await holdfast.history(receipt.id);
      lost += history.filter((entry) => entry.kind === 'execution' && entry.outcome === 'loss').length;
      const putBack = history.filter((entry) => entry.kind === 'action' && entry.verb === 'redrive');
      expect(putBack).toHaveLength(1);
    }
    const { byState } = await holdfast.counts();
    expect(byState).toMatchObject({ succeeded: TASKS, dead: 0, ready: 0, scheduled: 0, running: 0 });
    // Each outcome is counted once, whoever was killed.
    const { total } = await holdfast.stats();
    expect(total).toMatchObject({ executions: TASKS + lost, successes: TASKS, failures: 0, uncharged: { lost } });
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });
});
