import { expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { budgetJson, budgetOf } from '../../src/views/budget.ts';
import { useKits } from '../worker/scene.ts';

const open = useKits();

test('the budget of a task has its attempts, failure type, times and waits, and begins anew with a new round', async () => {
  const work = defineTask('work', {
    retry: { maxAttempts: 3, backoff: { exponential: { base: '1m', cap: '1h' } }, jitter: 'none' },
    run() {
      throw Object.assign(new Error('reset'), { code: 'EBUSY' });
    },
  });
  const kit = await open({ tasks: [work] });
  const { id } = await kit.holdfast.enqueue(work, null);
  const began = kit.clock.now();
  const budget = async () => {
    const task = await kit.holdfast.get(id);
    const { policy } = await kit.holdfast.policyFor(task);
    return budgetJson(budgetOf(task, policy, await kit.holdfast.history(id)));
  };
  expect(await budget()).toBeNull();
  await kit.advance('4m');

  expect(await budget()).toEqual({
    attempts: 3,
    max_attempts: 3,
    failure_type: 'transient',
    first_attempt_at: new Date(began).toISOString(),
    last_attempt_at: new Date(began + 180_000).toISOString(),
    total_delay_ms: 180_000,
  });
  await kit.holdfast.retry(id);
  expect(await budget()).toBeNull();
  await kit.advance('5s');
  expect(await budget()).toMatchObject({ attempts: 1, total_delay_ms: 60_000 });
});
