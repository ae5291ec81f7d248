import { readStored } from '../stored-json.ts';
import { meets, type Needs } from '../task.ts';
import type { Takes } from './store.ts';

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

/** What a worker takes, from its row. If that cannot be read: any task without needs. */
export function takesFrom(text: string): Takes {
  const { capabilities = {}, ...others } = readStored<Partial<Takes>>(text, 'takes', [], {});
  return { ...others, capabilities };
}

/** Needs as text: the same text for the same needs in any order. */
export function needsText(needs: Needs = {}): string {
  return JSON.stringify(Object.fromEntries(Object.entries(needs).sort(([a], [b]) => (a < b ? -1 : 1))));
}
