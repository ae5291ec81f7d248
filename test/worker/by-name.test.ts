import { expect, test } from 'vitest';
import { defineTask, Failed, presets, schedule } from '../../src/index.ts';
import { useKits } from './scene.ts';

const open = useKits();

/** An effect that may have happened. */
const reset = Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET', syscall: 'read' });

test('for a task enqueued by name, the worker’s definition says whether it may run twice', async () => {
  const charge = defineTask('charge', {
    idempotent: (input: { safe: boolean }) => input.safe,
    run() {
      throw reset;
    },
  });
  const kit = await open({ tasks: [charge] });
  const elsewhere = kit.holdfast.store.tasks;
  const named = { type: 'charge', queue: 'default', source: 'charge', priority: 0, delay: 0 };
  const receipts = await elsewhere.enqueue([
    { ...named, payload: '{"safe":false}' },
    { ...named, payload: '{"safe":true}' },
    { ...named, payload: '{"safe":false}', idempotent: true },
  ]);
  await kit.drain();

  const states = await Promise.all(receipts.map(async ({ id }) => (await kit.holdfast.get(id)).state));
  expect(states).toEqual(['needs_manual', 'scheduled', 'scheduled']);
});

test('a task of an unknown type is enqueued without saying whether it may run twice', async () => {
  const kit = await open({ tasks: [defineTask('other', { run() {} })] });
  const { id } = await kit.holdfast.enqueue('charge', null);
  const { id: said } = await kit.holdfast.enqueue('charge', null, { idempotent: false });
  expect(await kit.holdfast.get(id)).toMatchObject({ idempotent: true });
  expect(await kit.holdfast.get(said)).toMatchObject({ idempotent: false });
});

test('a definition for all types gives its tasks its own source, and the preset of their type', async () => {
  const all = defineTask('*', {
    source: (input: string) => `imap:${input}`,
    run() {
      throw new Failed('not now');
    },
  });
  const kit = await open({ tasks: [all] });
  const { id } = await kit.holdfast.enqueue('imap_mailbox', 'INBOX');
  await kit.drain();

  const [entry] = await kit.holdfast.history(id);
  expect(await kit.holdfast.get(id)).toMatchObject({ source: 'imap:INBOX', type: 'imap_mailbox' });
  expect(entry).toMatchObject({ because: { policyVersion: presets.imapMailbox.version } });
});

test('only one of two people answers a task', async () => {
  const ask = defineTask('ask', {
    retry: { maxAttempts: 1, onExhausted: 'needs_manual', backoff: schedule(['1h']) },
    run() {
      throw new Error('?');
    },
  });
  const kit = await open({ tasks: [ask] });
  const { id } = await kit.holdfast.enqueue(ask, null);
  await kit.drain();

  const answers = await Promise.allSettled([
    kit.holdfast.resolve(id, { as: 'succeeded', result: 42, actor: 'ann' }),
    kit.holdfast.resolve(id, { as: 'retry', actor: 'bob' }),
  ]);
  expect(answers).toMatchObject([{ status: 'fulfilled' }, { status: 'rejected', reason: { code: 'state_conflict' } }]);
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: 42 });
});

test('a drain ends if handlers that ignore their abort have every slot', async () => {
  const deaf = defineTask('deaf', {
    retry: { timeout: '1s', maxAttempts: 1 },
    run: () => new Promise<void>(() => {}),
  });
  const kit = await open({ tasks: [deaf], worker: { concurrency: 1, grace: '1s' }, patienceMs: 20 });
  const { id } = await kit.holdfast.enqueue(deaf, null);
  await kit.advance('1m');
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'timeout' });
  await kit.worker.drain();
});

test('a logger that rejects later ends nothing', async () => {
  const fails = async () => Promise.reject(new Error('the log is full'));
  const log = { debug: fails, info: fails, warn: fails, error: fails };
  const kit = await open({ tasks: [defineTask('work', { run: () => 1 })], log });
  const { id } = await kit.holdfast.enqueue('work', null);
  await kit.drain();
  expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
});
