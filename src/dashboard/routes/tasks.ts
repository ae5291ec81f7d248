import { optionsIn } from '../../config/assumed-options.ts';
import { ANSWERS } from '../../documents/choices.ts';
import { duplicateRisk } from '../../documents/duplicate.ts';
import { enqueueContent, isKnownType } from '../../documents/enqueue.ts';
import { assumedContent, explainedErrorContent, explanationContent, pastContent } from '../../documents/explain.ts';
import { inboxContent, inboxOf, MOST_QUESTIONS } from '../../documents/inbox.ts';
import { listContent, MOST_LISTED, pageOf } from '../../documents/list.ts';
import { endOfOutput, logsContent, outputInResult } from '../../documents/logs.ts';
import { showContent, shownTask } from '../../documents/show.ts';
import type { SeenTask } from '../../queue/operate.ts';
import type { Operations } from '../../queue/operations.ts';
import type { Task } from '../../queue/task-view.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { isOwnType } from '../../views/task-text.ts';
import { ERROR, FILTER, IF_STILL, limitField, MAY_REPEAT, NOTE } from '../common-fields.ts';
import {
  choiceField,
  type Field,
  flagField,
  jsonField,
  nameField,
  numberField,
  optional,
  textField,
  timeField,
} from '../fields.ts';
import { mustHave } from '../permissions.ts';
import { refused } from '../problems.ts';
import { type Route, route } from '../route.ts';

const HIGHEST_PRIORITY = 4_095;
const LISTED = 50;
const QUESTIONS = 50;
const MOST_OUTPUT = 100_000;

const TASK: Field<string> = textField('the number of a task, or `key:` and its key', 300);
const SUMMARIES = {
  cancel: 'cancel a task; one that runs is asked to stop',
  hold: 'put a waiting task aside until it is released',
  release: 'let a held task wait in its queue again',
} as const;

export const TASKS: readonly Route[] = [
  route({
    method: 'GET',
    path: 'tasks',
    summary: 'the tasks that match a filter, the newest first',
    needs: 'view',
    query: {
      filter: optional(FILTER),
      limit: limitField(LISTED, MOST_LISTED),
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
    method: 'POST',
    path: 'tasks',
    summary: 'record a task',
    needs: 'enqueue',
    body: {
      type: nameField('its type'),
      input: optional(jsonField('the input of its handler; default null')),
      queue: optional(nameField('its queue')),
      source: optional(nameField('what it touches, such as imap:INBOX; default: its type')),
      key: optional(nameField('a second call with the same type and key records nothing new')),
      priority: optional(numberField('higher goes first in queues that are ordered so', 0, HIGHEST_PRIORITY)),
      at: optional(timeField('when it is due; default: now')),
      idempotent: optional(flagField('whether running it twice does no harm')),
    },
    answer: 'enqueue',
    run: async ({ holdfast, actor, body: { type, input = null, ...options } }) => {
      if (isOwnType(type)) mustHave(actor, 'commands');
      const isKnown = await isKnownType(holdfast, type);
      const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));
      const { id, created } = await holdfast.enqueue<unknown>(type, input, given);
      return enqueueContent(await holdfast.get(id), created, isKnown);
    },
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
    path: 'tasks/{id}/explain-at',
    summary: 'the state of a task at a time in the past, why it was in it, and what happened then',
    needs: 'view',
    params: { id: TASK },
    query: { at: timeField('a time in the past') },
    answer: 'explain.at',
    run: async ({ holdfast, path, query: { at } }) =>
      pastContent(await holdfast.explainAt((await taskOf(holdfast, path.id)).id, at), at),
  }),
  route({
    method: 'GET',
    path: 'tasks/{id}/explain-if',
    summary: 'what these policy options would have decided for the last failure of a task, and what would come next',
    needs: 'view',
    params: { id: TASK },
    query: {
      options: textField('policy options as under `retry:` of holdfast.yaml, such as `maxAttempts: 9`, or JSON', 4_096),
    },
    answer: 'explain.if',
    run: async ({ holdfast, path, query: { options } }) =>
      assumedContent(await holdfast.explainIf((await taskOf(holdfast, path.id)).id, optionsIn(options, 'options'))),
  }),
  route({
    method: 'GET',
    path: 'tasks/{id}/explain-error',
    summary: 'what would be decided if a task failed with this error',
    needs: 'view',
    params: { id: TASK },
    query: { error: ERROR },
    answer: 'explain.error',
    run: async ({ holdfast, path, query: { error } }) => {
      const task = await taskOf(holdfast, path.id);
      return explainedErrorContent(await holdfast.explainError(error, task.id), task);
    },
  }),
  route({
    method: 'GET',
    path: 'tasks/{id}/logs',
    summary: `what the commands of a task printed, as it is kept on the machine of the dashboard: the last ${MOST_OUTPUT} characters`,
    needs: 'inputs',
    params: { id: TASK },
    answer: 'logs',
    run: async ({ holdfast, outputOf, path }) => {
      const task = await taskOf(holdfast, path.id);
      const kept = outputOf?.(task.id) ?? { pieces: [], complete: false };
      const found = kept.pieces.length > 0 ? kept : { pieces: outputInResult(task), complete: false };
      return logsContent(task, 0, endOfOutput(found, MOST_OUTPUT));
    },
  }),
  route({
    method: 'GET',
    path: 'inbox',
    summary: 'the tasks that wait for a person, the oldest first, with what to look at and how to answer',
    needs: 'view',
    query: { filter: optional(FILTER), limit: limitField(QUESTIONS, MOST_QUESTIONS) },
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
      if_still: IF_STILL,
      accept_duplicate: optional(flagField(MAY_REPEAT)),
      new_key: optional(flagField('with a new idempotency key, even if it only waits')),
    },
    answer: 'retry',
    run: async ({ holdfast, commands, path, by, body: { accept_duplicate = false, new_key = false, if_still } }) => {
      const task = await taskOf(holdfast, path.id);
      const risk = accept_duplicate ? undefined : await duplicateRisk(commands, holdfast, task);
      if (risk) throw refused(risk);
      return done(holdfast, task, (id) => holdfast.retry(id, { ...by, ...seen(if_still), newKey: new_key }));
    },
  }),
  ...(['cancel', 'hold', 'release'] as const).map((verb) =>
    route({
      method: 'POST',
      path: `tasks/{id}/${verb}`,
      summary: SUMMARIES[verb],
      needs: verb,
      params: { id: TASK },
      body: { note: NOTE, if_still: IF_STILL },
      answer: verb,
      run: async ({ holdfast, path, by, body: { if_still } }) =>
        done(holdfast, await taskOf(holdfast, path.id), (id) => holdfast[verb](id, { ...by, ...seen(if_still) })),
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
      if_still: IF_STILL,
    },
    answer: 'resolve',
    run: async ({ holdfast, path, by, body: { as, result, if_still } }) => {
      const { id } = await taskOf(holdfast, path.id);
      await holdfast.resolve(id, { as, ...by, ...seen(if_still), ...(result !== undefined && { result }) });
      return { exit: 0, task: taskJson(await holdfast.get(id)) };
    },
  }),
];

function seen(ifStill: SeenTask | undefined): { readonly ifStill?: SeenTask } {
  return ifStill === undefined ? {} : { ifStill };
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
