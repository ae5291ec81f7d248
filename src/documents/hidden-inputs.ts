import { isRecord } from '../options.ts';
import type { Task } from '../queue/task-view.ts';
import type { CommandLine } from './command-line.ts';

/** The task as the reader may see it. */
export function seenBy({ hidesInputs = false }: CommandLine, task: Task): Task {
  if (!hidesInputs) return task;
  const { result: _, progress: __, ...rest } = task;
  return { ...rest, input: null };
}

/** A document of which no task or schedule shows its input, result and progress: they are null, and `hidden` is true. */
export function withoutInputs(content: unknown): unknown {
  if (Array.isArray(content)) return content.map(withoutInputs);
  if (!isRecord(content) || content instanceof Date) return content;
  if ('input' in content) {
    const { input: _, ...rest } = content;
    return { ...mapped(rest), input: null, ...('result' in rest && { result: null, progress: null }), hidden: true };
  }
  return mapped(content);
}

function mapped(content: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(content).map(([name, value]) => [name, withoutInputs(value)]));
}
