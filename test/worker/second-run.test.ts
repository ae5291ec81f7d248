import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { publications } from '../../src/worker/policy-for.ts';
import { useKits } from './scene.ts';

const open = useKits();

/** By name, as a process without the definition enqueues it. */
const named = (type: string, payload = 'null') => ({
  type,
  queue: 'default',
  source: type,
  priority: 0,
  delay: 0,
  payload,
});

test.each([
  ['for the whole type', 'pay', false],
  ['as a function of the input', 'pay', (input: { safe: boolean }) => input.safe],
  ['of a catch-all', '*', false],
] as const)(
  'what a definition says of running twice is stored before its handler begins: %s',
  async (_, type, idempotent) => {
    const stored: boolean[] = [];
    const pay = defineTask(type, {
      idempotent,
      async run(_input: { safe: boolean }, { id }) {
        stored.push((await kit.holdfast.get(id)).idempotent);
      },
    });
    const kit = await open({ tasks: [pay] });
    await kit.holdfast.store.tasks.enqueue([named('pay', '{"safe":false}')]);
    await kit.drain();

    expect(stored).toEqual([false]);
  },
);

test('a task that may run twice for its input is left as it is', async () => {
  const pay = defineTask('pay', {
    idempotent: (input: { safe: boolean }) => input.safe,
    run: () => kit.clock.sleep('1m'),
  });
  const kit = await open({ tasks: [pay] });
  const [receipt] = await kit.holdfast.store.tasks.enqueue([named('pay', '{"safe":true}')]);
  await kit.drain();

  expect(await kit.holdfast.get(receipt?.id as number)).toMatchObject({ state: 'running', idempotent: true });
});

test('a task is handed back, and runs later, where that cannot be stored', async () => {
  const ran: number[] = [];
  const pay = defineTask('pay', {
    idempotent: () => false,
    run: (_: unknown, { execution }) => void ran.push(execution),
  });
  const kit = await open({ tasks: [pay], worker: { types: [] } });
  const { tasks } = kit.holdfast.store;
  const [receipt] = await tasks.enqueue([named('pay')]);
  const worker = kit.holdfast.worker();
  const store = tasks.forbidSecondRun.bind(tasks);
  Object.assign(tasks, { forbidSecondRun: () => Promise.reject(new Error('The disk is gone.')) });

  await expect(worker.drain()).rejects.toThrow('The disk is gone.');
  await kit.drain();
  expect(await kit.holdfast.get(receipt?.id as number)).toMatchObject({ state: 'ready', attempts: 0 });
  Object.assign(tasks, { forbidSecondRun: store });
  await worker.drain();

  expect(ran).toEqual([2]);
});

test('a claim by hand uses and stores the published `idempotent` of its type, if this process does not define the type', async () => {
  const kit = await open({ tasks: [defineTask('other', { run() {} })], worker: { types: [] } });
  const published = publications([defineTask('pay', { idempotent: false, run() {} })]);
  await kit.holdfast.store.tasks.join({ name: 'payer', leaseFor: 30_000, publishes: published });
  const [receipt] = await kit.holdfast.store.tasks.enqueue([named('pay')]);

  const claim = await kit.holdfast.claim();

  expect(await kit.holdfast.get(receipt?.id as number)).toMatchObject({ state: 'running', idempotent: false });
  expect(await claim?.release()).toMatchObject({ state: 'needs_manual' });
});
