import { expect, test } from 'vitest';
import { defineTask, schedule } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';

test('a three-day schedule passes in milliseconds, each try at its own moment', async () => {
  const at: string[] = [];
  const report = defineTask('report', {
    retry: { backoff: schedule(['1h', '1d', '2d']), jitter: { kind: 'none' } },
    run(input: { name: string }, task) {
      at.push(`${input.name} ${task.attempt} ${kit.clock.now() - Date.UTC(2026, 0, 1)}`);
      if (task.attempt < 4) throw new Error('not yet');
      return 'done';
    },
  });
  const kit = await openTestHoldfast({ tasks: [report] });
  const started = performance.now();
  const { id } = await kit.holdfast.enqueue(report, { name: 'a' });
  await kit.advance('4d');
  const hour = 3_600_000;
  expect(at).toEqual(['a 1 0', `a 2 ${hour}`, `a 3 ${25 * hour}`, `a 4 ${73 * hour}`]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'done', executions: 4, attempts: 3 });
  expect(performance.now() - started).toBeLessThan(5_000);
  expect(await kit.holdfast.store.upkeep.verify()).toEqual([]);
  await kit.close();
});
