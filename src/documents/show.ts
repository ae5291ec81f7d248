import type { Operations } from '../queue/operations.ts';
import { type Answered, PolicyCache } from '../queue/policy-cache.ts';
import type { Task } from '../queue/task-view.ts';
import type { RedriveOfTask } from '../store/redrives.ts';
import type { HistoryEntry } from '../store/store.ts';
import { budgetJson, budgetOf } from '../views/budget.ts';
import { historyJson, taskJson } from '../views/json-shapes.ts';
import { redriveOfTaskJson } from '../views/redrive-text.ts';

/** A task with what belongs to it. */
export interface ShownTask {
  readonly task: Task;
  readonly history: readonly HistoryEntry[];
  readonly redrive: RedriveOfTask | undefined;
  readonly answer: Answered['answer'];
}

export async function shownTask(holdfast: Operations, task: Task): Promise<ShownTask> {
  const history = await holdfast.history(task.id);
  const redrive = await holdfast.redrives.ofTask(task.id);
  const { answer } = await new PolicyCache(holdfast).answerTo(task);
  return { task, history, redrive, answer };
}

/** The content of `holdfast show ID --json`. */
export function showContent({ task, history, redrive, answer }: ShownTask): object {
  return {
    task: taskJson(task),
    budget: budgetJson(budgetOf(task, answer, history)),
    history: history.map(historyJson),
    redrive: redriveOfTaskJson(redrive),
  };
}
