import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defineTask, exponential, Failed, type WorkerEvent } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

const LOCKED_FOR = 20_000;
const retry = {
  maxAttempts: 8,
  backoff: exponential({ base: '1s', cap: '5m' }),
  adaptive: true,
  jitter: 'none',
} as const;

test('delays adapt to what retries for the same reason at the same source did, whichever worker ran them', async () => {
  const path = join(folder(), 'tasks.db');
  let now = () => 0;
  const began = new Map<number, number>();
  const tasks = ['move', 'other'].map((type) =>
    defineTask(type, {
      retry,
      source: (input: { source: string }) => input.source,
      run(_, { id }) {
        began.set(id, began.get(id) ?? now());
        if (now() < (began.get(id) as number) + LOCKED_FOR)
          throw new Failed('in use', { reason: 'fs.locked', kind: 'transient' });
      },
    }),
  );
  const events: Extract<WorkerEvent, { kind: 'settled' }>[] = [];
  const worker = { concurrency: 10, onEvent: (event: WorkerEvent) => event.kind === 'settled' && events.push(event) };
  const round = async (kit: Awaited<ReturnType<typeof open>>, type: string, source: string, count: number) => {
    now = () => kit.clock.now();
    const receipts = await kit.holdfast.enqueueAll(
      type,
      Array.from({ length: count }, () => ({ source })),
    );
    await kit.advance('2m');
    const ids = new Set(receipts.map(({ id }) => id));
    const own = events.filter(({ task }) => ids.has(task.lease.task));
    return { executions: own.length / count, formulas: own.map(({ decision }) => decision.because.formula) };
  };

  const kit = await open({ tasks, worker, store: aStore(path) });
  const first = await round(kit, 'move', 's', 10);
  expect(first).toMatchObject({ executions: 6 });
  expect(first.formulas[0]).toContain('not adapted: 0 of the 20');
  await round(kit, 'move', 's', 10);
  const start = new Date(kit.clock.now() + 1_000);

  const second = await open({ tasks, worker, store: aStore(path), start, workerName: 'second' });
  const adapted = await round(second, 'move', 's', 10);
  expect(adapted.executions).toBeLessThan(4);
  expect(adapted.formulas).toContainEqual(
    expect.stringMatching(/retry 1, adapted to delay 6: of retries .* 0 of 10 after 1s.* 20 of 20 after 32s$/),
  );
  // Another source, and another type, learn by themselves.
  expect(await round(second, 'move', 't', 1)).toMatchObject({ executions: 6 });
  expect(await round(second, 'other', 's', 1)).toMatchObject({ executions: 6 });
  const foreseen = await second.holdfast.explainError(
    new Failed('in use', { reason: 'fs.locked', kind: 'transient' }),
    { type: 'move', source: 's' },
  );
  expect(foreseen.text).toContain('adapted to delay 6');
});
