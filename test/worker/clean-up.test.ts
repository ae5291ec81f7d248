import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { aStore } from '../a-store.ts';
import { useFolder, useKits } from './scene.ts';

const open = useKits();
const folder = useFolder();

/** A definition that notes what it cleared up. */
function noting(type: string) {
  const cleared: unknown[] = [];
  const definition = defineTask(type, {
    run() {},
    cleanUp(input, { id, type: of, execution, checkpoint }) {
      cleared.push({ input, id, of, execution, checkpoint });
    },
  });
  return { cleared, definition };
}

describe('a process that a lost execution left running', () => {
  for (const type of ['work', '*']) {
    /** A claim by hand that saved something, was cancelled and is forgotten. */
    async function lost() {
      const { cleared, definition } = noting(type);
      const kit = await open({ tasks: [definition], worker: { types: [], leaseFor: '30s' } });
      const { id } = await kit.holdfast.enqueue('work', 'input');
      const claim = await kit.holdfast.claim({ leaseFor: '30s' });
      await claim?.saveCheckpoint('left');
      const expected = [{ input: 'input', id, of: 'work', execution: 1, checkpoint: 'left' }];
      const claimOn = async () => {
        await kit.worker.stop();
        for (const step of [31_000, 10_000]) {
          kit.clock.moveTo(kit.clock.now() + step);
          await kit.holdfast.claim();
        }
      };
      return { kit, id, cleared, expected, claimOn };
    }

    test(`is cleared up by the definition of ${type} where a claim by hand recovers a cancelled task`, async () => {
      const { kit, id, cleared, expected, claimOn } = await lost();
      await kit.holdfast.cancel(id);
      await claimOn();
      expect((await kit.holdfast.get(id)).state).toBe('cancelled');
      expect(cleared).toEqual(expected);
    });

    test(`is cleared up by the definition of ${type} where a worker recovers a cancelled task`, async () => {
      const { kit, id, cleared, expected } = await lost();
      await kit.holdfast.cancel(id);
      await kit.advance('60s');
      expect((await kit.holdfast.get(id)).state).toBe('cancelled');
      expect(cleared).toEqual(expected);
    });

    test(`is left to the next execution by the definition of ${type} where there will be one`, async () => {
      const { kit, id, cleared, claimOn } = await lost();
      await claimOn();
      expect((await kit.holdfast.get(id)).executions).toBe(2);
      expect(cleared).toEqual([]);
    });
  }

  test('is not cleared up by a catch-all where the type has a definition elsewhere', async () => {
    const path = `${folder()}/tasks.db`;
    const own = noting('work');
    const catchAll = noting('*');
    const first = await open({ tasks: [own.definition], store: aStore(path), worker: { types: [] } });
    await first.worker.stop();
    const { id } = await first.holdfast.enqueue('work', null);
    await first.holdfast.claim({ leaseFor: '30s' });
    await first.holdfast.cancel(id);
    const second = await open({ tasks: [catchAll.definition], store: aStore(path), worker: { types: [] } });
    await second.worker.stop();
    for (const step of [31_000, 10_000]) {
      for (const kit of [first, second]) kit.clock.moveTo(kit.clock.now() + step);
      await second.holdfast.claim();
    }
    expect((await second.holdfast.get(id)).state).toBe('cancelled');
    expect([own.cleared, catchAll.cleared]).toEqual([[], []]);
  });
});
