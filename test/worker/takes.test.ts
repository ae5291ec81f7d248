import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';

test('a ready task that no worker takes says so, until one does', async () => {
  const here = defineTask('here', { run: () => 'done' });
  const kit = await openTestHoldfast({ store: aStore(), tasks: [here] });
  const { id } = await kit.holdfast.enqueue('elsewhere', null);
  const { id: picky } = await kit.holdfast.enqueue(here, null, { needs: { cpu: 4 } });
  await kit.drain();

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', heldBy: 'no_worker' });
  expect(await kit.holdfast.get(picky)).toMatchObject({ state: 'ready', heldBy: 'no_worker' });
  const able = kit.holdfast.worker({ capabilities: { cpu: 8 } });
  await able.drain();
  expect(await kit.holdfast.get(picky)).toMatchObject({ state: 'succeeded' });
  await kit.close();
});

test('a ready task says that its source is held, or its queue is paused', async () => {
  const task = defineTask('here', { source: (input: string) => input, run: () => 'done' });
  const kit = await openTestHoldfast({ store: aStore(), tasks: [task] });
  await kit.holdfast.sources.hold('imap:A', { actor: 'eva', note: 'moving house' });
  const { id } = await kit.holdfast.enqueue(task, 'imap:A');
  const { id: other } = await kit.holdfast.enqueue(task, 'imap:B');
  await kit.drain();

  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', heldBy: 'source_held' });
  expect(await kit.holdfast.get(other)).toMatchObject({ state: 'succeeded' });
  expect(await kit.holdfast.sources.list()).toMatchObject([
    { name: 'imap:A', hold: { actor: 'eva', note: 'moving house' } },
  ]);
  await kit.holdfast.pauseQueue('default');
  await kit.holdfast.sources.release('imap:A');
  await kit.drain();
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', heldBy: 'queue_paused' });
  await kit.holdfast.resumeQueue('default');
  await kit.drain();
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
  await kit.close();
});
