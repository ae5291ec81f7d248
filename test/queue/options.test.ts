import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { defineTask, exponential, type Holdfast, openHoldfast, presets } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();

const work = defineTask('work', { run() {} });
const TOO_LONG = 'x'.repeat(256);
/** Names that no type, queue, source, category, key, worker or actor may have. */
const BAD_NAMES = ['', TOO_LONG, 'a\nb', 'a\u0000b', '\u007f', '\ud800'];

const badNames = BAD_NAMES.map((name): [string, unknown] => [JSON.stringify(name), name]);

describe('openHoldfast refuses', () => {
  const open = (options: object) => refused(() => openHoldfast({ store: aStore(), ...options } as never));

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date', 'a function']))(
    '%s for its options',
    async (_, options) => {
      expect((await refused(() => openHoldfast(options as never))).code).toBe('invalid_input');
    },
  );

  test('options that it does not have, naming those that it has', async () => {
    const { code, message } = await open({ stor: 1 });
    expect(code).toBe('invalid_input');
    expect(message).toMatch(/openHoldfast has no option 'stor'\. It has: store, tasks, queues/);
  });

  test.each(nonsense())('%s for a store', async (_, store) => {
    expect((await open({ store })).message).toMatch(/needs a store, such as/);
  });

  test.each(nonsense())('%s for its tasks', async (_, tasks) => {
    expect((await open({ tasks })).message).toMatch(/tasks/);
  });

  test.each(nonsense())('%s for one of its tasks', async (_, task) => {
    expect((await open({ tasks: [work, task] })).message).toMatch(/defineTask/);
  });

  test('a definition that somebody made by hand', async () => {
    expect((await open({ tasks: [{ type: 'x', run() {} }] })).message).toMatch(/defineTask/);
  });

  test('a type that is defined twice', async () => {
    expect((await open({ tasks: [work, defineTask('work', { run() {} })] })).message).toMatch(
      /'work' is defined twice/,
    );
  });

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date']))('%s for its queues', async (_, queues) => {
    expect((await open({ queues })).code).toBe('invalid_input');
  });

  test('queues with bad names, unknown settings or unknown orders', async () => {
    for (const name of BAD_NAMES)
      expect((await open({ queues: { [name]: { order: 'fifo' } } })).code).toBe('invalid_input');
    expect((await open({ queues: { q: null } })).message).toMatch(/'q'/);
    expect((await open({ queues: { q: { orders: 'fifo' } } })).message).toMatch(/has no option 'orders'/);
    expect((await open({ queues: { q: { order: 'best' } } })).message).toMatch(
      /one of fifo, lifo, priority, weighted_random, got "best"/,
    );
    expect((await open({ queues: { q: {} } })).message).toMatch(/'q' has no settings\. Set `order`, `fair`, `pace` or/);
    expect((await open({ queues: { q: { pace: 'fast' } } })).message).toMatch(/'q': pace must be a rate .*'fast'/);
    expect((await open({ queues: { q: { concurrency: 0 } } })).message).toMatch(
      /'q': concurrency must be a whole number/,
    );
    expect((await open({ queues: { q: { fair: 'yes' } } })).message).toMatch(/'q' is fair must be one of true, false/);
  });

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date']))(
    '%s for its sources',
    async (_, sources) => {
      expect((await open({ sources })).code).toBe('invalid_input');
    },
  );

  test('sources with bad names, unknown limits or none', async () => {
    for (const name of BAD_NAMES)
      expect((await open({ sources: { [name]: { pace: '1/s' } } })).code).toBe('invalid_input');
    const messageOf = async (limits: unknown) => (await open({ sources: { s: limits } })).message;
    expect(await messageOf(null)).toMatch(/'s'/);
    expect(await messageOf({})).toMatch(/'s' has no limits\. Set `pace` or `concurrency`\./);
    expect(await messageOf({ rate: '10/s' })).toMatch(/has no option 'rate'\. It has: pace, concurrency/);
    expect(await messageOf({ pace: 10 })).toMatch(/'s': pace must be a rate such as '10\/s'.*got 10\./);
    expect(await messageOf({ concurrency: 1.5 })).toMatch(/'s': concurrency must be a whole number .*got 1\.5\./);
  });

  test.each(nonsense())('%s for a size limit', async (_, maxPayloadBytes) => {
    expect((await open({ maxPayloadBytes })).message).toMatch(/maxPayloadBytes must be a whole number/);
  });

  test.each(nonsense())('%s for a log', async (_, log) => {
    expect((await open({ log })).message).toMatch(/log/);
  });

  test.each([...nonsense(['a text']), ...badNames])('%s for the name of its workers', async (_, workerName) => {
    expect((await open({ workerName })).message).toMatch(/workerName/);
  });
});

describe('sqlite refuses', () => {
  test.each(nonsense(['a text']))('%s for a path', async (_, path) => {
    expect((await refused(() => sqlite(path as never))).message).toMatch(/path/);
  });
});

