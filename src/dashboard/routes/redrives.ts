import { LONGEST_NOTE } from '../../queue/operate.ts';
import { planJson, redriveJson } from '../../views/redrive-text.ts';
import { NOTE } from '../common-fields.ts';
import { flagField, numberField, optional, textField } from '../fields.ts';
import { type Route, route } from '../route.ts';

const ID = { id: numberField('the number of a redrive', 1) };
const SELECTION = {
  filter: textField('which ended tasks, such as `reason:http.* since:2h`; without a state: what is dead', 4_096),
  rate: optional(textField('how fast: `10/s` (default), `100/m`, `5000/h`', 100)),
};

export const REDRIVES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'redrives',
    summary: 'redrives that run, and those that ended in the last 30 days, the newest first',
    needs: 'view',
    answer: 'redrives',
    run: async ({ holdfast }) => ({ items: (await holdfast.redrives.list()).map(redriveJson) }),
  }),
  route({
    method: 'GET',
    path: 'redrives/{id}',
    summary: 'everything about one redrive',
    needs: 'view',
    params: ID,
    answer: 'redrives.show',
    run: async ({ holdfast, path: { id } }) => ({
      redrive: redriveJson(await holdfast.redrives.get(id)),
      skipped_by: await holdfast.redrives.skips(id),
    }),
  }),
  route({
    method: 'POST',
    path: 'redrives/preview',
    summary: 'what a redrive would do if it started now; nothing is changed',
    needs: 'view',
    body: SELECTION,
    answer: 'redrive',
    run: async ({ holdfast, body: { filter, rate } }) => {
      const plan = await holdfast.redrives.preview({ filter, ...(rate !== undefined && { rate }) });
      return { exit: 0, dry_run: true, plan: planJson(plan), redrive: null };
    },
  }),
  route({
    method: 'POST',
    path: 'redrives',
    summary: 'put back the ended tasks that match a filter: slowly at first, and stopped if they fail again',
    needs: 'redrive',
    body: {
      ...SELECTION,
      note: textField('why: kept with the redrive and in the history of each task', LONGEST_NOTE),
      accept_duplicate: optional(flagField('also what must not run twice and may have happened already')),
    },
    answer: 'redrive',
    run: async ({ holdfast, by: { actor }, body: { filter, rate, note, accept_duplicate = false } }) => {
      const options = { filter, note, actor, acceptDuplicate: accept_duplicate, ...(rate !== undefined && { rate }) };
      return { exit: 0, dry_run: false, plan: null, redrive: redriveJson(await holdfast.redrive(options)) };
    },
  }),
  ...(
    [
      ['pause', 'put nothing more back until the redrive is resumed'],
      ['resume', 'go on with a paused redrive'],
      ['cancel', 'end a redrive: what was put back stays so, the rest is left as it is'],
    ] as const
  ).map(([verb, summary]) =>
    route({
      method: 'POST',
      path: `redrives/{id}/${verb}`,
      summary,
      needs: 'redrive',
      params: ID,
      body: { note: NOTE },
      answer: `redrives.${verb}`,
      run: async ({ holdfast, path: { id }, by }) => ({
        exit: 0,
        redrive: redriveJson(await holdfast.redrives[verb](id, by)),
      }),
    }),
  ),
];
