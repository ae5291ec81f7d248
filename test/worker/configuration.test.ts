import { describe, expect, test } from 'vitest';
import { Registry } from '../../src/config/registry.ts';
import { defineTask, describeOrigin, fixed, immediate, none, presets } from '../../src/index.ts';
import { refused } from '../queue/refused.ts';
import { useKits } from './scene.ts';

const openKit = useKits();

function registryOf(text = 'version: 1'): Registry {
  const registry = new Registry();
  registry.load(text);
  return registry;
}

const waitSeconds = (seconds: number, attempts = 5) =>
  `types: { mail: { retry: { maxAttempts: ${attempts}, backoff: { fixed: ${seconds}s }, jitter: none } } }`;

/** A type whose handler does what its input says. */
function mail(options: object = {}) {
  return defineTask('mail', {
    ...options,
    run(input: { fail?: string; code?: string } | null) {
      if (input?.fail) throw Object.assign(new Error(input.fail), { code: input.code });
    },
  });
}

describe('a configuration', () => {
  test('answers the next failure of each of 100 tasks that waited when it changed', async () => {
    const config = registryOf(waitSeconds(60));
    const kit = await openKit({ tasks: [mail()], config });
    const receipts = await kit.holdfast.enqueueAll('mail', Array(100).fill({ fail: 'broken' }));
    await kit.drain();
    config.load(waitSeconds(300));
    await kit.advance('60s');
    config.load(waitSeconds(300, 3));
    await kit.advance('300s');
    const versions = new Set<string>();
    for (const { id } of receipts) {
      const decisions = (await kit.holdfast.history(id)).flatMap((entry) =>
        entry.kind === 'execution' ? [entry] : [],
      );
      expect(decisions.map(({ after, next }) => after ?? next)).toEqual([60_000, 300_000, 'dead']);
      for (const { because } of decisions) versions.add(because?.policyVersion ?? 'none');
    }
    expect(versions.size).toBe(3);
  });

  test('answers the failure of an execution that ran while it changed', async () => {
    const config = registryOf(waitSeconds(60));
    const slow = defineTask('mail', {
      run() {
        config.load(waitSeconds(7));
        throw new Error('broken');
      },
    });
    const kit = await openKit({ tasks: [slow], config });
    const { id } = await kit.holdfast.enqueue(slow, null);
    await kit.drain();
    expect(await kit.holdfast.history(id)).toMatchObject([{ after: 7_000 }]);
  });

  test('wins over the code of a type, but not over the options of a task', async () => {
    const config = registryOf('types: { mail: { retry: { maxAttempts: 1 } } }');
    const kit = await openKit({ tasks: [mail({ retry: { maxAttempts: 9, backoff: immediate } })], config });
    const { id } = await kit.holdfast.enqueue('mail', { fail: 'broken' });
    const own = await kit.holdfast.enqueue('mail', { fail: 'broken' }, { retry: { maxAttempts: 2 } });
    await kit.drain();
    expect((await kit.holdfast.get(id)).attempts).toBe(1);
    expect((await kit.holdfast.get(own.id)).attempts).toBe(2);
  });

  test('answers a claim by hand as it is when the claim is settled', async () => {
    const config = registryOf(waitSeconds(60));
    const { holdfast } = await openKit({ tasks: [defineTask('other', { run() {} })], config });
    await holdfast.enqueue('mail', null);
    const claim = await holdfast.claim({ types: ['mail'] });
    expect(claim?.maxAttempts).toBe(5);
    config.load(waitSeconds(7));
    expect(await claim?.fail(new Error('broken'))).toMatchObject({ decision: { after: 7_000 } });
  });

  test('classifies errors, for handlers and claims by hand', async () => {
    const rule = (kind: string) =>
      `classify: [{ when: { code: E_CLOSED, type: mail }, reason: order.closed, kind: ${kind} }]`;
    const config = registryOf(rule('permanent'));
    const kit = await openKit({ tasks: [mail({ queue: 'q' })], config });
    const { id } = await kit.holdfast.enqueue('mail', { fail: 'closed', code: 'E_CLOSED' });
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', reason: 'order.closed' });

    await kit.holdfast.enqueue('other', null);
    config.load(rule('transient').replace('mail', 'other'));
    const claim = await kit.holdfast.claim({ types: ['other'] });
    const settled = await claim?.fail(Object.assign(new Error('closed'), { code: 'E_CLOSED' }));
    expect(settled).toMatchObject({ state: 'scheduled', decision: { reason: 'order.closed' } });
  });

  test('gives queues their order, at once and when it changes', async () => {
    const config = registryOf('queues: { a: { order: lifo } }');
    const kit = await openKit({
      tasks: [mail()],
      queues: { a: { order: 'fifo' }, b: { order: 'priority' } },
      config,
    });
    const orders = async () =>
      Object.fromEntries((await kit.holdfast.queues()).map(({ name, order }) => [name, order]));
    expect(await orders()).toMatchObject({ a: 'lifo', b: 'priority' });
    config.load('queues: { a: { order: priority } }');
    await kit.drain();
    expect(await orders()).toMatchObject({ a: 'priority', b: 'priority' });
  });

  test('gives the defaults of workers', async () => {
    const kit = await openKit({
      tasks: [mail()],
      config: registryOf('worker: { queues: [bulk] }'),
      worker: { name: 'w' },
    });
    const elsewhere = await kit.holdfast.enqueue('mail', null);
    const here = await kit.holdfast.enqueue('mail', null, { queue: 'bulk' });
    await kit.drain();
    expect((await kit.holdfast.get(elsewhere.id)).state).toBe('ready');
    expect((await kit.holdfast.get(here.id)).state).toBe('succeeded');
  });

  test('is refused where it is none', async () => {
    const refusal = await refused(() => openKit({ config: 'holdfast.yaml' as never }));
    expect(refusal.message).toBe(
      "config takes what loadConfig('holdfast.yaml') of holdfast/config resolves to, got 'holdfast.yaml'.",
    );
  });
});

