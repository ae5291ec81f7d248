import { aged, isNormal, NORMAL } from '../source/memory.ts';
import { changeTo } from '../source/restriction.ts';
import { readMemory } from '../source/stored.ts';
import type { Store } from '../store/store.ts';

/**
 * Forgets sources that are in their normal state again and have had no task since, so that no outcome has told their store. As long
 * as a store remembers any source, its claims ask a little more.
 */
export async function forgetNormalSources({ records, sources }: Pick<Store, 'records' | 'sources'>): Promise<void> {
  for (const { name, state } of await records.sources()) {
    if (state === undefined || !isNormal(aged(readMemory(state.memory), state.age))) continue;
    // Where an outcome has changed it meanwhile, that stands.
    await sources.change(name, { revision: state.revision, change: changeTo(NORMAL) });
  }
}
