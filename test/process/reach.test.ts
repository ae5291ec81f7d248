import { describe, expect, test } from 'vitest';
import { type StoreKind, useScene } from '../who-pays/scene.ts';

/** Nothing here may wait for a renewal, which comes after ten seconds. */
const PATIENT = { worker: { leaseFor: '30s' } };

/** A second is promised for a cancel, and two for a takeover; the rest is for a busy machine. */
const SOON_MS = 5_000;

async function timeOf(what: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await what();
  return performance.now() - started;
}

describe.each<StoreKind>(['sqlite', 'postgres'])('on one host, with %s', (kind) => {
  const scene = useScene(kind);

  test('a cancel reaches a running handler of another process long before its next renewal', async () => {
    const id = await scene().enqueue({ does: 'untilAborted' });
    const worker = await scene().worker('worker', PATIENT);
    await worker.says({ running: id });

    const took = await timeOf(async () => {
      await scene().holdfast.cancel(id);
      await worker.says({ settled: id, state: 'cancelled' });
    });

    expect(took).toBeLessThan(SOON_MS);
  });

  test('the tasks of a killed process are taken over soon by a worker that came before it', async () => {
    const other = await scene().worker('other', { ...PATIENT, types: ['other'] });
    const id = await scene().enqueue({ does: 'untilTold' });
    const killed = await scene().worker('killed', PATIENT);
    await killed.says({ running: id });

    const took = await timeOf(async () => {
      killed.signal('SIGKILL');
      await other.says({ settled: id });
    });

    expect(took).toBeLessThan(SOON_MS);
    expect(await scene().task(id)).toMatchObject({ state: 'ready', executions: 1 });
  });

  test('the tasks of a killed process are taken over soon by a worker that came after it', async () => {
    const id = await scene().enqueue({ does: 'untilTold' });
    const killed = await scene().worker('killed', PATIENT);
    await killed.says({ running: id });
    const other = await scene().worker('other', { ...PATIENT, types: ['other'] });

    const took = await timeOf(async () => {
      killed.signal('SIGKILL');
      await other.says({ settled: id });
    });

    expect(took).toBeLessThan(SOON_MS);
  });
});
