import type { Execution } from './execution.ts';

/**
 * The executions of a worker. Each one stays here until its handler has ended and it is settled. They are in an array whose gaps
 * are filled with the last element: a Map or Set that thousands pass through keeps garbage alive and uses more memory.
 */
export class Executions {
  readonly #all: Execution[] = [];
  #running = 0;
  #unsettled = 0;

  get all(): readonly Execution[] {
    return this.#all;
  }

  /** How many have a handler that has not ended: they keep their slots. */
  get running(): number {
    return this.#running;
  }

  /** How many are not settled yet; their leases are this worker's. */
  get unsettled(): number {
    return this.#unsettled;
  }

  add(execution: Execution): void {
    execution.at = this.#all.push(execution) - 1;
    this.#running += 1;
    this.#unsettled += 1;
  }

  /** Its handler has ended. */
  end(execution: Execution): void {
    this.#running -= 1;
    this.#drop(execution);
  }

  /** It is settled, or this process will not settle it. */
  leave(execution: Execution): void {
    execution.left = true;
    this.#unsettled -= 1;
    this.#drop(execution);
  }

  /** The one of this task whose handler has not ended. */
  find(task: number): Execution | undefined {
    return this.#all.find(({ ended, claimed }) => !ended && claimed.lease.task === task);
  }

  #drop(execution: Execution): void {
    if (!execution.ended || !execution.left) return;
    const last = this.#all.pop() as Execution;
    if (last === execution) return;
    this.#all[execution.at] = last;
    last.at = execution.at;
  }
}
