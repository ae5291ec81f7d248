import { InvalidInputError } from '../errors.ts';
import { parseFilter } from '../filter.ts';
import type { Operations } from '../queue/operations.ts';
import type { Task } from '../queue/task-view.ts';
import type { HistoryEntry } from '../store/store.ts';
import { taskJson } from '../views/json-shapes.ts';
import { lastDecision } from '../views/last-decision.ts';
import { endOf } from '../views/task-text.ts';
import { rfc3339 } from '../views/times.ts';
import { choicesJson } from './choices.ts';
import type { CommandLine } from './command-line.ts';
import { seenBy } from './hidden-inputs.ts';
import { endLine, nextSteps } from './next-steps.ts';

/** The most questions of one answer. */
export const MOST_QUESTIONS = 1_000;

/** The tasks that wait for a person: how many in all, and those that have waited longest. */
export interface Inbox {
  readonly total: number;
  readonly items: readonly Item[];
}

/** @throws InvalidFilterError; InvalidInputError if the filter has a state. */
export async function inboxOf(
  commands: CommandLine,
  holdfast: Operations,
  { filter: text, limit }: { readonly filter: string; readonly limit: number },
): Promise<Inbox> {
  const { states, ...filter } = parseFilter(text, new Date(holdfast.now()));
  if (states) {
    throw new InvalidInputError('The inbox has only tasks that need a person, so its filter has no state.');
  }
  const ids = await holdfast.administration.select({ ...filter, states: ['needs_manual'] });
  const shown = ids.slice(-limit).reverse();
  const items = await Promise.all(shown.map((id) => itemOf(commands, holdfast, id)));
  return { total: ids.length, items: items.filter((item) => item !== undefined) };
}

/** The content of `holdfast inbox --json`. */
export function inboxContent({ total, items }: Inbox): object {
  return { total, items: items.map(itemJson) };
}

/** A task that waits for a person, and what that person should know. */
interface Item {
  readonly task: Task;
  readonly since: number | undefined;
  readonly question: string;
  /** The end of its last execution. */
  readonly error: string;
  /** What to look at, and the commands that answer. */
  readonly steps: readonly string[];
  readonly choices: readonly object[];
}

async function itemOf(commands: CommandLine, holdfast: Operations, id: number): Promise<Item | undefined> {
  const found = await holdfast.find(id);
  if (found?.state !== 'needs_manual') return undefined;
  const task = seenBy(commands, found);
  const history = await holdfast.history(id);
  const last = lastDecision(history);
  return {
    task,
    since: sinceOf(history),
    question: endLine(task, history),
    error: last?.failure ? endOf(last).said : '',
    steps: nextSteps(commands, task, history),
    choices: choicesJson(commands, task, history),
  };
}

/** When it began to wait: its last execution, or the import of a task that waited elsewhere. */
function sinceOf(history: readonly HistoryEntry[]): number | undefined {
  const last = history.findLast((entry) => entry.kind !== 'stray' && !(entry.kind === 'execution' && entry.late));
  return last && (last.kind === 'execution' ? last.endedAt : last.at);
}

function itemJson({ task, since, question, error, steps, choices }: Item): object {
  return { since: rfc3339(since), question, error: error === '' ? null : error, steps, choices, task: taskJson(task) };
}
