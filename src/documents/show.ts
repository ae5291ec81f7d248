import { HoldfastError } from '../errors.ts';
import type { Operations } from '../queue/operations.ts';
import { type Answered, PolicyCache } from '../queue/policy-cache.ts';
import type { Task } from '../queue/task-view.ts';
import type { RedriveOfTask } from '../store/redrives.ts';
import type { HistoryEntry } from '../store/store.ts';
import { budgetJson, budgetOf } from '../views/budget.ts';
import { historyJson, taskJson } from '../views/json-shapes.ts';
import { redriveOfTaskJson } from '../views/redrive-text.ts';
import { choicesJson } from './choices.ts';
import type { CommandLine } from './command-line.ts';
import { explanationParts } from './explain.ts';
import { seenBy } from './hidden-inputs.ts';

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
export async function showContent(commands: CommandLine, holdfast: Operations, shown: ShownTask): Promise<object> {
  const { task, history, redrive, answer } = shown;
  return {
    task: taskJson(task),
    budget: budgetJson(budgetOf(task, answer, history)),
    history: history.map(historyJson),
    redrive: redriveOfTaskJson(redrive),
    choices: choicesJson(commands, seenBy(commands, task), history),
    explain: await explanationOf(commands, holdfast, task),
  };
}

/** Null if a newer version wrote policy options that this one does not know. The rest is shown all the same. */
async function explanationOf(commands: CommandLine, holdfast: Operations, { id }: Task): Promise<object | null> {
  try {
    return explanationParts(commands, await holdfast.explain(id));
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}
