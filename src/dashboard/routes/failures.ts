import { formatDuration, type Milliseconds } from '../../duration.ts';
import { FAILURE_VERBS, type FailureVerb } from '../../failure/groups.ts';
import { LONGEST_NOTE } from '../../queue/operate.ts';
import { failureGroupJson } from '../../views/failure-text.ts';
import { NOTE } from '../common-fields.ts';
import { durationField, optional, textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const GROUP = textField('the id of a group, or its beginning', 64);

const SAID = textField('what is to be said of the group', LONGEST_NOTE);

const MUTE = { for: optional(durationField('how long; default: until it is reopened')) };

const SUMMARIES: Readonly<Record<FailureVerb, string>> = {
  acknowledge: 'say that somebody knows of a group',
  mute: 'leave a group out of the list',
  resolve: 'say that a group is mended; it is `regressed` if it fails again',
  reopen: 'take back what was said of a group',
  note: 'say something of a group; its state stays',
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
      body: { note: verb === 'note' ? SAID : NOTE, ...(verb === 'mute' && MUTE) },
      answer: `failures.${verb}`,
      run: async ({ holdfast: { failures }, path, by, body }) => {
        const lasts = (body as { readonly for?: Milliseconds }).for;
        const group =
          verb === 'mute' && lasts !== undefined
            ? await failures.mute(path.id, { ...by, for: formatDuration(lasts) })
            : await failures[verb](path.id, by);
        return { exit: 0, group: failureGroupJson(group) };
      },
    }),
  ),
];