describe('defineTask refuses', () => {
  const define = (options: unknown, type: unknown = 'work') =>
    refused(() => defineTask(type as never, options as never));

  test.each([...nonsense(['a text']), ...badNames])('%s for a type', async (_, type) => {
    expect((await define({ run() {} }, type)).message).toMatch(/type/);
  });

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date']))(
    '%s for its options',
    async (_, options) => {
      expect((await define(options)).code).toBe('invalid_input');
    },
  );

  test('options that it does not have', async () => {
    expect((await define({ run() {}, retries: 5 })).message).toMatch(/defineTask\('work'\) has no option 'retries'/);
  });

  test.each(nonsense(['a function']))('%s for `run`', async (_, run) => {
    expect((await define({ run })).message).toMatch(/needs a function `run`/);
  });

  test.each(nonsense(['an invalid Date']))('%s for a policy', async (_, retry) => {
    expect((await define({ run() {}, retry })).code).toBe('invalid_policy');
  });

  test('policies that would not work, showing the value', async () => {
    expect((await define({ run() {}, retry: { maxAttempts: 0 } })).message).toMatch(/maxAttempts .* got 0/);
    expect((await define({ run() {}, retry: { timeout: 0 } })).message).toMatch(/timeout must be longer than 0/);
    expect((await define({ run() {}, retry: { ...presets.standard, maxAttempts: -1 } })).code).toBe('invalid_policy');
  });

  test('bad numbers, names and functions', async () => {
    for (const [, value] of nonsense(['a text']))
      expect((await define({ run() {}, queue: value })).message).toMatch(/queue/);
    for (const [, value] of nonsense())
      expect((await define({ run() {}, priority: value })).message).toMatch(/priority/);
    expect((await define({ run() {}, priority: 4_096 })).message).toMatch(/between 0 and 4095, got 4096/);
    for (const [, value] of nonsense(['a text'])) {
      expect((await define({ run() {}, category: value })).message).toMatch(/category/);
    }
    for (const [, value] of nonsense(['an object', 'an invalid Date'])) {
      expect((await define({ run() {}, needs: value })).message).toMatch(/needs/);
    }
    for (const [, value] of nonsense(['a text', 'a function'])) {
      expect((await define({ run() {}, source: value })).message).toMatch(/source/);
    }
    for (const [, value] of nonsense(['true', 'a function'])) {
      expect((await define({ run() {}, idempotent: value })).message).toMatch(/idempotent/);
    }
    for (const [, value] of nonsense()) expect((await define({ run() {}, input: value })).message).toMatch(/input/);
  });

  test('needs that nothing can meet', async () => {
    for (const need of [null, undefined, Number.NaN, Number.POSITIVE_INFINITY, 10n, {}, [], () => {}]) {
      expect((await define({ run() {}, needs: { cpu: need } })).message).toMatch(/needs\.cpu must be/);
    }
  });
});

describe('defineTask', () => {
  test('gives a policy that was spread and changed its own version', () => {
    const { policy } = defineTask('work', { retry: { ...presets.standard, maxAttempts: 2 }, run() {} });

    expect(policy.maxAttempts).toBe(2);
    expect(policy.version).not.toBe(presets.standard.version);
  });

  test('takes a whole policy as it is', () => {
    const retry = presets.imapMailbox;
    expect(defineTask('work', { retry, run() {} }).policy).toEqual(retry);
  });

  test('gives a type that is called like a preset that preset', () => {
    expect(defineTask('imap_mailbox', { run() {} }).policy).toBe(presets.imapMailbox);
    expect(defineTask('constructor', { run() {} }).policy).toBe(presets.standard);
    expect(defineTask('__proto__', { run() {} }).policy).toBe(presets.standard);
  });
});

