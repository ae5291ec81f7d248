import { setTimeout } from 'node:timers/promises';
import type { Retention } from '../retention.ts';
import type { PrunedTask, Store } from '../store/store.ts';

/** The shortest pause between two batches, in which others can write to the store. */
const SHORTEST_PAUSE_MS = 1;

/**
 * Removes every task whose retention is over, in batches, and returns how many it removed. After each batch it pauses for as long
 * as the batch took, so that others can write. The pause is real time, even if the store has a virtual clock.
 */
export async function removeOld(
  upkeep: Store['upkeep'],
  retention: Retention,
  onRemoved: (tasks: readonly PrunedTask[]) => void = () => {},
): Promise<number> {
  let count = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const began = performance.now();
    const { removed, next }: Awaited<ReturnType<typeof upkeep.prune>> = await upkeep.prune(retention, after);
    count += removed.length;
    onRemoved(removed);
    after = next;
    if (next !== undefined) await setTimeout(Math.max(performance.now() - began, SHORTEST_PAUSE_MS));
  }
  return count;
}
