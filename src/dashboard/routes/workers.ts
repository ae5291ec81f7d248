import { workerJson } from '../../views/json-shapes.ts';
import { numberField } from '../fields.ts';
import { type Route, route } from '../route.ts';

export const WORKERS: readonly Route[] = [
  route({
    method: 'GET',
    path: 'workers',
    summary: 'the workers that share the store: which live, what they run, and what they take',
    needs: 'view',
    answer: 'workers',
    run: async ({ holdfast }) => ({
      items: (await holdfast.workers()).map((worker) => workerJson(worker, worker.keepsTasks)),
    }),
  }),
  route({
    method: 'POST',
    path: 'workers/{id}/end',
    summary: 'end the leases of a worker that lives but is stuck: its tasks can be taken over at once',
    needs: 'workers',
    params: { id: numberField('the id of a worker', 1) },
    answer: 'workers.end',
    run: async ({ holdfast, path: { id } }) => {
      const worker = (await holdfast.workers()).find((each) => each.id === id);
      await holdfast.endWorker(id);
      return { exit: 0, items: [{ id, name: worker?.name ?? '', running: worker?.running ?? 0, ended: true }] };
    },
  }),
];