describe('what workers publish of their types', () => {
  test('is what a configuration makes of them, and follows when it changes', async () => {
    const config = registryOf('types: { mail: { retry: { maxAttempts: 6 } } }');
    const kit = await openKit({ tasks: [mail({ retry: { backoff: none } })], config });
    await kit.drain();
    const published = async () => JSON.parse((await kit.holdfast.store.records.published('mail')) ?? '{}');
    expect(await published()).toMatchObject({ maxAttempts: 6, backoff: { kind: 'none' } });
    config.load('types: { mail: { retry: { maxAttempts: 7 } } }');
    await kit.drain();
    expect(await published()).toMatchObject({ maxAttempts: 7, backoff: { kind: 'none' } });
  });

  test('is used with the configuration of the process that recovers their tasks', async () => {
    const config = registryOf('defaults: { retry: { maxAttempts: 2 } }\ntypes: { alien: { retry: { timeout: 5m } } }');
    const kit = await openKit({ tasks: [mail()], config });
    await kit.holdfast.store.tasks.publish({ alien: JSON.stringify(presets.analysis) }, []);
    const { policy, values } = await kit.holdfast.policyFor({ type: 'alien' });
    expect(policy).toMatchObject({ maxAttempts: 4, timeout: 300_000 });
    const origin = (name: string) => describeOrigin(values.find(({ path }) => path[0] === name)?.from as never);
    expect([origin('maxAttempts'), origin('maxDeferrals')]).toEqual(['its worker', 'default']);
  });
});

describe('policyFor', () => {
  test('returns the policy for the next failure of a stored task, with the origin of each value', async () => {
    const config = registryOf(`
types:
  mail: { retry: { timeout: 5m } }
queues:
  slow: { retry: { giveUpAfter: 2d } }
sources:
  'smtp:*': { retry: { jitter: full } }
`);
    const kit = await openKit({
      tasks: [mail({ retry: { maxAttempts: 8 }, queue: 'slow', source: 'smtp:a' })],
      config,
    });
    const { id } = await kit.holdfast.enqueue('mail', null, { retry: { maxExecutions: 9 }, delay: '1h' });
    const { policy, values } = await kit.holdfast.policyFor(await kit.holdfast.get(id));
    expect(policy).toMatchObject({
      timeout: 300_000,
      giveUpAfter: 172_800_000,
      jitter: { kind: 'full' },
      maxAttempts: 8,
      maxExecutions: 9,
    });
    expect(Object.fromEntries(values.map(({ path, from }) => [path[0], describeOrigin(from)]))).toMatchObject({
      maxAttempts: 'code',
      timeout: 'holdfast.yaml:3',
      giveUpAfter: 'holdfast.yaml:5',
      jitter: 'holdfast.yaml:7',
      maxExecutions: 'the task itself',
      backoff: 'default',
    });
  });

  test('is that of the type where the stored policy of a task cannot be read, and the history says so', async () => {
    const fails = defineTask('mail', {
      retry: { maxAttempts: 7, backoff: fixed('1h') },
      run: () => Promise.reject(new Error('No.')),
    });
    const kit = await openKit({ tasks: [fails] });
    const common = { type: 'mail', queue: 'default', source: 'mail', priority: 0, delay: 0, payload: 'null' };
    const [receipt] = await kit.holdfast.store.tasks.enqueue([
      { ...common, policy: '{"maxAttempts":1,"shinyOption":5}' },
    ]);
    await kit.drain();
    const { id } = receipt as { id: number };
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'scheduled', attempts: 1 });
    expect(await kit.holdfast.history(id)).toMatchObject([
      {
        because: {
          limit: 7,
          text: expect.stringContaining(
            "cannot be read, so the policy of its type decided: A policy has no option 'shinyOption'",
          ),
        },
      },
    ]);
  });

  test('knows the queue of a definition, and needs no configuration', async () => {
    const kit = await openKit({ tasks: [mail({ retry: presets.imapMailbox }), defineTask('*', { run() {} })] });
    expect((await kit.holdfast.policyFor({ type: 'mail' })).policy.version).toBe(presets.imapMailbox.version);
    expect((await kit.holdfast.policyFor({ type: 'file_move' })).policy.version).toBe(presets.fileMove.version);
  });
});
