import { expect, onTestFinished, test } from 'vitest';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { aStore } from '../a-store.ts';

const ENDED = new Date('2025-11-01T00:00:00Z');

const nothing = defineTask('nothing', { run() {} });

async function queue() {
  // A worker that is there for certain tasks removes nothing by itself.
  const kit = await openTestHoldfast({ store: aStore(), tasks: [nothing], worker: { only: [] } });
  onTestFinished(() => kit.close());
  return kit.holdfast;
}

test('removes all tasks whose time is up, however many batches that takes, and answers how many', async () => {
  const holdfast = await queue();
  const old = Array.from({ length: 3_000 }, () => ({
    type: 'nothing',
    input: null,
    state: 'succeeded',
    endedAt: ENDED,
  }));
  await holdfast.importTasks(old as Parameters<typeof holdfast.importTasks>[0]);
  await holdfast.enqueue(nothing, null);

  expect(await holdfast.prune()).toBe(3_000);

  expect((await holdfast.counts()).byState).toMatchObject({ succeeded: 0, ready: 1 });
  expect(await holdfast.prune()).toBe(0);
});

test('keeps the tasks of a `never`, and tasks that need a person if no time is given for them', async () => {
  const holdfast = await queue();
  await holdfast.importTasks([
    { type: 'nothing', input: null, state: 'succeeded', endedAt: ENDED },
    { type: 'nothing', input: null, state: 'dead', reason: 'fs.locked', endedAt: ENDED },
    { type: 'nothing', input: null, state: 'dead', reason: 'unknown', endedAt: ENDED },
    { type: 'nothing', input: null, state: 'needs_manual' },
  ]);

  expect(await holdfast.prune({ succeeded: 'never', dead: { 'fs.*': '365d' } })).toBe(1);

  const { byState, byReason } = await holdfast.counts();
  expect(byState).toMatchObject({ succeeded: 1, dead: 1, needs_manual: 1 });
  expect(byReason).toContainEqual({ state: 'dead', reason: 'fs.locked', count: 1 });
});

test('refuses a retention that it cannot use, before anything is removed', async () => {
  const holdfast = await queue();
  await holdfast.importTasks([{ type: 'nothing', input: null, state: 'succeeded', endedAt: ENDED }]);

  await expect(holdfast.prune({ dead: 'soon' as '1d' })).rejects.toMatchObject({ code: 'invalid_input' });
  await expect(holdfast.prune({ dead: { 'fs.lokced': '1d' } })).rejects.toThrow("Did you mean 'fs.locked'?");

  expect((await holdfast.counts()).byState.succeeded).toBe(1);
});

test('is refused once it is closed', async () => {
  const holdfast = await queue();
  await holdfast.close();
  await expect(holdfast.prune()).rejects.toMatchObject({ code: 'closed' });
});
