import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import type { Receipt } from '../../src/store/store.ts';
import type { QueueOrder } from '../../src/task.ts';
import { type Child, useFolder, usePrograms } from './children.ts';

const { run } = usePrograms();
const folder = useFolder();

interface Waiting {
  readonly id: number;
  readonly queue: string;
  readonly priority: number;
  readonly submittedAt: number;
}

interface Batch {
  readonly queue: string;
  readonly batch: readonly number[];
}

const ORDERS: Record<Exclude<QueueOrder, 'weighted_random'>, (a: Waiting, b: Waiting) => number> = {
  fifo: (a, b) => a.submittedAt - b.submittedAt || a.id - b.id,
  lifo: (a, b) => b.submittedAt - a.submittedAt || b.id - a.id,
  priority: (a, b) => b.priority - a.priority || a.submittedAt - b.submittedAt || a.id - b.id,
};
const QUEUES = Object.keys(ORDERS) as (keyof typeof ORDERS)[];

/** Many ties, over types and sources of one task and of many. */
const tasks = fc.array(
  fc.record({
    type: fc.constantFrom('mail', 'move', 'scan'),
    source: fc.oneof(
      fc.constantFrom('big', 'other'),
      fc.nat({ max: 60 }).map((n) => `small-${n}`),
    ),
    priority: fc.constantFrom(0, 0, 1, 7, 4_095),
    submittedAt: fc.integer({ min: 1_700_000_000_000, max: 1_700_000_000_020 }),
  }),
  { minLength: 250, maxLength: 400 },
);

const limits = fc.record({
  fifo: fc.integer({ min: 1, max: 12 }),
  lifo: fc.constantFrom(1, 40),
  priority: fc.nat({ max: 90 }).map((n) => n + 1),
});

/**
 * A claim is one transaction that takes the very next tasks. So, whoever made them, all batches laid side by side are the
 * queue's order: a batch that jumped ahead, or left something out, would not be a piece of it.
 */
test('three processes that claim from one file at once take pieces of each queue’s exact order, whatever is in it', async () => {
  let file = 0;
  await fc.assert(
    fc.asyncProperty(tasks, fc.array(limits, { minLength: 3, maxLength: 3 }), async (given, each) => {
      file += 1;
      const path = join(folder(), `tasks-${file}.db`);
      const store = await sqlite(path).open({ clock: systemClock, random: Math.random });
      try {
        for (const order of QUEUES) await store.sources.setUp(order, { order });
        const children = each.map((limits, n) => run('claimBatches', path, { name: `claimer-${n}`, limits }));
        await Promise.all(children.map((child) => child.says('claiming')));

        const all = QUEUES.flatMap((queue) => given.map((task) => ({ ...task, queue, payload: '{}', delay: 0 })));
        const receipts = await store.tasks.enqueue(all);
        const waiting = all.map((task, n): Waiting => ({ ...task, id: (receipts[n] as Receipt).id }));
        const byProcess = await claimed(children, all.length);

        for (const queue of QUEUES) {
          const inOrder = waiting.filter((task) => task.queue === queue).sort(ORDERS[queue]);
          const places = new Map(inOrder.map(({ id }, place) => [id, place]));
          const pieces = byProcess.map((batches) =>
            batches
              .filter((one) => one.queue === queue)
              .map(({ batch }) => batch.map((id) => places.get(id) as number)),
          );
          const sideBySide = pieces.flat().sort(([a = -1], [b = -1]) => a - b);
          expect(sideBySide.flat(), queue).toEqual(inOrder.map((_, place) => place));
          // Nor did a process get an earlier piece after a later one.
          for (const own of pieces) expect(own.flat(), queue).toEqual(own.flat().toSorted((a, b) => a - b));
        }
        expect(await store.upkeep.verify()).toEqual([]);
      } finally {
        await store.upkeep.close();
      }
    }),
    { numRuns: 5, endOnFailure: true },
  );
});

/** What each process claimed, once they have claimed so many together; then they are told to end. */
async function claimed(children: readonly Child[], count: number): Promise<Batch[][]> {
  const batches = () =>
    children.map(({ said }) => said.filter((one): one is Batch => Object.hasOwn(Object(one), 'batch')));
  const haveAll = () =>
    batches()
      .flat()
      .flatMap(({ batch }) => batch).length >= count;
  await new Promise<void>((resolve) => {
    for (const { process } of children) process.stdout?.on('data', () => haveAll() && resolve());
    if (haveAll()) resolve();
  });
  for (const child of children) child.signal('SIGTERM');
  for (const child of children) await child.endsWell();
  return batches();
}
