import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../../duration.ts';
import { keepFor, type RemovableState, type Retention } from '../../retention.ts';
import { CHANGES_KEPT_FOR_MS, MOST_CHANGES } from '../changes.ts';
import { LISTED_FOR_MS } from '../redrive-row.ts';
import type { ActionTaken, PruneCount, Pruned, PrunedTask } from '../store.ts';
import type { Counting } from './counters.ts';
import type { Database } from './database.ts';

/** The chores that one process does for all. */
export class Chores {
  readonly #database: Database;

  readonly #counting: Counting;

  constructor(database: Database, counting: Counting) {
    this.#database = database;
    this.#counting = counting;
  }

  async prunable(retention: Retention): Promise<readonly PruneCount[]> {
    const rows = await this.#database.call<readonly Ripe[] | null>('ripe', [await this.#limitsOf(retention)]);
    return (rows ?? []).map(({ state, reason, count }) =>
      reason === null ? { state, count } : { state, reason, count },
    );
  }

  async prune(retention: Retention, after = 0): Promise<Pruned> {
    return prunedFrom(
      await this.#database.call<PrunedRows>('prune', [randomUUID(), await this.#limitsOf(retention), after]),
    );
  }

  async remove(ids: readonly number[], states: readonly RemovableState[], after = 0): Promise<Pruned> {
    return prunedFrom(await this.#database.call<PrunedRows>('remove_ended', [randomUUID(), ids, states, after]));
  }

  async tidy(): Promise<number> {
    // Goes on with a new order of a queue, if the process that set it ended in between. In its own transaction, because it locks tasks.
    if (await this.#database.call<boolean>('reorder', [])) return 1;
    if (await this.#counting.tidy()) return 1;
    return this.#database.call('tidy', [LISTED_FOR_MS, CHANGES_KEPT_FOR_MS, MOST_CHANGES]);
  }

  takeTurn(chore: string, every: Milliseconds): Promise<boolean> {
    return this.#database.call('take_turn', [randomUUID(), chore, every]);
  }

  async takeActions(limit: number): Promise<readonly ActionTaken[]> {
    const rows = await this.#database.call<readonly (Omit<ActionTaken, 'note'> & { note: string | null })[] | null>(
      'take_steps',
      [randomUUID(), limit],
    );
    return (rows ?? []).map(({ note, ...step }) => (note === null ? step : { ...step, note }));
  }

  /** How long each existing state and reason is kept. */
  async #limitsOf(retention: Retention): Promise<string> {
    const there = await this.#database.call<readonly { state: RemovableState; reason: string | null }[] | null>(
      'rested',
      [],
    );
    const limits = [{ state: 'succeeded' as const, reason: null }, ...(there ?? [])].flatMap(({ state, reason }) => {
      const kept = keepFor(retention, state, reason ?? undefined);
      return kept === 'never' ? [] : [[state, reason, kept]];
    });
    return JSON.stringify(limits);
  }
}

interface Ripe {
  readonly state: RemovableState;
  readonly reason: string | null;
  readonly count: number;
}

interface PrunedRows {
  readonly removed: readonly (Omit<PrunedTask, 'reason'> & { readonly reason: string | null })[] | null;
  readonly next: number | null;
}

function prunedFrom({ removed, next }: PrunedRows): Pruned {
  const tasks = (removed ?? []).map(({ reason, ...task }) => (reason === null ? task : { ...task, reason }));
  return next === null ? { removed: tasks } : { removed: tasks, next };
}
