import { describe, expect, test } from 'vitest';
import { defineTask, Failed, type Verified, type VerifyCheck } from '../../src/index.ts';
import { useKits } from './scene.ts';

const open = useKits();

/** A payment that fails once as if its answer was lost, and a verify step that answers so. */
function payment(answer: () => Verified | Promise<Verified>, idempotent = false) {
  const checks: VerifyCheck[] = [];
  const keys: string[] = [];
  const definition = defineTask('pay', {
    idempotent,
    retry: { maxAttempts: 3, jitter: 'none' },
    run(_: number, { execution, idempotencyKey }) {
      keys.push(idempotencyKey);
      if (execution === 1) throw Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });
      return 'paid';
    },
    verify(_input, check) {
      checks.push(check);
      return answer();
    },
  });
  return { definition, checks, keys };
}

describe('before a person is asked whether the effect happened, the verify step is asked', () => {
  test('happened: the task succeeds, and its history says why', async () => {
    const { definition, checks, keys } = payment(() => 'happened');
    const kit = await open({ tasks: [definition] });
    const { id } = await kit.holdfast.enqueue(definition, 5);
    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', executions: 1, attempts: 0 });
    expect(await kit.holdfast.history(id)).toMatchObject([
      {
        outcome: 'success',
        message: 'It failed (net.reset: read ECONNRESET), but its verify step found that the effect happened.',
      },
    ]);
    expect(checks).toMatchObject([
      { id, type: 'pay', execution: 1, failure: { reason: 'net.reset' }, idempotencyKey: keys[0] },
    ]);
  });

  test('did_not_happen: the policy retries it, and charges the attempt', async () => {
    const { definition } = payment(() => 'did_not_happen');
    const kit = await open({ tasks: [definition] });
    const { id } = await kit.holdfast.enqueue(definition, 5);
    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 1 });
    const [entry] = await kit.holdfast.history(id);
    expect(entry).toMatchObject({
      because: { text: expect.stringMatching(/The verify step found that the effect did not happen\.$/) },
    });
    await kit.advance('10s');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 'paid', executions: 2 });
  });

  test.each<[string, () => Verified | Promise<Verified>]>([
    ['unknown', () => 'unknown'],
    ['an error of its own', () => Promise.reject(new Error('The bank is closed.'))],
    ['no answer within 30 s', () => new Promise(() => {})],
    ['another word', () => 'maybe' as Verified],
  ])('%s: a person is asked', async (_, answer) => {
    const { definition } = payment(answer);
    const kit = await open({ tasks: [definition] });
    const { id } = await kit.holdfast.enqueue(definition, 5);
    await kit.advance('31s');

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', executions: 1 });
    const [entry] = await kit.holdfast.history(id);
    expect(entry).toMatchObject({
      because: {
        step: 'ambiguous',
        text: expect.stringMatching(/The verify step could not tell whether the effect happened\.$/),
      },
    });
  });

  test.each<[string, Verified, object]>([
    ['happened', 'happened', { state: 'succeeded', executions: 1 }],
    ['did not happen', 'did_not_happen', { state: 'succeeded', executions: 2, result: 'paid' }],
    ['is not known', 'unknown', { state: 'needs_manual', executions: 1 }],
  ])('a task that was lost with its worker: its effect %s', async (_, answer, expected) => {
    const { definition, checks } = payment(() => answer);
    const kit = await open({ tasks: [definition], worker: { types: [], leaseFor: '30s' } });
    const { id } = await kit.holdfast.enqueue(definition, 5);
    await kit.holdfast.claim({ leaseFor: '30s' });
    await kit.worker.stop();
    for (const step of [31_000, 10_000]) {
      kit.clock.moveTo(kit.clock.now() + step);
      const claim = await kit.holdfast.claim();
      await claim?.complete('paid');
    }

    expect(checks).toMatchObject([{ id, execution: 1, failure: undefined }]);
    expect(await kit.holdfast.get(id)).toMatchObject(expected);
  });
});

test.each<[string, boolean, Error]>([
  ['a task that may run twice', true, Object.assign(new Error('reset'), { code: 'ECONNRESET' })],
  ['a failure that is not ambiguous', false, new Failed('refused', { reason: 'app.refused', kind: 'transient' })],
])('%s has no verify step', async (_, idempotent, error) => {
  let asked = 0;
  const definition = defineTask('pay', {
    idempotent,
    run: () => Promise.reject(error),
    verify: () => {
      asked += 1;
      return 'happened';
    },
  });
  const kit = await open({ tasks: [definition] });
  const { id } = await kit.holdfast.enqueue(definition, 5);
  await kit.drain();

  expect(asked).toBe(0);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled' });
});
