import type { Lease } from '../store/store.ts';

/** The handlers of one worker. */
export interface WorkerHandlers {
  /** The tasks whose handler runs without a lease, or soon may. */
  readonly withoutLease: readonly number[];
  /** Aborts the handler of an earlier execution of a task, because its lease was lost. Returns whether there is one. */
  abortEarlier(task: number): boolean;
}

/** The handlers of all workers of this process. A task whose handler still runs here is not started a second time here. */
export class OwnHandlers {
  readonly #workers = new Set<WorkerHandlers>();

  add(handlers: WorkerHandlers): void {
    this.#workers.add(handlers);
  }

  delete(handlers: WorkerHandlers): void {
    this.#workers.delete(handlers);
  }

  /** The tasks that no claim of this process may return. */
  get withoutLease(): readonly number[] {
    return [...this.#workers].flatMap(({ withoutLease }) => withoutLease);
  }

  /**
   * Whether an earlier handler of a task that was just claimed still runs here. The store does not hand out leased tasks, so the
   * lease of that handler was lost, and its worker does not know yet. The handler is aborted now.
   */
  abortEarlier({ task, execution }: Lease): boolean {
    // For most tasks this is the first execution.
    return execution > 1 && [...this.#workers].some((handlers) => handlers.abortEarlier(task));
  }
}

/** Why such a claim is handed back. */
export const STILL_RUNS = {
  kind: 'interruption',
  started: false,
  message: 'Its handler still runs here, in an execution whose lease was lost.',
} as const;
