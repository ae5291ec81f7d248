import type { Operations } from '../queue/operations.ts';
import type { LastTaker, WorkerRecord } from '../store/store.ts';
import { type Lack, lackOf, type TaskKind } from '../views/lack.ts';
import { programToStart } from '../views/last-taker.ts';

const FOREGROUND = 'foreground-';

/** The name of the worker in a foreground command. It takes only its own tasks. */
export function foregroundName(pid: number): string {
  return `${FOREGROUND}${pid}`;
}

/** Whether a worker takes any due task, unlike that of a `run`, `mv` or `resume` and unlike a claim by hand. */
export function worksAll({ name, takes }: WorkerRecord): boolean {
  return !name.startsWith(FOREGROUND) && takes.types?.length !== 0;
}

/** Whether a running worker takes due tasks. */
export async function someoneWorks(holdfast: Operations): Promise<boolean> {
  return (await holdfast.workers()).some((worker) => worksAll(worker) && worker.keepsTasks);
}

export interface MissingWorkers {
  readonly noneRuns: boolean;
  /** The types of which no running worker takes any task. */
  readonly types: readonly string[];
  /** Why no running worker takes others: their queues, categories and needs. */
  readonly lacks: readonly Lack[];
  /** What to start for one of them that no command of ours can run. */
  readonly toStart: (type: string) => string;
}

/** What is missing for tasks of these kinds. */
export async function missingWorkers(holdfast: Operations, kinds: readonly TaskKind[]): Promise<MissingWorkers> {
  const alive = (await holdfast.workers()).filter((worker) => worksAll(worker) && worker.keepsTasks);
  const types = new Set<string>();
  const lacks = new Map<string, Lack>();
  for (const kind of kinds) {
    const lack = lackOf(alive, kind);
    if (lack?.of === 'type') types.add(kind.type);
    else if (lack) lacks.set(lack.words, lack);
  }
  return {
    noneRuns: alive.length === 0,
    types: [...types],
    lacks: [...lacks.values()],
    toStart: await programsToStart(holdfast, [...types]),
  };
}

/** What to start for a task of one of these types, and when that was last seen. */
async function programsToStart(holdfast: Operations, types: readonly string[]): Promise<(type: string) => string> {
  const takers: readonly LastTaker[] = types.length === 0 ? [] : await holdfast.administration.lastTakers(types);
  const now = holdfast.now();
  return (type) =>
    programToStart(
      takers.find((taker) => taker.type === type),
      now,
    );
}

/** The names of lost workers, which no longer hold their tasks. */
export async function lostWorkers(holdfast: Operations): Promise<ReadonlySet<string>> {
  const workers = await holdfast.workers();
  const kept = new Set(workers.filter(({ keepsTasks }) => keepsTasks).map(({ name }) => name));
  return new Set(workers.map(({ name }) => name).filter((name) => !kept.has(name)));
}
