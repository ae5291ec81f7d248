import { describe, expect, test } from 'vitest';
import { defineTask, type Json, LeaseLostError, PayloadError } from '../../src/index.ts';
import { atOnce, gate, useKits } from './scene.ts';

const open = useKits();

describe('a checkpoint', () => {
  test('is read by the execution after the one that saved it', async () => {
    const read: (Json | undefined)[] = [];
    const copy = defineTask('copy', {
      retry: atOnce,
      async run(_, task) {
        read.push(task.checkpoint);
        if (task.execution === 3) return;
        await task.saveCheckpoint({ copied: task.execution });
        read.push(task.checkpoint);
        throw new Error('Again.');
      },
    });
    const kit = await open({ tasks: [copy] });
    await kit.holdfast.enqueue(copy, null);
    await kit.drain();
    expect(read).toEqual([undefined, { copied: 1 }, { copied: 1 }, { copied: 2 }, { copied: 2 }]);
  });

  test('stays after a success, for the next round of its task', async () => {
    const read: (Json | undefined)[] = [];
    const once = defineTask('once', {
      async run(_, task) {
        read.push(task.checkpoint);
        await task.saveCheckpoint('done');
      },
    });
    const kit = await open({ tasks: [once] });
    const { id } = await kit.holdfast.enqueue(once, null);
    await kit.drain();
    await kit.holdfast.retry(id);
    await kit.drain();
    expect(read).toEqual([undefined, 'done']);
  });

  test('is refused where it is no JSON or larger than 64 KiB, and the one before stays', async () => {
    const refused: unknown[] = [];
    const read: (Json | undefined)[] = [];
    const task = defineTask('large', {
      retry: atOnce,
      async run(_, task) {
        read.push(task.checkpoint);
        if (task.execution === 2) return;
        await task.saveCheckpoint('small');
        for (const value of ['x'.repeat(65_536), 1n]) {
          await task.saveCheckpoint(value).catch((error: unknown) => refused.push(error));
        }
        await task.saveCheckpoint('x'.repeat(65_534));
        await task.saveCheckpoint('small');
        throw new Error('Again.');
      },
    });
    const kit = await open({ tasks: [task] });
    await kit.holdfast.enqueue(task, null);
    await kit.drain();
    expect(refused).toEqual([expect.any(PayloadError), expect.any(PayloadError)]);
    expect((refused[0] as Error).message).toMatch(/^The checkpoint is 65538 bytes of JSON, and the limit is 65536\./);
    expect(read).toEqual([undefined, 'small']);
  });

  test('of a lost lease throws LeaseLostError, changes nothing, and tells the handler to stop', async () => {
    const [begun, taken] = [gate(), gate()];
    const ended = gate<unknown[]>();
    const task = defineTask('slow', {
      retry: atOnce,
      async run(_, task) {
        await task.saveCheckpoint('in time');
        begun.open();
        await taken.passed;
        const error = await task.saveCheckpoint('late').catch((thrown: unknown) => thrown);
        ended.open([error, task.signal.reason, task.checkpoint]);
      },
    });
    const kit = await open({ tasks: [task] });
    await kit.holdfast.enqueue(task, null);
    kit.holdfast.work();
    await begun.passed;
    const worker = (await kit.holdfast.workers()).find(({ running }) => running === 1);
    await kit.holdfast.store.tasks.leave(worker?.id as number);
    const taker = await kit.holdfast.store.tasks.join({ name: 'taker', leaseFor: 30_000, publishes: {} });
    expect(await kit.holdfast.store.tasks.recover(taker, 1)).toMatchObject({ tasks: [{ checkpoint: '"in time"' }] });
    taken.open();
    expect(await ended.passed).toEqual([expect.any(LeaseLostError), expect.any(LeaseLostError), 'in time']);
  });
});

describe('a claim by hand', () => {
  test('reads and saves the checkpoint, until it is settled', async () => {
    const work = defineTask('work', { retry: atOnce, run() {} });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    await kit.holdfast.enqueue(work, null);
    const first = await kit.holdfast.claim();
    expect(first?.checkpoint).toBeUndefined();
    await first?.saveCheckpoint([1, 2]);
    expect(first?.checkpoint).toEqual([1, 2]);
    await first?.fail(new Error('Again.'));
    await expect(first?.saveCheckpoint('late')).rejects.toMatchObject({
      code: 'state_conflict',
      message: expect.stringContaining('so saveCheckpoint() is refused'),
    });

    const second = await kit.holdfast.claim();
    expect(second?.checkpoint).toEqual([1, 2]);
    await second?.complete();
  });
});
