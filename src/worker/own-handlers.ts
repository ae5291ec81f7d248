import type { Lease } from '../store/store.ts';

/** The handlers of one worker. */
export interface WorkerHandlers {
  /** The tasks whose handler runs without a lease, or may soon. */
  readonly withoutLease: readonly number[];
  /** Tells the handler of an earlier execution of a task that its lease was lost. Answers whether one runs. */
  abortEarlier(task: number): boolean;
}

/**
 * The handlers of all workers of this process, until each worker has ended. A task whose handler still runs here is not started here
 * again beside it.
 */
export class OwnHandlers {
  readonly #workers = new Set<WorkerHandlers>();

  add(handlers: WorkerHandlers): void {
    this.#workers.add(handlers);
  }

  delete(handlers: WorkerHandlers): void {
    this.#workers.delete(handlers);
  }

  /** The tasks that no claim of this process may bring. */
  get withoutLease(): readonly number[] {
    return [...this.#workers].flatMap(({ withoutLease }) => withoutLease);
  }

  /**
   * Whether a handler of what was just claimed still runs here. The store gives nobody what is leased, so that one's lease was lost,
   * and it has not heard yet: it is told now.
   */
  abortEarlier({ task, execution }: Lease): boolean {
    // Of most tasks this is the first execution.
    return execution > 1 && [...this.#workers].some((handlers) => handlers.abortEarlier(task));
  }
}

/** A claim that met such a handler is handed back. */
export const STILL_RUNS = {
  kind: 'interruption',
  started: false,
  message: 'Its handler still runs here, in an execution whose lease was lost.',
} as const;
