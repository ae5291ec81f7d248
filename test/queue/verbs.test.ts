import { describe, expect, test } from 'vitest';
import { defineTask, NeedsManual, PermanentFailure, TASK_STATES, type TaskState } from '../../src/index.ts';
import { gate, isStarted, type Kit, useKits } from '../worker/scene.ts';
import { nonsense, refused, watchRejections } from './refused.ts';

watchRejections();
const open = useKits();

/** A kit in which a task can be brought into any state. */
async function stage() {
  const hanging = gate();
  const work = defineTask('work', {
    async run(how: TaskState) {
      if (how === 'running') await hanging.passed;
      if (how === 'needs_manual') throw new NeedsManual();
      if (how === 'dead') throw new PermanentFailure();
      return how;
    },
  });
  const kit = await open({ tasks: [work], worker: { queues: ['work'] } });
  return {
    kit,
    hanging,
    async taskIn(state: TaskState): Promise<number> {
      const waits = state === 'ready' || state === 'held' || state === 'cancelled';
      const queue = waits ? 'nobody' : 'work';
      const { id } = await kit.holdfast.enqueue(work, state, { queue, ...(state === 'scheduled' && { delay: '1h' }) });
      if (state === 'held') await kit.holdfast.hold(id);
      if (state === 'cancelled') await kit.holdfast.cancel(id);
      if (state === 'running') await kit.seen((event) => isStarted(event) && event.task.lease.task === id);
      else await kit.drain();
      expect(await kit.holdfast.get(id)).toMatchObject({ state });
      return id;
    },
  };
}

type Step = (kit: Kit, id: number) => Promise<void>;

const STEPS: Readonly<Record<string, { readonly take: Step; readonly leads: Partial<Record<TaskState, TaskState>> }>> =
  {
    retry: {
      take: (kit, id) => kit.holdfast.retry(id),
      leads: { scheduled: 'ready', succeeded: 'ready', needs_manual: 'ready', dead: 'ready', cancelled: 'ready' },
    },
    cancel: {
      take: (kit, id) => kit.holdfast.cancel(id),
      leads: {
        scheduled: 'cancelled',
        ready: 'cancelled',
        running: 'running',
        held: 'cancelled',
        needs_manual: 'cancelled',
        cancelled: 'cancelled',
      },
    },
    hold: { take: (kit, id) => kit.holdfast.hold(id), leads: { scheduled: 'held', ready: 'held' } },
    release: { take: (kit, id) => kit.holdfast.release(id), leads: { held: 'ready' } },
    'resolve as succeeded': {
      take: (kit, id) => kit.holdfast.resolve(id, { as: 'succeeded', result: { by: 'hand' } }),
      leads: { needs_manual: 'succeeded' },
    },
    'resolve as retry': {
      take: (kit, id) => kit.holdfast.resolve(id, { as: 'retry' }),
      leads: { needs_manual: 'ready' },
    },
    'resolve as dead': { take: (kit, id) => kit.holdfast.resolve(id, { as: 'dead' }), leads: { needs_manual: 'dead' } },
  };

describe.each(Object.entries(STEPS))('%s', (name, { take, leads }) => {
  test.each(TASK_STATES.map((state) => [state, leads[state]]))(
    'of a task that is %s leads to %s',
    async (state, to) => {
      const { kit, taskIn, hanging } = await stage();
      const id = await taskIn(state as TaskState);
      // From here on nobody takes anything.
      const stopped = kit.worker.stop({ grace: '1h' });
      if (state !== 'running') await stopped;
      if (to !== undefined) {
        await take(kit, id);
        expect(await kit.holdfast.get(id)).toMatchObject({ state: to });
      } else {
        const { code, message, ...facts } = await refused(() => take(kit, id));
        expect(code).toBe('state_conflict');
        expect(facts).toMatchObject({ task: id, state });
        expect(message).toContain(`Task #${id} is ${state}, so it cannot be ${DONE[name.split(' ', 1)[0] as string]}.`);
        // What to do about it.
        expect(message).toMatch(/\. [A-Z].+\.$/);
        expect(await kit.holdfast.get(id)).toMatchObject({ state });
      }
      hanging.open();
    },
  );
});

const DONE: Readonly<Record<string, string>> = {
  retry: 'retried',
  cancel: 'cancelled',
  hold: 'held',
  release: 'released',
  resolve: 'resolved',
};

