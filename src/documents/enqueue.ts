import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import { taskJson } from '../views/json-shapes.ts';
import { isOwnType } from '../views/task-text.ts';

/** Whether a worker or an earlier task had this type. */
export async function isKnownType(holdfast: Operations, type: string): Promise<boolean> {
  if (isOwnType(type) || (await holdfast.administration.isPublished(type))) return true;
  return (await holdfast.list({ types: [type], limit: 1 })).length > 0;
}

/** The content of `holdfast enqueue TYPE --json`. */
export function enqueueContent(task: Task, created: boolean, isKnown: boolean): object {
  return { created, known_type: isKnown, task: taskJson(task) };
}
