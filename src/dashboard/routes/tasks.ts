import { duplicateRisk } from '../../documents/duplicate.ts';
import { explanationContent } from '../../documents/explain.ts';
import { inboxContent, inboxOf, MOST_QUESTIONS } from '../../documents/inbox.ts';
import { listContent, MOST_LISTED, pageOf } from '../../documents/list.ts';
import { showContent, shownTask } from '../../documents/show.ts';
import { type ActionOptions, LONGEST_NOTE } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { choiceField, type Field, flagField, jsonField, numberField, optional, textField } from '../fields.ts';
import { refused } from '../problems.ts';
import { type Route, route } from '../route.ts';

const LONGEST_FILTER = 4_096;
const LISTED = 50;
const QUESTIONS = 50;

const FILTER = optional(
  textField('a filter, such as `state:dead reason:http.*`, as on the command line', LONGEST_FILTER),
);
const NOTE = optional(textField('a note about why, for the history', LONGEST_NOTE));
const TASK: Field<string> = textField('the number of a task, or `key:` and its key', 300);
const ANSWERS = ['succeeded', 'retry', 'dead'] as const;

export const TASKS: readonly Route[] = [
  route({
    method: 'GET',
    path: 'tasks',
    summary: 'the tasks that match a filter, the newest first',
    needs: 'view',
    query: {
      filter: FILTER,
      limit: optional(numberField(`how many; default ${LISTED}`, 1, MOST_LISTED)),
      before: optional(numberField('only tasks with a smaller number: `next` of the page before', 1)),
      held: optional(
        flagField('only those that are held: ready tasks that something keeps from starting, and tasks put aside'),
      ),
    },
    answer: 'list',
    run: async ({ holdfast, query: { filter = '', limit = LISTED, before, held = false } }) =>
      listContent(holdfast, await pageOf(holdfast, { filter, limit, before, held })),
  }),
  route({
    method: 'GET',
    path: 'tasks/{id}',
    summary: 'everything about one task',
    needs: 'view',
    params: { id: TASK },
    answer: 'show',
    run: async ({ holdfast, commands, path }) =>
      showContent(commands, holdfast, await shownTask(holdfast, await taskOf(holdfast, path.id))),
  }),
  route({
    method: 'GET',
    path: 'tasks/{id}/explain',
    summary: 'why a task is in its state, what happens next, and what can be done',
    needs: 'view',
    params: { id: TASK },
    answer: 'explain',
    run: async ({ holdfast, commands, path }) => {
      const { id } = await taskOf(holdfast, path.id);
      return explanationContent(commands, await holdfast.explain(id));
    },
  }),
  route({
    method: 'GET',
    path: 'inbox',
    summary: 'the tasks that wait for a person, the oldest first, with what to look at and how to answer',
    needs: 'view',
    query: { filter: FILTER, limit: optional(numberField(`how many; default ${QUESTIONS}`, 1, MOST_QUESTIONS)) },
    answer: 'inbox',
    run: async ({ holdfast, commands, query: { filter = '', limit = QUESTIONS } }) =>
      inboxContent(await inboxOf(commands, holdfast, { filter, limit })),
  }),
  route({
    method: 'POST',
    path: 'tasks/{id}/retry',
    summary: 'make a task due now; one that ended or needs a person begins a new round',
    needs: 'retry',
    params: { id: TASK },
    body: {
      note: NOTE,
      accept_duplicate: optional(flagField('even if it has succeeded, or may have happened already')),
      new_key: optional(flagField('with a new idempotency key, even if it only waits')),
    },
    answer: 'retry',
    run: async ({ holdfast, commands, path, by, body: { accept_duplicate = false, new_key = false } }) => {
      const task = await taskOf(holdfast, path.id);
      const risk = accept_duplicate ? undefined : await duplicateRisk(commands, holdfast, task);
      if (risk) throw refused(risk);
      return done(holdfast, task, (id) => holdfast.retry(id, { ...by, newKey: new_key }));
    },
  }),
  ...(['cancel', 'hold', 'release'] as const).map((verb) =>
    route({
      method: 'POST',
      path: `tasks/{id}/${verb}`,
      summary: SUMMARIES()[verb],
      needs: verb,
      params: { id: TASK },
      body: { note: NOTE },
      answer: verb,
      run: async ({ holdfast, path, by }) =>
        done(holdfast, await taskOf(holdfast, path.id), (id) => holdfast[verb](id, by satisfies ActionOptions)),
    }),
  ),
  route({
    method: 'POST',
    path: 'tasks/{id}/resolve',
    summary: 'answer a task that needs a person',
    needs: 'resolve',
    params: { id: TASK },
    body: {
      as: choiceField(
        'it happened (`succeeded`), it did not and should be tried again (`retry`), or give up (`dead`)',
        ANSWERS,
      ),
      result: optional(jsonField('what came of it, with `succeeded`')),
      note: NOTE,
    },
    answer: 'resolve',
    run: async ({ holdfast, path, by, body: { as, result } }) => {
      const { id } = await taskOf(holdfast, path.id);
      await holdfast.resolve(id, { as, ...by, ...(result !== undefined && { result }) });
      return { exit: 0, task: taskJson(await holdfast.get(id)) };
    },
  }),
];

function SUMMARIES(): Readonly<Record<'cancel' | 'hold' | 'release', string>> {
  return {
    cancel: 'cancel a task; one that runs is asked to stop',
    hold: 'put a waiting task aside until it is released',
    release: 'let a held task wait in its queue again',
  };
}

/** The task with this number, or with the key after `key:`. @throws TaskNotFoundError. */
function taskOf(holdfast: Operations, text: string): Promise<Task> {
  if (text.startsWith('key:')) return holdfast.get(text.slice('key:'.length));
  return holdfast.get(/^[1-9]\d{0,14}$/.test(text) ? Number(text) : text);
}

/** Acts on a task, and says what became of it, as `holdfast retry 12 --json` does. */
async function done(holdfast: Operations, { id, state }: Task, act: (id: number) => Promise<void>): Promise<object> {
  await act(id);
  const task = await holdfast.get(id);
  return { exit: 0, items: [{ id, from: state, to: task.state, task: taskJson(task) }], problems: [] };
}
