import { setTimeout } from 'node:timers/promises';
import type { Retention } from '../retention.ts';
import type { Store } from '../store/store.ts';

/** How long others have the store to themselves at least, between two batches. */
const SHORTEST_PAUSE_MS = 1;

/**
 * Removes every task whose time is up, in batches, and answers how many it removed. After each batch others have the store for as
 * long as it took. That is time of the host, whatever clock the store has: it is for whoever waits to write now.
 */
export async function removeOld(upkeep: Store['upkeep'], retention: Retention): Promise<number> {
  let count = 0;
  for (let after: number | undefined = 0; after !== undefined; ) {
    const began = performance.now();
    const { removed, next }: Awaited<ReturnType<typeof upkeep.prune>> = await upkeep.prune(retention, after);
    count += removed.length;
    after = next;
    if (next !== undefined) await setTimeout(Math.max(performance.now() - began, SHORTEST_PAUSE_MS));
  }
  return count;
}
