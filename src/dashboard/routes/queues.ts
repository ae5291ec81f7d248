import { type Queue, queueJson, queueNamed, queuesOf } from '../../documents/queues.ts';
import type { Operations } from '../../queue/operations.ts';
import { QUEUE_ORDERS } from '../../task.ts';
import { limitWords } from '../../views/source-state.ts';
import { LIMITS, NOTE } from '../common-fields.ts';
import { choiceField, flagField, optional, textField } from '../fields.ts';
import { ApiProblem } from '../problems.ts';
import { type Route, route } from '../route.ts';

const QUEUE = textField('the name of a queue', 1_000);

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
        const before = await known(holdfast, name);
        await holdfast[method](name, by);
        const queue = await known(holdfast, name);
        const changed = (before.paused === undefined) !== (queue.paused === undefined);
        return { exit: 0, changed, queue: queueJson(queue) };
      },
    }),
  ),
  route({
    method: 'POST',
    path: 'queues/{name}/order',
    summary: 'set the order of a queue; its waiting tasks are put into it',
    needs: 'queues',
    params: { name: QUEUE },
    body: {
      order: optional(choiceField('the order', QUEUE_ORDERS)),
      fair: optional(flagField('whether its sources take turns')),
    },
    answer: 'queues.order',
    run: async ({ holdfast, path: { name }, body: { order, fair } }) => {
      const before = await known(holdfast, name);
      if (order !== undefined) await holdfast.setQueueOrder(name, order);
      if (fair !== undefined) await holdfast.setQueueFair(name, fair);
      const queue = await known(holdfast, name);
      const changed = before.order !== queue.order || before.fair !== queue.fair;
      return { exit: 0, changed, queue: queueJson(queue) };
    },
  }),
  route({
    method: 'POST',
    path: 'queues/{name}/limit',
    summary: 'limit how often the tasks of a queue start, and how many run at the same time; null removes a limit',
    needs: 'queues',
    params: { name: QUEUE },
    body: LIMITS,
    answer: 'queues.limit',
    run: async ({ holdfast, path: { name }, body: { pace, concurrency } }) => {
      const before = await known(holdfast, name);
      await holdfast.limitQueue(name, {
        ...(pace !== undefined && { pace }),
        ...(concurrency !== undefined && { concurrency }),
      });
      const queue = await known(holdfast, name);
      return { exit: 0, changed: limitWords(before) !== limitWords(queue), queue: queueJson(queue) };
    },
  }),
];

/** @throws ApiProblem for a queue that was never used: its name may be mistyped. */
async function known(holdfast: Operations, name: string): Promise<Queue> {
  const queue = await queueNamed(holdfast, name);
  if (queue) return queue;
  throw new ApiProblem('not_found', `There is no queue ${name}.`, ['all of them: GET api/v1/queues']);
}
