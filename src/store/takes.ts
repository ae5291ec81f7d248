import { readStored } from '../stored-json.ts';
import { meets, type Needs } from '../task.ts';
import type { LastTaker, ReadyKind, Takes } from './store.ts';

/** Whether a worker that takes these may run a task of this kind. */
export function takes(
  { types, queues, categories, capabilities }: Takes,
  task: { readonly queue: string; readonly type: string; readonly category: string; readonly needs: Needs },
): boolean {
  return (
    (!types || types.includes(task.type)) &&
    (!queues || queues.includes(task.queue)) &&
    (!categories || categories.includes(task.category)) &&
    meets(capabilities, task.needs)
  );
}

/** A queue, type, category and needs of tasks, as the stores keep them. */
export interface KindRow {
  readonly id: number;
  readonly queue: string;
  readonly type: string;
  readonly category: string;
  readonly needs: string;
}

/** Those of these kinds that none of these workers takes. */
export function kindsWithout(workers: readonly Takes[], kinds: readonly KindRow[]): readonly KindRow[] {
  return kinds.filter((kind) => {
    const needs = readStored<Needs>(kind.needs, 'needs', [], {});
    return !workers.some((worker) => takes(worker, { ...kind, needs }));
  });
}

/** So many of each of these kinds, without those of which none is ready. */
export function readyKinds(
  kinds: readonly KindRow[],
  counts: readonly { readonly id: number; readonly ready: number }[],
): readonly ReadyKind[] {
  const ready = new Map(counts.map((count) => [count.id, count.ready]));
  return kinds.flatMap(({ id, queue, type, category, needs: text }): ReadyKind[] => {
    const count = ready.get(id) ?? 0;
    if (count === 0) return [];
    const needs = readStored<Needs>(text, 'needs', [], {});
    const isAny = Object.keys(needs).length === 0;
    return [{ queue, type, ...(category !== '' && { category }), ...(!isAny && { needs }), ready: count }];
  });
}

/** What a worker takes, from its row. If that cannot be read: any task without needs. */
export function takesFrom(text: string): Takes {
  const { capabilities = {}, ...others } = readStored<Partial<Takes>>(text, 'takes', [], {});
  return { ...others, capabilities };
}

/** A worker, or what is remembered of one for a type. */
interface TakerRow {
  readonly worker: string;
  readonly host: string;
  readonly program: string | null;
  readonly at: number;
}

/** The last taker of each of these types: of the workers that are there, and of those that were. */
export function lastTakersFrom(
  types: readonly string[],
  workers: readonly (TakerRow & { readonly takes: string })[],
  gone: readonly (TakerRow & { readonly type: string })[],
): readonly LastTaker[] {
  const there = workers.map(({ takes, ...row }) => ({ ...row, names: takesFrom(takes).types ?? [] }));
  return types.flatMap((type) => {
    const takers = [...there.filter(({ names }) => names.includes(type)), ...gone.filter((row) => row.type === type)];
    const [last] = takers.sort((a, b) => b.at - a.at);
    if (!last) return [];
    const { worker, host, program, at } = last;
    return [{ type, worker, host, at, ...(program !== null && { program }) }];
  });
}

/** Needs as text: the same text for the same needs in any order. */
export function needsText(needs: Needs = {}): string {
  return JSON.stringify(Object.fromEntries(Object.entries(needs).sort(([a], [b]) => (a < b ? -1 : 1))));
}
