import { describe, expect, test, vi } from 'vitest';
import { type StoreKind, useScene } from '../who-pays/scene.ts';

const TASKS = 120;
const ATTEMPTS = 3;

describe.each<StoreKind>(['sqlite', 'postgres'])('groups of failures whose workers are killed, on %s', (kind) => {
  const scene = useScene(kind);

  test('count each failure that was written, once', async () => {
    const { holdfast } = scene();
    const program = {
      worker: { leaseFor: '2s', concurrency: 4 },
      task: { retry: { maxAttempts: ATTEMPTS, backoff: 'immediate' } },
    };
    for (let n = 0; n < TASKS; n += 1)
      await scene().enqueue({ does: 'throw', error: { message: `broken: part ${n}` } });
    const ended = async () => {
      const { byState } = await holdfast.counts();
      return byState.dead + byState.needs_manual;
    };
    for (const until of [10, 40, 70]) {
      const worker = await scene().worker(`killed at ${until}`, program);
      await vi.waitFor(async () => expect(await ended()).toBeGreaterThanOrEqual(until), {
        timeout: 60_000,
        interval: 5,
      });
      worker.signal('SIGKILL');
      await worker.ended;
      // The groups are read while entries of the killed worker are left.
      await holdfast.failures.list();
    }
    const last = await scene().worker('last', program);
    await vi.waitFor(async () => expect(await ended()).toBe(TASKS), { timeout: 60_000, interval: 50 });
    last.signal('SIGTERM');
    await last.ended;

    let written = 0;
    for (let id = 1; id <= TASKS; id += 1) {
      written += (await scene().executions(id)).filter(({ failure }) => failure !== undefined).length;
    }
    const groups = await holdfast.failures.list();
    const sum = (of: 'count' | 'dead' | 'needsManual') => groups.reduce((total, group) => total + group[of], 0);
    expect(sum('count')).toBe(written);
    expect(sum('dead') + sum('needsManual')).toBe(TASKS);
  });
});
