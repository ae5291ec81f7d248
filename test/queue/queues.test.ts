import { expect, test } from 'vitest';
import { type Holdfast, type HoldfastOptions, openHoldfast } from '../../src/index.ts';
import { aStore } from '../a-store.ts';

async function open(queues: HoldfastOptions['queues'] = {}): Promise<Holdfast> {
  return openHoldfast({ store: aStore(), queues });
}

/** The sources of what is claimed, one by one. */
async function given(holdfast: Holdfast, count: number): Promise<string> {
  let sources = '';
  for (let n = 0; n < count; n += 1) sources += (await holdfast.claim())?.source ?? '-';
  return sources;
}

test('serves the sources of a queue in turn that was opened as a fair one', async () => {
  await using holdfast = await open({ default: { fair: true } });
  for (const source of ['A', 'A', 'A', 'b']) await holdfast.enqueue('mail', {}, { source });

  expect(await given(holdfast, 4)).toBe('AbAA');
});

test('makes a queue fair, and exact again, while tasks wait', async () => {
  await using holdfast = await open();
  for (const source of ['A', 'A', 'A', 'A', 'b', 'b']) await holdfast.enqueue('mail', {}, { source });

  await holdfast.setQueueFair('default', true);
  expect(await given(holdfast, 3)).toBe('AbA');
  await holdfast.setQueueFair('default', false);
  expect(await given(holdfast, 3)).toBe('AAb');
  await expect(holdfast.setQueueFair('default', 1 as never)).rejects.toThrow(/must be one of true, false/);
});

test('leaves the settings of a queue that are not given', async () => {
  await using holdfast = await open({ mail: { order: 'lifo' }, bulk: { fair: true } });
  await holdfast.setQueueFair('mail', true);
  await holdfast.setQueueOrder('bulk', 'priority');

  expect(await holdfast.queues()).toEqual([
    { name: 'bulk', order: 'priority', fair: true },
    { name: 'mail', order: 'lifo', fair: true },
  ]);
});

test('limits a queue for all workers, and says so', async () => {
  await using holdfast = await open();
  for (const source of ['A', 'b']) await holdfast.enqueue('mail', {}, { source });

  await holdfast.limitQueue('default', { concurrency: 1, pace: '1000/s' });
  expect(await holdfast.queues()).toMatchObject([{ concurrency: 1, pace: { perSecond: 1_000, burst: 100 } }]);
  expect(await given(holdfast, 2)).toBe('A-');
  await holdfast.limitQueue('default', { concurrency: null });
  expect(await given(holdfast, 1)).toBe('b');
  await expect(holdfast.limitQueue('default', {})).rejects.toThrow(/limitQueue has no limits/);
});
