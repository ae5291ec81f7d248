import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { gate, isSettled, isStarted, useKits } from '../worker/scene.ts';
import { refused, watchRejections } from './refused.ts';

watchRejections();
const open = useKits();

/** A worker whose first execution hangs until it is aborted or let go, and whose second succeeds. */
async function stuck() {
  const hanging = gate();
  const aborted: unknown[] = [];
  const work = defineTask('work', {
    async run(_: null, task) {
      if (task.execution > 1) return 'again';
      task.signal.addEventListener('abort', () => {
        aborted.push(task.signal.reason);
        hanging.open();
      });
      await hanging.passed;
      task.signal.throwIfAborted();
      return 'at first';
    },
  });
  const kit = await open({ tasks: [work], worker: { leaseFor: '30s', name: 'w1' } });
  const { id } = await kit.holdfast.enqueue(work, null);
  await kit.seen(isStarted);
  const [worker] = await kit.holdfast.workers();
  return { kit, id, hanging, aborted, worker: worker?.id as number };
}

test('a worker that is ended loses what it holds, hears of it within two renewals, and works on as a new one', async () => {
  const { kit, id, aborted, worker } = await stuck();
  await kit.holdfast.endWorker(worker);
  expect(await kit.holdfast.workers()).toEqual([]);

  await kit.advance('20s');

  expect(aborted).toMatchObject([{ name: 'LeaseLostError' }]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 2, attempts: 0, result: 'again' });
  const history = await kit.holdfast.history(id);
  expect(history.filter((entry) => entry.kind === 'execution' && !entry.late)).toMatchObject([
    { outcome: 'interruption', worker: 'w1', charge: 'nobody' },
    { outcome: 'success', worker: 'w1' },
  ]);
  const [after, ...others] = await kit.holdfast.workers();
  expect(others).toEqual([]);
  expect(after?.id).toBeGreaterThan(worker);
});

test('what a worker that was ended still settles before anybody took it over counts', async () => {
  const { kit, id, hanging, worker } = await stuck();
  await kit.holdfast.endWorker(worker);
  hanging.open();
  await kit.seen(isSettled);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1, result: 'at first' });
});

test('a worker that is not there cannot be ended', async () => {
  const { kit, hanging, worker } = await stuck();
  await kit.holdfast.endWorker(worker);
  expect(await refused(() => kit.holdfast.endWorker(worker))).toMatchObject({ code: 'worker_not_found', worker });
  expect(await refused(() => kit.holdfast.endWorker(0))).toMatchObject({ code: 'invalid_input' });
  hanging.open();
  await kit.seen(isSettled);
});
