import { BULK_SAMPLE, type BulkAction, moveBatch, noCounts, selection, type Verb } from '../../documents/bulk.ts';
import { ANSWERS } from '../../documents/choices.ts';
import { InvalidInputError } from '../../errors.ts';
import { DEFAULT_SIZE_LIMIT, encodeJson } from '../../json.ts';
import { by as checkedBy } from '../../queue/operate.ts';
import type { Move } from '../../store/store.ts';
import { TASK_STATES } from '../../task.ts';
import { taskJson } from '../../views/json-shapes.ts';
import { FILTER, MAY_REPEAT, NOTE } from '../common-fields.ts';
import { choiceField, type Field, flagField, idsField, jsonField, optional } from '../fields.ts';
import { mustHave } from '../permissions.ts';
import { readOnlyProblem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const VERBS = ['retry', 'cancel', 'hold', 'release', 'resolve'] as const satisfies readonly Verb[];

/** How many tasks one call acts on. A page with more calls it several times, and shows how far it is. */
const MOST_IDS = 1_000;

/** So many in one transaction, so that workers can write in between. */
const BATCH = 100;

const VERB = choiceField('what is done', VERBS);
const DUPLICATE: Field<boolean | undefined> = optional(flagField(MAY_REPEAT));

export const SELECTIONS: readonly Route[] = [
  route({
    method: 'POST',
    path: 'selections',
    summary: 'the tasks that match a filter now and that an action can change: a selection that stays as it is',
    needs: 'view',
    body: { filter: FILTER, verb: VERB, accept_duplicate: DUPLICATE },
    answer: 'selection',
    run: async ({ holdfast, body: { filter: text, verb, accept_duplicate = false } }) => {
      const filter = selection(text, verb, accept_duplicate, new Date(holdfast.now()));
      const ids = await holdfast.administration.select(filter);
      const sample = await Promise.all(ids.slice(0, BULK_SAMPLE).map((id) => holdfast.find(id)));
      return {
        verb,
        from: filter.states,
        total: ids.length,
        ids,
        sample: sample.flatMap((task) => (task ? [taskJson(task)] : [])),
      };
    },
  }),
  route({
    method: 'POST',
    path: 'tasks/act',
    summary: `act on tasks of a selection, at most ${MOST_IDS} at a time; those that have left the states of the selection stay as they are`,
    needs: 'view',
    body: {
      verb: VERB,
      ids: idsField('numbers of tasks', MOST_IDS),
      from: statesField(),
      as: optional(choiceField('with `resolve`: what a person found', ANSWERS)),
      result: optional(jsonField('with `resolve` as `succeeded`: what came of it')),
      note: NOTE,
      accept_duplicate: DUPLICATE,
    },
    answer: 'act',
    run: async ({ holdfast, actor, readOnly, by, body }) => {
      const { verb, ids, from: given, accept_duplicate = false } = body;
      // The permission is that of the action.
      if (readOnly) throw readOnlyProblem();
      mustHave(actor, verb);
      const from = selection(
        (given ?? []).length > 0 ? `state:${given?.join(',')}` : '',
        verb,
        accept_duplicate,
        new Date(0),
      ).states;
      const move: Move = { ...actionFrom(verb, body.as, body.result), ...checkedBy(by, verb), from };
      const counts = noCounts();
      const asksEach = verb === 'retry' && !accept_duplicate && from.includes('needs_manual');
      for (let i = 0; i < ids.length; i += BATCH) {
        await moveBatch(holdfast, ids.slice(i, i + BATCH), move, asksEach, counts);
      }
      return counts;
    },
  }),
];

function statesField(): Field<readonly (typeof TASK_STATES)[number][] | undefined> {
  return {
    about: 'only tasks in these states: `from` of the selection',
    schema: { type: 'array', items: { type: 'string', enum: TASK_STATES } },
    required: false,
    read: (value, what) => {
      if (value === undefined) return undefined;
      if (Array.isArray(value) && value.every((state) => TASK_STATES.includes(state))) return value;
      throw new InvalidInputError(`${what} must be a list of states: ${TASK_STATES.join(', ')}.`);
    },
  };
}

function actionFrom(verb: Verb, as: (typeof ANSWERS)[number] | undefined, result: unknown): BulkAction {
  if (verb !== 'resolve') {
    if (as !== undefined || result !== undefined)
      throw new InvalidInputError(`as and result go with resolve, not with ${verb}.`);
    return { verb };
  }
  if (as === undefined) throw new InvalidInputError(`resolve needs as: one of ${ANSWERS.join(', ')}.`);
  if (result === undefined) return { verb, as };
  if (as !== 'succeeded') throw new InvalidInputError(`result goes with as: succeeded, not with ${as}.`);
  return { verb, as, result: encodeJson(result, 'result', DEFAULT_SIZE_LIMIT) };
}
