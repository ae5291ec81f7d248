import { newCondition } from '../source/condition.ts';
import { aged, isNormal, NORMAL } from '../source/memory.ts';
import { changeTo } from '../source/restriction.ts';
import { readMemory } from '../source/stored.ts';
import { factsOfCondition } from '../store/changes.ts';
import type { Store } from '../store/store.ts';

/**
 * Removes the states of sources that are normal again. Otherwise only an outcome removes a state, so a source without tasks would
 * keep its own. While a store has any state, its claims cost a little more.
 */
export async function forgetNormalSources({ records, sources }: Pick<Store, 'records' | 'sources'>): Promise<void> {
  for (const { name, state } of await records.sources()) {
    if (state === undefined || !isNormal(aged(readMemory(state.memory), state.age))) continue;
    const condition = newCondition(aged(readMemory(state.memory), state.age), NORMAL, { refunds: [] });
    // If an outcome has changed the state meanwhile, that change stays.
    await sources.change(name, {
      revision: state.revision,
      change: { ...changeTo(NORMAL), ...(condition && { facts: factsOfCondition(condition) }) },
    });
  }
}
