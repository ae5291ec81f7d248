import type { Limits } from '../pace.ts';
import type { Operations } from '../queue/operations.ts';
import type { QueueCounts } from '../store/store.ts';
import type { QueueOrder } from '../task.ts';
import { type DoneBy, doneByJson } from '../views/done-by.ts';
import { limitsJson } from '../views/source-list.ts';
import { rfc3339 } from '../views/times.ts';

/** How many scheduled tasks are read to find their queues: those that fall due next. */
const MOST_SCHEDULED = 20_000;

/** A queue as it is shown. */
export interface Queue extends QueueCounts, Limits {
  readonly order: QueueOrder;
  readonly fair: boolean;
  readonly paused?: DoneBy;
  /** Since when its oldest ready task waits, if it is fifo, and its longest execution runs. */
  readonly oldestReady?: number;
  readonly oldestRunning?: number;
}

/** All queues that were ever used, and what is in them. */
export async function queuesOf(holdfast: Operations): Promise<Queue[]> {
  const { administration } = holdfast;
  const settings = new Map((await holdfast.queues()).map(({ name, ...record }) => [name, record]));
  const ready = new Map(
    (await administration.oldestReady()).map(({ queue, since }) => [queue, { oldestReady: since }]),
  );
  const running = new Map(
    (await administration.oldestRunning()).map(({ queue, since }) => [queue, { oldestRunning: since }]),
  );
  return (await administration.countsBy('queue', MOST_SCHEDULED)).map((counts) => ({
    order: 'fifo',
    fair: false,
    ...settings.get(counts.name),
    ...ready.get(counts.name),
    ...running.get(counts.name),
    ...counts,
  }));
}

export async function queueNamed(holdfast: Operations, name: string): Promise<Queue | undefined> {
  return (await queuesOf(holdfast)).find((queue) => queue.name === name);
}

/** A queue of `holdfast queues --json`. */
export function queueJson(queue: Queue): object {
  const { name, order, fair, paused, ready, running, scheduled, exact, oldestReady, oldestRunning } = queue;
  return {
    name,
    order,
    fair,
    limits: limitsJson(queue),
    paused: doneByJson(paused),
    ready,
    running,
    oldest_ready_at: rfc3339(oldestReady),
    oldest_running_at: rfc3339(oldestRunning),
    scheduled: { value: scheduled, exact },
  };
}
