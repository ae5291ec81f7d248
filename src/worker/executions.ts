import type { Execution } from './execution.ts';

/**
 * The executions of a worker: each until its handler has ended and it is settled too, whichever comes last. They stand in an
 * array, out of which the last one fills gaps: a Map or Set through which thousands pass keeps garbage alive and memory high.
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

  /** How many have a lease of this worker's, until what they ended with is written. */
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

  /** It is settled, or never will be from here. */
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
