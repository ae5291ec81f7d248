import { expect, test } from 'vitest';
import { SharedAnswers } from '../../src/dashboard/shared-answers.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { useKits } from '../worker/scene.ts';
import { callsOf } from './calls.ts';

const open = useKits();

test('the same question is looked up once while it is answered, and again after that or after an act', async () => {
  const shared = new SharedAnswers();
  const give: ((text: string) => void)[] = [];
  const look = () => new Promise<string>((resolve) => give.push(resolve));
  const [first, second, other] = [shared.to('status', look), shared.to('status', look), shared.to('queues', look)];
  expect(give).toHaveLength(2);

  shared.forget();
  const after = shared.to('status', look);
  expect(give).toHaveLength(3);
  for (const [n, one] of give.entries()) one(`answer ${n}`);
  expect(await Promise.all([first, second, other, after])).toEqual(['answer 0', 'answer 0', 'answer 1', 'answer 2']);

  const later = shared.to('status', look);
  expect(give).toHaveLength(4);
  give[3]?.('later');
  expect(await later).toBe('later');
});

test('a question that failed is asked again', async () => {
  const shared = new SharedAnswers();
  const failed = [1, 2].map(() => shared.to('status', () => Promise.reject(new Error('away'))));
  expect((await Promise.allSettled(failed)).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(await shared.to('status', async () => 'back')).toBe('back');
});

test('who asks after an act sees what it did, also while others ask; who they are is told to each', async () => {
  const wait = defineTask('wait', { run() {} });
  const kit = await open({ tasks: [wait] });
  const { id } = await kit.holdfast.enqueue(wait, 1);
  const { get, act } = callsOf(kit.holdfast);
  const asking = Array.from({ length: 10 }, () => get('status'));
  await act(`tasks/${id}/hold`);
  expect((await get('status')).json).toMatchObject({ by_state: { held: 1, ready: 0 } });
  for (const { status, json } of await Promise.all(asking)) {
    expect(status).toBe(200);
    expect(json.by_state.held + json.by_state.ready).toBe(1);
  }
  expect((await get('me')).json).toMatchObject({ actor: 'ann' });
});
