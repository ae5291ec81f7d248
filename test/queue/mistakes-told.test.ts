import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { Registry } from '../../src/config/registry.ts';
import { defineTask, type Logger, NeedsManual } from '../../src/index.ts';
import { openTestHoldfast, type TestHoldfast } from '../../src/testing/index.ts';
import { Asking } from '../../src/worker/asking.ts';
import { aStore } from '../a-store.ts';
import { gate } from '../worker/scene.ts';

const plain = defineTask('plain', {
  retry: { maxAttempts: 1 },
  run(input) {
    if (input?.reason) throw new NeedsManual('x', { reason: input.reason });
    return input?.how === 'map' ? new Map() : undefined;
  },
});
const read = defineTask('read', { input: z.object({ at: z.coerce.date() }), run() {} });
const urgent = defineTask('urgent', { priority: 7, run() {} });
const tasks = [plain, read, urgent];

class Money {
  readonly amount = 5;
}

let kit: TestHoldfast;
afterEach(() => kit?.close());

/** The warnings that are logged, and a promise of the next one. */
async function openLogged() {
  const warnings: string[] = [];
  let heard = gate();
  const log: Logger = {
    debug() {},
    info() {},
    error() {},
    warn(_, message) {
      warnings.push(message);
      heard.open();
    },
  };
  kit = await openTestHoldfast({ tasks, log, store: aStore(), queues: { ordered: { order: 'priority' } } });
  const next = async () => {
    await heard.passed;
    heard = gate();
    return warnings.at(-1);
  };
  return { holdfast: kit.holdfast, warnings, next };
}

describe('what is probably not meant is told once', () => {
  test('an input that its handler gets in another form, unless a schema reads it', async () => {
    const { holdfast, warnings } = await openLogged();
    await holdfast.enqueue(plain, { at: new Date(0) });
    await holdfast.enqueue(plain, { at: new Date(1) });
    await holdfast.enqueue('elsewhere', new Money());
    await holdfast.enqueue(read, { at: new Date(0) });
    expect(warnings).toEqual([
      expect.stringContaining(
        "'plain' gets its input in another form: the Date at $.at becomes the text '1970-01-01T00:00:00.000Z'",
      ),
      expect.stringContaining('the instance of Money at $ becomes a plain object without its methods'),
    ]);
  });

  test('a priority in a queue that has another order', async () => {
    const { holdfast, warnings, next } = await openLogged();
    await holdfast.enqueue(urgent, null, { queue: 'ordered' });
    await holdfast.enqueue(urgent, null);
    expect(await next()).toContain("A priority has no effect in the queue 'default', whose order is fifo");
    expect(warnings).toHaveLength(1);
  });

  test('a reason of a handler that is a misspelt one of ours', async () => {
    const { holdfast, warnings } = await openLogged();
    await holdfast.enqueue(plain, { reason: 'net.rset' });
    await holdfast.enqueue(plain, { reason: 'net.reset' });
    await holdfast.enqueue(plain, { reason: 'order.closed' });
    await kit.drain();
    const claim = await holdfast.claim({ id: (await holdfast.enqueue('elsewhere', null)).id });
    await claim?.fail(new NeedsManual('x', { reason: 'fs.lokced' }));
    expect(warnings.filter((each) => each.includes('reason'))).toEqual([
      expect.stringContaining("A handler gave this reason. Unknown reason 'net.rset'. Did you mean 'net.reset'?"),
      expect.stringContaining("Unknown reason 'fs.lokced'. Did you mean 'fs.locked'?"),
    ]);
  });

  test('a type that the configuration names with one letter missing', async () => {
    const config = new Registry();
    config.load('types: { ordr.push: { retry: { maxAttempts: 2 } }, order.pull: { retry: { maxAttempts: 3 } } }');
    const push = defineTask('order.push', { run() {} });
    const warnings: string[] = [];
    const log: Logger = { debug() {}, info() {}, error() {}, warn: (_, message) => warnings.push(message) };
    kit = await openTestHoldfast({ tasks: [push, plain], config, log });
    expect(warnings).toEqual([
      "The configuration has a policy for the type 'ordr.push', and none for 'order.push'. Did it mean 'order.push'?",
    ]);
    config.load('types: { order.push: { retry: { maxAttempts: 2 } }, ordr.push: { retry: { maxAttempts: 3 } } }');
    expect(warnings).toHaveLength(1);
  });

  test('a key whose task has another input', async () => {
    const { holdfast, warnings, next } = await openLogged();
    const { id } = await holdfast.enqueue(plain, { n: 1 }, { key: 'k' });
    await holdfast.enqueue(plain, { n: 1 }, { key: 'same' });
    await holdfast.enqueue(plain, { n: 1 }, { key: 'same' });
    await holdfast.enqueue(plain, { n: 2 }, { key: 'k' });
    expect(await next()).toContain(`The key 'k' of 'plain' belongs to task #${id}, which has another input`);
    expect(warnings).toHaveLength(1);
  });

  test('a result that cannot be kept', async () => {
    const { holdfast, warnings } = await openLogged();
    const { id } = await holdfast.enqueue(plain, { how: 'map' });
    await kit.drain();
    expect((await holdfast.get(id)).state).toBe('succeeded');
    expect(warnings).toEqual([
      expect.stringMatching(/Task #1 of the type 'plain' succeeded\. Its result was not kept\..*a Map/),
    ]);
  });

  test('as a warning of the process, where no log was given', async () => {
    kit = await openTestHoldfast({ tasks, store: aStore() });
    const warned = once(process, 'warning');
    await kit.holdfast.enqueue(plain, { at: new Date(0) });
    expect((await warned)[0]).toMatchObject({
      name: 'HoldfastWarning',
      message: expect.stringContaining('the Date at $.at'),
    });
  });
});

test('a store that does not answer is told of once, and its end too', async () => {
  const [silence, answered] = [gate(), gate()];
  const told: string[] = [];
  const asking = new Asking({} as never, {
    noAnswerFor: 20,
    onNoAnswer() {
      told.push('no answer');
      silence.open();
    },
    onAnswer: (after) => void told.push(after >= 20 ? 'answers' : 'too soon'),
  });
  await asking.ask(async () => {});
  const call = asking.ask(() => answered.passed);
  await silence.passed;
  answered.open();
  await call;
  await asking.ask(async () => {});
  expect(told).toEqual(['no answer', 'answers']);
});
