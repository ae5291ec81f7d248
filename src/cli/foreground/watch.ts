import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import type { HistoryEntry } from '../../store/store.ts';
import { heldSentence } from '../../views/task-text.ts';

/** How often changes by other processes are looked up. Changes by this process are shown at once. */
export const LOOK_EVERY_MS = 400;

/** Reading all tasks takes at most one tenth of the time, so that a thousand tasks are not read again for each that ends. */
const LOOKING_SHARE = 10;

/** What happened to a task since the last look. */
export interface Change {
  readonly before: Task;
  readonly task: Task;
  /** The new entries of its history, oldest first, and the whole history. */
  readonly news: readonly HistoryEntry[];
  readonly history: readonly HistoryEntry[];
}

interface Seen {
  readonly task: Task;
  readonly entries: ReadonlySet<string>;
}

/** Watches tasks until each is over, whichever process runs them. */
export class Watch {
  readonly #holdfast: Operations;
  readonly #isOver: (task: Task) => boolean;
  readonly #seen = new Map<number, Seen>();
  readonly #open = new Set<number>();
  readonly #touched = new Set<number>();
  #lookAroundAt = 0;

  private constructor(holdfast: Operations, isOver: (task: Task) => boolean) {
    this.#holdfast = holdfast;
    this.#isOver = isOver;
  }

  /** Begins to watch. Only later changes are reported. */
  static async start(holdfast: Operations, tasks: readonly Task[], isOver: (task: Task) => boolean): Promise<Watch> {
    const watch = new Watch(holdfast, isOver);
    for (const task of tasks) {
      watch.#seen.set(task.id, { task, entries: new Set((await holdfast.history(task.id)).map(nameOf)) });
      if (!isOver(task)) watch.#open.add(task.id);
    }
    return watch;
  }

  /** The tasks as they were seen last, in the order in which they were given. */
  get tasks(): readonly Task[] {
    return [...this.#seen.values()].map(({ task }) => task);
  }

  /** The tasks that are not over. */
  get open(): readonly Task[] {
    return [...this.#open].map((id) => (this.#seen.get(id) as Seen).task);
  }

  /** Something happened to this task, so the next look reads it. */
  touch(id: number): void {
    this.#touched.add(id);
  }

  /** Reads the touched tasks, and sometimes all tasks, to find changes by other processes. */
  async lookAgain(): Promise<Change[]> {
    const began = performance.now();
    const around = began >= this.#lookAroundAt;
    const ids = around ? [...this.#open] : [...this.#touched];
    this.#touched.clear();
    const changes = await this.look(ids);
    const took = performance.now() - began;
    if (around) this.#lookAroundAt = began + Math.max(LOOK_EVERY_MS, LOOKING_SHARE * took);
    return changes;
  }

  /** The changes since the last look to these tasks, or to all that are not over. */
  async look(ids: Iterable<number> = [...this.#open]): Promise<Change[]> {
    const changes: Change[] = [];
    for (const id of ids) {
      if (!this.#open.has(id)) continue;
      const { task: before, entries } = this.#seen.get(id) as Seen;
      const task = await this.#holdfast.find(id);
      if (!task) {
        // It was removed by age, so it had ended. How it ended is unknown.
        this.#open.delete(id);
        continue;
      }
      if (signatureOf(task) === signatureOf(before)) continue;
      const history = await this.#holdfast.history(id);
      this.#seen.set(id, { task, entries: new Set(history.map(nameOf)) });
      if (this.#isOver(task)) this.#open.delete(id);
      changes.push({ before, task, history, news: history.filter((entry) => !entries.has(nameOf(entry))) });
    }
    return changes;
  }
}

/** Differs after each change of a task that is worth showing. */
function signatureOf(task: Task): string {
  const { state, executions, dueAt, attempts, deferrals, recoveries, reason, running, heldBy } = task;
  const held = heldSentence(task) === undefined ? undefined : heldBy;
  return JSON.stringify([state, executions, dueAt, attempts, deferrals, recoveries, reason, running, held]);
}

function nameOf(entry: HistoryEntry): string {
  switch (entry.kind) {
    case 'action':
      return `act ${entry.at} ${entry.verb} ${entry.actor}`;
    case 'stray':
      return `stray ${entry.at} ${entry.execution}`;
    case 'execution':
      return `execution ${entry.execution} ${entry.endedAt} ${entry.late}`;
  }
}