describe('a worker refuses', () => {
  let holdfast: Holdfast;
  beforeAll(async () => {
    holdfast = await openHoldfast({ store: aStore(), tasks: [work] });
  });
  afterAll(() => holdfast.close());
  const make = (options: unknown) => refused(() => holdfast.worker(options as never));

  test.each(nonsense(['an object', 'a hostile object', 'an invalid Date', 'a function']))(
    '%s for its options',
    async (_, options) => {
      expect((await make(options)).code).toBe('invalid_input');
    },
  );

  test('options that it does not have', async () => {
    expect((await make({ concurency: 5 })).message).toMatch(
      /A worker has no option 'concurency'\. It has: name, concurrency/,
    );
  });

  test.each([
    ['name', nonsense(['a text'])],
    ['concurrency', nonsense()],
    ['queues', nonsense()],
    ['types', nonsense()],
    ['categories', nonsense()],
    ['capabilities', nonsense(['an object', 'an invalid Date'])],
    ['leaseFor', nonsense()],
    ['pollInterval', nonsense(['1.5'])],
    ['grace', nonsense(['1.5'])],
    ['maxTasks', nonsense()],
    ['only', nonsense(['an array'])],
    ['onEvent', nonsense(['a function'])],
  ])('nonsense for %s, naming it', async (option, values) => {
    for (const [, value] of values) expect((await make({ [option]: value })).message).toContain(option);
  });

  test('numbers beyond its limits, naming them', async () => {
    expect((await make({ concurrency: 0 })).message).toMatch(
      /concurrency must be a whole number between 1 and 10000, got 0/,
    );
    expect((await make({ concurrency: 10_001 })).message).toMatch(/got 10001/);
    expect((await make({ leaseFor: '999ms' })).message).toMatch(/leaseFor must be at least 1 s/);
    expect((await make({ leaseFor: '11 years' })).message).toMatch(/leaseFor/);
    expect((await make({ pollInterval: 0 })).message).toMatch(/pollInterval must be at least 1 ms/);
    expect((await make({ maxTasks: 0 })).message).toMatch(/maxTasks/);
    expect((await make({ only: [0] })).message).toMatch(/only/);
    expect((await make({ only: ['1'] })).message).toMatch(/only/);
  });

  test('a name instead of a list of names', async () => {
    for (const option of ['queues', 'categories', 'types']) {
      expect((await make({ [option]: 'default' })).message).toMatch(/must be a list/);
    }
  });

  test('a type that it has no definition of', async () => {
    const { code, message } = await make({ types: ['work', 'wrok'] });
    expect([code, message]).toEqual(['unknown_type', expect.stringContaining("'wrok'")]);
  });

  test('nonsense for the grace of its stop, and goes on', async () => {
    const worker = holdfast.worker();
    for (const [, grace] of nonsense(['1.5'])) {
      expect((await refused(() => worker.stop({ grace } as never))).message).toMatch(/grace/);
    }
    expect((await refused(() => worker.stop({ graze: 1 } as never))).message).toMatch(/stop has no option 'graze'/);
    for (const [, options] of nonsense(['an object', 'a hostile object', 'an invalid Date', 'a function'])) {
      expect((await refused(() => worker.stop(options as never))).code).toBe('invalid_input');
    }
    await worker.drain();
    await worker.stop();
  });

  test('to work where there is no type to work', async () => {
    const empty = await openHoldfast({ store: aStore() });
    expect(await refused(() => empty.work())).toMatchObject({
      code: 'unknown_type',
      message: expect.stringContaining('open Holdfast with the `tasks`'),
    });
    await empty.close();
  });
});

describe('openTestHoldfast refuses', () => {
  const open = (options: object) => refused(() => openTestHoldfast(options as never));

  test('what it does not know, and nonsense', async () => {
    expect((await open({ sed: 1 })).message).toMatch(/openTestHoldfast has no option 'sed'/);
    for (const [, start] of nonsense()) expect((await open({ start })).message).toMatch(/start/);
    for (const [, seed] of nonsense(['-1', '1.5'])) expect((await open({ seed })).message).toMatch(/seed/);
    for (const [, patienceMs] of nonsense(['1.5'])) expect((await open({ patienceMs })).message).toMatch(/patienceMs/);
    for (const [, worker] of nonsense(['a hostile object', 'an invalid Date'])) {
      expect((await open({ tasks: [work], worker })).code).toBe('invalid_input');
    }
    expect((await open({ tasks: [work], worker: { concurency: 1 } })).message).toMatch(/no option 'concurency'/);
  });

  test('a wrong worker without leaving its store open', async () => {
    const { path, remove } = await temporary();
    await open({ tasks: [work], store: aStore(path), worker: { concurrency: 0 } });
    const kit = await openTestHoldfast({ tasks: [work], store: aStore(path) });
    await kit.drain();
    expect(await kit.holdfast.workers()).toHaveLength(1);
    await kit.close();
    remove();
  });

  test('nonsense for the time to advance', async () => {
    const kit = await openTestHoldfast({ store: aStore(), tasks: [work] });
    for (const [, time] of nonsense(['1.5'])) {
      expect((await refused(() => kit.advance(time as never))).message).toMatch(/time/);
    }
    for (const [, time] of nonsense(['1.5'])) {
      expect((await refused(() => kit.clock.sleep(time as never))).message).toMatch(/time/);
      expect((await refused(() => kit.clock.moveTo(time as never))).code).toBe('invalid_input');
    }
    expect(kit.clock.sleepers).toBe(0);
    await kit.close();
  });
});

async function temporary() {
  const { mkdtempSync, rmSync } = await import('node:fs');
  const { tmpdir } = await import('node:os');
  const { join } = await import('node:path');
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-options-'));
  return { path: join(folder, 'tasks.db'), remove: () => rmSync(folder, { recursive: true }) };
}

test('policies keep what they were given: a backoff with a function survives a definition', () => {
  const retry = { backoff: exponential({ base: '1s' }) };
  expect(defineTask('work', { retry, run() {} }).policy.backoff).toEqual(retry.backoff);
});
