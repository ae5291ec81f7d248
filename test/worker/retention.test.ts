import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { Registry } from '../../src/config/registry.ts';
import {
  defineTask,
  NeedsManual,
  PermanentFailure,
  type PrunedTask,
  type RetentionOptions,
  type WorkerOptions,
} from '../../src/index.ts';
import type { TestOptions } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { type Kit, useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

const DAY = 86_400_000;

/** Succeeds, dies of the reason that is its input, or asks for a person. */
const work = defineTask('work', {
  run(input: string) {
    if (input === 'person') throw new NeedsManual('look at it');
    if (input !== 'done') throw new PermanentFailure('no', { reason: input });
  },
});

async function kitWith(retention?: RetentionOptions, worker: WorkerOptions = {}, more: TestOptions = {}) {
  const removed: PrunedTask[] = [];
  const kit = await open({
    tasks: [work],
    worker: { ...worker, ...(retention && { retention }), onRemoved: (tasks) => void removed.push(...tasks) },
    ...more,
  });
  return { kit, removed };
}

/** Goes on after this time, as if the machine had slept until its last day: then a worker looks once, and not three times a day. */
async function sleepFor(kit: Kit, days: number): Promise<void> {
  kit.clock.moveTo(kit.clock.now() + (days - 1) * DAY);
  await kit.advance('1d');
}

async function ended(kit: Kit, ...inputs: readonly string[]): Promise<number[]> {
  const receipts = await kit.holdfast.enqueueAll(work, inputs);
  await kit.drain();
  return receipts.map(({ id }) => id);
}

const left = async ({ holdfast }: Kit) => (await holdfast.list()).map(({ id }) => id).sort((a, b) => a - b);

describe('a worker removes old tasks', () => {
  test('after 30 days by default, and tasks that need a person never', async () => {
    const { kit, removed } = await kitWith();
    const [, , person] = await ended(kit, 'done', 'code.bug', 'person');
    const waiting = await kit.holdfast.enqueue(work, 'done', { delay: '3000d' });
    const { id: cancelled } = await kit.holdfast.enqueue(work, 'done', { delay: '1d' });
    await kit.holdfast.cancel(cancelled);
    await sleepFor(kit, 29);
    expect(removed).toEqual([]);
    await kit.advance('2d');
    expect(removed.map(({ id, state, reason }) => [id, state, reason])).toEqual([
      [1, 'succeeded', undefined],
      [2, 'dead', 'code.bug'],
      [cancelled, 'cancelled', 'cancelled'],
    ]);
    await sleepFor(kit, 1_000);
    expect(await left(kit)).toEqual([person, waiting.id]);
  });

  test('by state, reason and family', async () => {
    const { kit } = await kitWith({
      succeeded: 'never',
      dead: { 'fs.locked': '3d', 'fs.*': '2d' },
      needs_manual: '5d',
    });
    const [done, locked, , bug, person] = await ended(kit, 'done', 'fs.locked', 'fs.no_space', 'code.bug', 'person');
    await kit.advance('2.5d');
    expect(await left(kit)).toEqual([done, locked, bug, person]);
    await kit.advance('1d');
    expect(await left(kit)).toEqual([done, bug, person]);
    await kit.advance('2d');
    expect(await left(kit)).toEqual([done, bug]);
    await sleepFor(kit, 30);
    expect(await left(kit)).toEqual([done]);
  });

  test('by the configuration of the moment, and code wins over it', async () => {
    const config = new Registry();
    config.load('retention: { succeeded: never }');
    const { kit } = await kitWith(undefined, {}, { config });
    const [done] = await ended(kit, 'done');
    await sleepFor(kit, 40);
    expect(await left(kit)).toEqual([done]);
    config.load('retention: { succeeded: 1d }');
    await kit.advance('1d');
    expect(await left(kit)).toEqual([]);

    const other = await kitWith({ succeeded: 'never' }, {}, { config });
    const [kept] = await ended(other.kit, 'done');
    await sleepFor(other.kit, 40);
    expect(await left(other.kit)).toEqual([kept]);
  });

  test('thousands of tasks, in one go', async () => {
    const { kit, removed } = await kitWith({ succeeded: '1d' }, { concurrency: 500 });
    await ended(kit, ...Array(7_000).fill('done'));
    await kit.advance('2d');
    expect(removed).toHaveLength(7_000);
    expect(new Set(removed.map(({ id }) => id)).size).toBe(7_000);
    expect(await left(kit)).toEqual([]);
  });

  test('unless it is there for certain tasks only', async () => {
    const path = join(folder(), 'tasks.db');
    const { kit, removed } = await kitWith(undefined, {}, { store: aStore(path) });
    const [id = 0] = await ended(kit, 'done');
    await kit.worker.stop();
    const some = kit.holdfast.work({ only: [id + 1], leaseFor: '1d', pollInterval: '300d' });
    await sleepFor(kit, 40);
    await some.stop();
    expect(await left(kit)).toEqual([id]);
    const all = kit.holdfast.work({ leaseFor: '1d', onRemoved: (tasks) => void removed.push(...tasks) });
    await kit.drain();
    await all.stop();
    expect(removed).toMatchObject([{ id }]);
  });

  test('and once in an hour, whichever of them looks', async () => {
    const { kit, removed } = await kitWith({ succeeded: '10m' });
    const second = kit.holdfast.work({
      retention: { succeeded: '10m' },
      leaseFor: '3m',
      pollInterval: '300d',
      onRemoved: (tasks) => void removed.push(...tasks),
    });
    await ended(kit, 'done');
    await kit.advance('59m');
    expect(removed).toEqual([]);
    await kit.advance('2m');
    expect(removed).toHaveLength(1);
    await second.stop();
  });

  test('and continues if onRemoved throws', async () => {
    const fail = () => {
      throw new Error('from the listener');
    };
    const kit = await open({ tasks: [work], worker: { retention: { succeeded: '1d' }, onRemoved: fail } });
    await ended(kit, 'done');
    await kit.advance('2d');
    expect(await left(kit)).toEqual([]);
    expect(await ended(kit, 'done')).toEqual([2]);
  });
});

test('the key of a task that was removed is free again', async () => {
  const { kit } = await kitWith({ succeeded: '7d' });
  const first = await kit.holdfast.enqueue(work, 'done', { key: 'invoice-7' });
  await kit.drain();
  expect(await kit.holdfast.enqueue(work, 'done', { key: 'invoice-7' })).toMatchObject({
    id: first.id,
    created: false,
  });
  await kit.advance('8d');
  expect(await kit.holdfast.enqueue(work, 'done', { key: 'invoice-7' })).toEqual({ id: first.id + 1, created: true });
});

describe('a retention that cannot be meant is refused', () => {
  test.each<[unknown, string]>([
    ['7d', 'takes an object of options, got "7d"'],
    [{ failed: '7d' }, "no option 'failed'. It has: succeeded, dead, cancelled, needs_manual"],
    [{ dead: 'forever' }, 'retention.dead must be a duration'],
    [{ dead: { 'fs.locked': -1 } }, "retention.dead['fs.locked'] must not be negative"],
    [{ dead: { EACCES: '1d' } }, "by reason ('fs.locked'), family ('fs.*') or 'default', got 'EACCES'"],
    [{ dead: { 'fs.smb.*': '1d' } }, "got 'fs.smb.*'"],
    [{ succeeded: { default: '1d' } }, 'succeeded has no reason'],
  ])('%j', async (retention, message) => {
    const kit = await open({ tasks: [work] });
    expect(() => kit.holdfast.worker({ retention: retention as RetentionOptions })).toThrow(message);
  });
});
