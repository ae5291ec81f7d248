import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { defineTask, openHoldfast, type StoreOpener } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { aStore, lockOf } from '../a-store.ts';
import { openDatabases } from '../postgres/databases.ts';
import { startProxy } from '../postgres/proxy.ts';
import { gate, useFolder } from './scene.ts';

const folder = useFolder();

interface Place {
  /** As a service that stops comes to it, and as everybody else does. */
  readonly own: StoreOpener;
  readonly others: StoreOpener;
  /** Until the answer is called, the service cannot reach it. */
  block(): Promise<() => unknown>;
}

async function file(): Promise<Place> {
  const path = join(folder(), 'tasks.db');
  return { own: aStore(path), others: aStore(path), block: () => lockOf(path) };
}

async function server(): Promise<Place> {
  const databases = await openDatabases(async () => {});
  const database = await databases.take();
  const proxy = await startProxy(database.url);
  onTestFinished(async () => {
    await proxy.close();
    database.drop();
    await databases.close();
  });
  const block = async () => {
    proxy.swallow();
    return () => {
      proxy.cut();
      proxy.thaw();
    };
  };
  return { own: postgres(proxy.url(database.url)), others: postgres(database.url), block };
}

const PLACES = { SQLite: file, PostgreSQL: server };
const cases = (['SQLite', 'PostgreSQL'] as const).flatMap((kind) =>
  (['worker.stop()', 'holdfast.close()', 'holdfast.close() with a claim'] as const).map((how) => [how, kind] as const),
);

test.each(cases)(
  'after %s while %s cannot be reached, others get the tasks when it can',
  async (how, kind) => {
    const place = await PLACES[kind]();
    const begun = gate();
    const work = defineTask('work', {
      retry: { timeout: 'none' },
      async run(_: null, task) {
        begun.open();
        await new Promise((resolve) => task.signal.addEventListener('abort', resolve));
        throw task.signal.reason;
      },
    });
    const service = await openHoldfast({ store: place.own, tasks: [work] });
    const { id } = await service.enqueue(work, null);
    const worker = how === 'holdfast.close() with a claim' ? undefined : service.worker().start();
    if (worker) await begun.passed;
    else await service.claim();

    const unblock = await place.block();
    const stopped = await (how === 'worker.stop()' ? worker?.stop({ grace: 0 }) : service.close({ grace: 0 }));
    expect(stopped).toEqual({
      unwritten: [{ task: id, execution: 1, type: 'work', queue: 'default', source: 'work' }],
    });
    await unblock();

    const other = await openHoldfast({ store: place.others });
    onTestFinished(async () => {
      await other.close();
    });
    await vi.waitFor(async () => expect(await other.workers()).toEqual([]), { timeout: 20_000, interval: 50 });
    const claim = await vi.waitFor(
      async () => {
        const found = await other.claim({ types: ['work'] });
        expect(found).toBeDefined();
        return found;
      },
      { timeout: 20_000, interval: 50 },
    );
    // It was told to stop, so its tasks are no suspects.
    expect(claim).toMatchObject({ id, execution: 2, recovered: false });
    await claim?.complete(null);
    const again = await service.close();
    if (how === 'worker.stop()') expect(again).toEqual({ unwritten: [] });
    else expect(again).toEqual(stopped);
  },
  60_000,
);