describe('an operator', () => {
  test('is kept in the history, with the step and a word about why', async () => {
    const { kit, taskIn } = await stage();
    const id = await taskIn('ready');
    await kit.holdfast.hold(id, { actor: 'maria', note: 'the disk is being changed' });
    await kit.holdfast.release(id);
    await kit.holdfast.cancel(id, { actor: 'jo' });

    expect(await kit.holdfast.history(id)).toMatchObject([
      { kind: 'action', actor: 'maria', verb: 'hold', note: 'the disk is being changed', from: 'ready', to: 'held' },
      { kind: 'action', actor: 'api', verb: 'release', from: 'held', to: 'ready' },
      { kind: 'action', actor: 'jo', verb: 'cancel', from: 'ready', to: 'cancelled' },
    ]);
  });

  test('who retries an ended task begins a new round: counts from zero, history and executions kept', async () => {
    const { kit, taskIn } = await stage();
    const id = await taskIn('dead');
    expect(await kit.holdfast.get(id)).toMatchObject({ attempts: 1, executions: 1 });
    await kit.worker.stop();

    await kit.holdfast.retry(id);

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', attempts: 0, executions: 1 });
    expect(await kit.holdfast.history(id)).toHaveLength(2);
  });

  test('who answers with a result gives the task that result', async () => {
    const { kit, taskIn } = await stage();
    const id = await taskIn('needs_manual');

    await kit.holdfast.resolve(id, {
      as: 'succeeded',
      result: { found: ['in the ledger'] },
      actor: 'maria',
      note: 'n',
    });

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: { found: ['in the ledger'] } });
  });

  test('who asks twice for the cancel of a running task has asked once', async () => {
    const { kit, taskIn, hanging } = await stage();
    const id = await taskIn('running');

    await kit.holdfast.cancel(id);
    await kit.holdfast.cancel(id);

    expect((await kit.holdfast.history(id)).filter(({ kind }) => kind === 'action')).toHaveLength(1);
    hanging.open();
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded' });
  });
});

describe('a step is refused', () => {
  const steps: readonly [string, (kit: Kit, id: never, more: object) => Promise<void>][] = [
    ['retry', (kit, id, act) => kit.holdfast.retry(id, act)],
    ['cancel', (kit, id, act) => kit.holdfast.cancel(id, act)],
    ['hold', (kit, id, act) => kit.holdfast.hold(id, act)],
    ['release', (kit, id, act) => kit.holdfast.release(id, act)],
    ['resolve as dead', (kit, id, act) => kit.holdfast.resolve(id, { as: 'dead', ...act })],
    ['resolve as retry', (kit, id, act) => kit.holdfast.resolve(id, { as: 'retry', ...act })],
  ];

  test.each(steps)('(%s) for an id that is none, or not there', async (_, take) => {
    const { kit } = await stage();
    for (const [, id] of nonsense())
      expect((await refused(() => take(kit, id as never, {}))).code).toBe('invalid_input');
    expect(await refused(() => take(kit, 77 as never, {}))).toMatchObject({
      code: 'task_not_found',
      task: 77,
      message: expect.stringContaining('There is no task #77'),
    });
    expect((await refused(() => take(kit, Number.MAX_SAFE_INTEGER as never, {}))).code).toBe('task_not_found');
  });

  test.each(steps)('(%s) for an actor, a note or an option that is none', async (_, take) => {
    const { kit, taskIn } = await stage();
    const id = (await taskIn('needs_manual')) as never;
    for (const [, actor] of nonsense(['a text'])) {
      expect((await refused(() => take(kit, id, { actor }))).message).toContain('actor');
    }
    for (const [, note] of [...nonsense(['a text', "''"]), ['long', 'x'.repeat(4_097)], ['NUL', 'a\u0000']] as const) {
      expect((await refused(() => take(kit, id, { note }))).message).toContain('note');
    }
    expect((await refused(() => take(kit, id, { because: 'x' }))).message).toContain("has no option 'because'");
    expect(await kit.holdfast.history(id)).toHaveLength(1);
  });

  test('for options that are no object', async () => {
    const { kit, taskIn } = await stage();
    const id = await taskIn('scheduled');
    for (const [, act] of nonsense(['an object', 'a hostile object', 'an invalid Date'])) {
      expect((await refused(() => kit.holdfast.hold(id, act as never))).code).toBe('invalid_input');
      expect((await refused(() => kit.holdfast.resolve(id, act as never))).code).toBe('invalid_input');
    }
  });

  test('for an answer that is none, and a result that is none or has no place', async () => {
    const { kit, taskIn } = await stage();
    const id = await taskIn('needs_manual');
    for (const [, as] of nonsense()) {
      expect((await refused(() => kit.holdfast.resolve(id, { as } as never))).message).toMatch(/as must be one of/);
    }
    expect(await refused(() => kit.holdfast.resolve(id, { as: 'succeeded', result: 10n }))).toMatchObject({
      code: 'payload_rejected',
      path: '$',
    });
    for (const as of ['retry', 'dead'] as const) {
      expect((await refused(() => kit.holdfast.resolve(id, { as, result: 1 }))).message).toMatch(/result/);
    }
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual' });
  });
});

