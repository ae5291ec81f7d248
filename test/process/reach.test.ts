import { describe, expect, test } from 'vitest';
import { type StoreKind, useScene } from '../who-pays/scene.ts';

/** A renewal comes after 200 s only: what waits for one fails by the time limit of tests, on a busy machine too. */
const PATIENT = { worker: { leaseFor: '10m' } };

describe.each<StoreKind>(['sqlite', 'postgres'])('on one host, with %s', (kind) => {
  const scene = useScene(kind);

  test('a cancel reaches a running handler of another process without waiting for its next renewal', async () => {
    const id = await scene().enqueue({ does: 'untilAborted' });
    const worker = await scene().worker('worker', PATIENT);
    await worker.says({ running: id });

    await scene().holdfast.cancel(id);

    await worker.says({ settled: id, state: 'cancelled' });
  });

  test.each(['queue', 'source'])(
    'a held %s stops a worker of another process that has claimed tasks ahead',
    async (what) => {
      const { holdfast } = scene();
      const work = { does: 'work', ms: 1 };
      const options = { queue: 'night', source: 'imap' };
      const count = 3_000;
      const [first] = await holdfast.enqueueAll('work', Array(count).fill(work), options);
      const last = (first?.id as number) + 200;
      const worker = await scene().worker('worker', { worker: { ...PATIENT.worker, concurrency: 1 } });
      await worker.says({ settled: last });

      if (what === 'queue') await holdfast.pauseQueue('night');
      else await holdfast.sources.hold('imap');
      const left = async () => {
        const id = await scene().enqueue({ does: 'succeed' });
        await worker.says({ settled: id });
        return (await holdfast.counts()).byState;
      };
      const { ready, running } = await left();

      expect(running).toBe(0);
      expect(ready).toBeGreaterThan(0);
      expect((await left()).ready).toBe(ready);
    },
  );

  test('the tasks of a killed process are taken over soon by a worker that came before it', async () => {
    const other = await scene().worker('other', { ...PATIENT, types: ['other'] });
    const id = await scene().enqueue({ does: 'untilTold' });
    const killed = await scene().worker('killed', PATIENT);
    await killed.says({ running: id });

    killed.signal('SIGKILL');

    await other.says({ settled: id });
    expect(await scene().task(id)).toMatchObject({ state: 'ready', executions: 1 });
  });

  test('the tasks of a killed process are taken over soon by a worker that came after it', async () => {
    const id = await scene().enqueue({ does: 'untilTold' });
    const killed = await scene().worker('killed', PATIENT);
    await killed.says({ running: id });
    const other = await scene().worker('other', { ...PATIENT, types: ['other'] });

    killed.signal('SIGKILL');

    await other.says({ settled: id });
  });
});
