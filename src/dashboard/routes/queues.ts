import { queueJson, queueNamed, queuesOf } from '../../documents/queues.ts';
import { LONGEST_NOTE } from '../../queue/operate.ts';
import { optional, textField } from '../fields.ts';
import { ApiProblem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const QUEUE = textField('the name of a queue', 1_000);
const NOTE = optional(textField('a note about why', LONGEST_NOTE));

export const QUEUES: readonly Route[] = [
  route({
    method: 'GET',
    path: 'queues',
    summary: 'the queues that were ever used: their order and limits, what is in them, and who paused them',
    needs: 'view',
    answer: 'queues',
    run: async ({ holdfast }) => ({ items: (await queuesOf(holdfast)).map(queueJson) }),
  }),
  ...(
    [
      ['pause', 'pause a queue: none of its tasks starts; running tasks go on', 'pauseQueue'],
      ['resume', 'resume a paused queue', 'resumeQueue'],
    ] as const
  ).map(([verb, summary, method]) =>
    route({
      method: 'POST',
      path: `queues/{name}/${verb}`,
      summary,
      needs: 'queues',
      params: { name: QUEUE },
      body: { note: NOTE },
      answer: `queues.${verb}`,
      run: async ({ holdfast, path: { name }, by }) => {
        const before = await queueNamed(holdfast, name);
        if (!before)
          throw new ApiProblem('not_found', `There is no queue ${name}.`, ['all of them: GET api/v1/queues']);
        await holdfast[method](name, by);
        const queue = (await queueNamed(holdfast, name)) ?? before;
        return {
          exit: 0,
          changed: (before.paused === undefined) !== (queue.paused === undefined),
          queue: queueJson(queue),
        };
      },
    }),
  ),
];