describe('a step on a source or a queue is refused', () => {
  const steps: readonly [string, (kit: Kit, name: never, act?: object) => Promise<void>][] = [
    ['sources.hold', (kit, name, act) => kit.holdfast.sources.hold(name, act)],
    ['sources.release', (kit, name) => kit.holdfast.sources.release(name)],
    ['pauseQueue', (kit, name, act) => kit.holdfast.pauseQueue(name, act)],
    ['resumeQueue', (kit, name) => kit.holdfast.resumeQueue(name)],
  ];

  test.each(steps)('(%s) for a name that is none', async (_, take) => {
    const { kit } = await stage();
    const names = [...nonsense(['a text']).map(([, name]) => name), 'x'.repeat(256), 'a\nb'];
    for (const name of names) expect((await refused(() => take(kit, name as never))).code).toBe('invalid_input');
  });

  test.each(steps.filter(([, take]) => take.length > 2))('(%s) for an act that is none', async (step, take) => {
    const { kit } = await stage();
    for (const [, act] of nonsense(['an object', 'a hostile object', 'an invalid Date'])) {
      expect((await refused(() => take(kit, 'name' as never, act as never))).code).toBe('invalid_input');
    }
    const { message } = await refused(() => take(kit, 'name' as never, { because: 'x' }));
    expect(message).toContain(`${step} has no option 'because'`);
  });
});

describe('a look', () => {
  test('at a task is refused for what is neither an id nor a key', async () => {
    const { kit } = await stage();
    for (const [, idOrKey] of nonsense(['a text'])) {
      expect((await refused(() => kit.holdfast.find(idOrKey as never))).code).toBe('invalid_input');
      expect((await refused(() => kit.holdfast.get(idOrKey as never))).code).toBe('invalid_input');
    }
    for (const [, id] of nonsense()) {
      expect((await refused(() => kit.holdfast.history(id as never))).code).toBe('invalid_input');
    }
    expect(await kit.holdfast.find(77)).toBeUndefined();
    expect(await kit.holdfast.find('no such key')).toBeUndefined();
    expect(await kit.holdfast.history(77)).toEqual([]);
    expect(await refused(() => kit.holdfast.get('no such key'))).toMatchObject({
      code: 'task_not_found',
      message: expect.stringContaining("with the key 'no such key'"),
    });
  });

  test('at many is refused for filters that are none', async () => {
    const { kit } = await stage();
    const list = (options: unknown) => refused(() => kit.holdfast.list(options as never));
    for (const [, options] of nonsense(['an object', 'a hostile object', 'an invalid Date'])) {
      expect((await list(options)).code).toBe('invalid_input');
    }
    expect((await list({ state: 'dead' })).message).toMatch(/list has no option 'state'/);
    expect((await list({ states: ['died'] })).message).toMatch(/must be one of scheduled, ready/);
    for (const filter of ['states', 'types', 'queues', 'sources', 'reasons']) {
      for (const [, value] of nonsense()) expect((await list({ [filter]: value })).message).toContain(filter);
    }
    for (const [, value] of nonsense()) {
      expect((await list({ before: value })).message).toContain('before');
      expect((await list({ limit: value })).message).toContain('limit');
    }
    expect((await list({ limit: 1_001 })).message).toMatch(/between 1 and 1000, got 1001/);
  });

  test('at many finds by each filter, and a page at a time', async () => {
    const { kit, taskIn } = await stage();
    const dead = await taskIn('dead');
    const manual = await taskIn('needs_manual');
    const ready = await taskIn('ready');
    const ids = async (options: object) => (await kit.holdfast.list(options)).map(({ id }) => id);

    expect(await ids({})).toEqual([ready, manual, dead]);
    expect(await ids({ states: ['dead', 'ready'] })).toEqual([ready, dead]);
    expect(await ids({ states: [] })).toEqual([]);
    expect(await ids({ queues: ['nobody'], types: ['work'], sources: ['work'] })).toEqual([ready]);
    expect(await ids({ reasons: ['explicit.needs_manual'] })).toEqual([manual]);
    expect(await ids({ before: ready, limit: 1 })).toEqual([manual]);
    expect(await ids({ before: manual, limit: 1 })).toEqual([dead]);
  });
});
