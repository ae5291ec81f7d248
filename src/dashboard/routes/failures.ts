import { FAILURE_VERBS, type FailureVerb } from '../../failure/groups.ts';
import { failureGroupJson } from '../../views/failure-text.ts';
import { NOTE } from '../common-fields.ts';
import { textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const GROUP = textField('the id of a group, or its beginning', 64);

const SUMMARIES: Readonly<Record<FailureVerb, string>> = {
  acknowledge: 'say that somebody knows of a group',
  mute: 'leave a group out of the list',
  resolve: 'say that a group is mended; it is `regressed` if it fails again',
  reopen: 'take back what was said of a group',
};

export const FAILURES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'failures',
    summary: 'groups of alike failures, those that failed last first',
    needs: 'view',
    answer: 'failures',
    run: async ({ holdfast }) => ({ items: (await holdfast.failures.list()).map(failureGroupJson) }),
  }),
  route({
    method: 'GET',
    path: 'failures/{id}',
    summary: 'everything about one group',
    needs: 'view',
    params: { id: GROUP },
    answer: 'failures.show',
    run: async ({ holdfast, path }) => ({ group: failureGroupJson(await holdfast.failures.get(path.id)) }),
  }),
  ...FAILURE_VERBS.map((verb) =>
    route({
      method: 'POST',
      path: `failures/{id}/${verb}`,
      summary: SUMMARIES[verb],
      needs: 'failures',
      params: { id: GROUP },
      body: { note: NOTE },
      answer: `failures.${verb}`,
      run: async ({ holdfast, path, by }) => ({
        exit: 0,
        group: failureGroupJson(await holdfast.failures[verb](path.id, by)),
      }),
    }),
  ),
];
