import { describe, expect, test } from 'vitest';
import { defineTask } from '../../src/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import type { AnyTask } from '../../src/worker/define-task.ts';
import { aStore } from '../a-store.ts';
import { atOnce, gate, isStarted, type Kit, useKits } from './scene.ts';

const open = useKits();

/** A kit whose own worker takes nothing, and a type that notes what ran. */
async function byHand() {
  const ran: unknown[] = [];
  const work = defineTask('work', {
    run(input: unknown) {
      ran.push(input);
    },
  });
  const kit = await open({ tasks: [work], worker: { types: [] } });
  return { kit, work, ran };
}

async function enqueueAll(kit: Kit, task: AnyTask, ...inputs: readonly unknown[]) {
  const receipts = [];
  for (const input of inputs) receipts.push(await kit.holdfast.enqueue(task, input));
  return receipts.map(({ id }) => id);
}

describe('runOne', () => {
  test('runs the next task and answers what came of it', async () => {
    const { kit, work, ran } = await byHand();
    const [first] = await enqueueAll(kit, work, 'a', 'b');

    const finished = await kit.holdfast.worker().runOne();

    expect(ran).toEqual(['a']);
    expect(finished).toMatchObject({
      kind: 'settled',
      state: 'succeeded',
      outcome: { kind: 'success' },
      task: { lease: { task: first, execution: 1 } },
    });
  });

  test('answers undefined where nothing is ready', async () => {
    const { kit, work } = await byHand();
    const worker = kit.holdfast.worker();
    expect(await worker.runOne()).toBeUndefined();

    await kit.holdfast.enqueue(work, null, { delay: '1h' });

    expect(await worker.runOne()).toBeUndefined();
  });

  test('answers a failure as well, and runs what fell due meanwhile the next time', async () => {
    const flaky = defineTask('flaky', {
      retry: { maxAttempts: 2, ...atOnce },
      run() {
        throw new Error('no');
      },
    });
    const kit = await open({ tasks: [flaky], worker: { types: [] } });
    await kit.holdfast.enqueue(flaky, null);
    const worker = kit.holdfast.worker();

    expect(await worker.runOne()).toMatchObject({ state: 'ready', decision: { next: 'scheduled', after: 0 } });
    expect(await worker.runOne()).toMatchObject({ state: 'dead', decision: { because: { step: 'max_attempts' } } });
    expect(await worker.runOne()).toBeUndefined();
  });

  test('runs no second task where the type is known to be short and the concurrency is 1', async () => {
    const { kit, work, ran } = await byHand();
    await enqueueAll(kit, work, ...Array(40).keys());
    const worker = kit.holdfast.worker({ concurrency: 1 });

    for (let i = 0; i < 30; i++) await worker.runOne();
    await kit.drain();

    expect(ran).toHaveLength(30);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ running: 0, ready: 10, succeeded: 30 });
  });

  test('is refused for a worker that takes tasks by itself', async () => {
    const { kit } = await byHand();

    await expect(kit.worker.runOne()).rejects.toMatchObject({ code: 'invalid_input' });
  });

  test('may be called several times at once, for a task each', async () => {
    const { kit, work, ran } = await byHand();
    await enqueueAll(kit, work, 1, 2, 3);
    const worker = kit.holdfast.worker();

    const all = await Promise.all([worker.runOne(), worker.runOne(), worker.runOne(), worker.runOne()]);

    expect(ran.toSorted()).toEqual([1, 2, 3]);
    expect(all.filter((one) => one === undefined)).toHaveLength(1);
    expect(await kit.holdfast.workers()).toHaveLength(2);
  });
});

describe('drain', () => {
  test('of a worker that was not started runs ready tasks, including immediate retries, and leaves waiting ones', async () => {
    const ran: string[] = [];
    const work = defineTask('work', {
      retry: atOnce,
      run(input: string, { attempt }) {
        ran.push(`${input} ${attempt}`);
        if (attempt === 1) throw new Error('at first');
      },
    });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    await enqueueAll(kit, work, 'a', 'b');
    const later = await kit.holdfast.enqueue(work, 'later', { delay: '1s' });
    const worker = kit.holdfast.worker({ concurrency: 1 });

    await worker.drain();
    await worker.drain();

    expect(ran.toSorted()).toEqual(['a 1', 'a 2', 'b 1', 'b 2']);
    expect(await kit.holdfast.get(later.id)).toMatchObject({ state: 'scheduled' });
  });

  test('ends at once where there is nothing', async () => {
    const { kit } = await byHand();

    await kit.holdfast.worker().drain();
    await kit.worker.drain();
  });

  test('of a started worker waits until it is idle', async () => {
    const hanging = gate();
    const work = defineTask('work', { run: () => hanging.passed });
    const kit = await open({ tasks: [work] });
    await kit.holdfast.enqueue(work, null);
    await kit.seen(isStarted);
    let idle = 0;
    const waiting = [1, 2].map(() => kit.worker.drain().then(() => (idle += 1)));
    await kit.holdfast.enqueue(work, null);
    expect(idle).toBe(0);

    hanging.open();
    await Promise.all(waiting);

    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 2 });
  });

  test('may be followed by a start while it is under way', async () => {
    const { kit, work, ran } = await byHand();
    await enqueueAll(kit, work, 1, 2);
    const worker = kit.holdfast.worker({ pollInterval: '1h' });

    const drained = worker.drain();
    worker.start();
    await drained;
    await kit.holdfast.enqueue(work, 3);
    await worker.drain();

    expect(ran).toEqual([1, 2, 3]);
  });

  test('may be joined by a start or another drain in whatever turn', async () => {
    const { kit, work, ran } = await byHand();
    for (let turns = 0; turns < 5; turns++) {
      for (let hops = 0; hops < 24; hops++) {
        const workers = [kit.holdfast.worker({ pollInterval: '1h' }), kit.holdfast.worker()] as const;
        const drained = workers.map((worker) => worker.drain());
        // What the store answers here it answers in one turn with what the workers asked for.
        for (let turn = 0; turn < turns; turn++)
          await kit.holdfast.store.tasks.move([], { verb: 'hold', actor: 'test' });
        for (let hop = 0; hop < hops; hop++) await null;
        workers[0].start();
        drained.push(workers[1].drain());
        await Promise.all(drained);

        const name = `${turns} turns and ${hops} hops after a drain`;
        await kit.holdfast.enqueue(work, name);
        await workers[0].drain();
        expect(ran.at(-1), name).toBe(name);
        await Promise.all(workers.map((worker) => worker.stop()));
      }
    }
  });

  test('looks for what others lost, each time', async () => {
    const { kit, work, ran } = await byHand();
    const worker = kit.holdfast.worker();
    await worker.drain();
    const { tasks } = kit.holdfast.store;
    await enqueueAll(kit, work, 'lost');
    const ghost = await tasks.join({ name: 'ghost', leaseFor: 1_000, publishes: {} });
    await tasks.claim({ worker: ghost, limit: 1, capabilities: {}, suspects: 1, alone: true, except: [] });
    await tasks.leave(ghost);

    await worker.drain();

    expect(ran).toEqual(['lost']);
  });

  test('waits for what falls due together in greater number than one claim makes ready', async () => {
    const { kit, work, ran } = await byHand();
    await Promise.all(Array.from({ length: 1_200 }, () => kit.holdfast.enqueue('elsewhere', null, { delay: '1m' })));
    await kit.holdfast.enqueue(work, 'mine', { delay: '61s' });
    kit.clock.moveTo(kit.clock.now() + 61_000);

    await kit.holdfast.worker().drain();

    expect(ran).toEqual(['mine']);
  });

  test('is rejected where the store cannot be asked', async () => {
    const kit = await openTestHoldfast({
      store: aStore(),
      tasks: [defineTask('work', { run() {} })],
      worker: { types: [] },
    });
    await kit.drain();
    const worker = kit.holdfast.worker();
    await kit.holdfast.store.upkeep.close();

    await expect(worker.drain()).rejects.toMatchObject({ code: 'closed' });
    await expect(worker.runOne()).rejects.toMatchObject({ code: 'closed' });
    kit.worker.look();
    await kit.worker.finished;
    await kit.close();
  });

  test('leaves no timer behind', async () => {
    const { kit, work } = await byHand();
    await enqueueAll(kit, work, 1, 2, 3);
    const worker = kit.holdfast.worker();
    await kit.worker.stop();

    await worker.drain();
    await worker.runOne();

    expect(kit.clock.nextTimer).toBeUndefined();
  });
});

describe('maxTasks', () => {
  test('ends the worker after so many starts', async () => {
    const ran: number[] = [];
    const work = defineTask('work', { run: (n: number) => ran.push(n) });
    const kit = await open({ tasks: [work], worker: { maxTasks: 2, concurrency: 5 } });
    await Promise.all([1, 2, 3, 4].map((n) => kit.holdfast.enqueue(work, n)));

    await kit.worker.finished;

    expect(ran).toEqual([1, 2]);
    expect(await kit.holdfast.workers()).toEqual([]);
    expect((await kit.holdfast.counts()).byState).toMatchObject({ succeeded: 2, ready: 2 });
    await kit.advance('1h');
    expect(ran).toEqual([1, 2]);
  });

  test('counts starts, whatever they end with, and waits for the ends', async () => {
    const work = defineTask('work', {
      retry: atOnce,
      async run() {
        await kit.clock.sleep('1m');
        throw new Error('no');
      },
    });
    const kit = await open({ tasks: [work], worker: { maxTasks: 3 } });
    const { id } = await kit.holdfast.enqueue(work, null);

    await kit.advance('10m');
    await kit.worker.finished;

    expect(await kit.holdfast.get(id)).toMatchObject({ executions: 3, attempts: 3, state: 'ready' });
  });

  test('bounds drain and runOne too', async () => {
    const { kit, work, ran } = await byHand();
    await enqueueAll(kit, work, 1, 2, 3);
    const worker = kit.holdfast.worker({ maxTasks: 2 });

    await worker.drain();

    expect(ran).toEqual([1, 2]);
    expect(await worker.runOne()).toBeUndefined();
    await worker.drain();
    expect(ran).toEqual([1, 2]);
  });
});

describe('a worker takes only', () => {
  test('the tasks of `only`', async () => {
    const { kit, work, ran } = await byHand();
    const [, b, c] = await enqueueAll(kit, work, 'a', 'b', 'c');

    await kit.holdfast.worker({ only: [c as number, b as number] }).drain();

    expect(ran.toSorted()).toEqual(['b', 'c']);
  });

  test('types that it has a definition of', async () => {
    const { kit, work, ran } = await byHand();
    const { id } = await kit.holdfast.enqueue('elsewhere', 'x');
    await kit.holdfast.enqueue(work, 'mine');

    await kit.holdfast.worker().drain();

    expect(ran).toEqual(['mine']);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'ready', executions: 0, attempts: 0 });
  });

  test('its types, queues and categories', async () => {
    const ran: string[] = [];
    const types = ['a', 'b'].map((type) =>
      defineTask(type, { run: (_, { queue }) => void ran.push(`${type} ${queue}`) }),
    );
    const kit = await open({ tasks: types, worker: { types: [] } });
    for (const type of ['a', 'b']) {
      for (const queue of ['left', 'right']) {
        for (const category of ['even', 'odd']) await kit.holdfast.enqueue(type, null, { queue, category });
      }
    }

    await kit.holdfast.worker({ types: ['a'], queues: ['left'], categories: ['odd'] }).drain();
    expect(ran).toEqual(['a left']);
    await kit.holdfast.worker({ queues: ['right'] }).drain();
    expect(ran.toSorted()).toEqual(['a left', 'a right', 'a right', 'b right', 'b right']);
  });

  test('tasks whose needs its capabilities meet: numbers mean at least, other values equal', async () => {
    const ran: string[] = [];
    const work = defineTask('work', { run: (name: string) => void ran.push(name) });
    const kit = await open({ tasks: [work], worker: { types: [] } });
    const needs = { small: { cpu: 2 }, big: { cpu: 16 }, gpu: { gpu: 'RTX5090' }, odd: { fast: true }, none: {} };
    for (const [name, need] of Object.entries(needs)) await kit.holdfast.enqueue(work, name, { needs: need });

    await kit.holdfast.worker({ capabilities: { cpu: 8, gpu: 'RTX5090', fast: false } }).drain();
    expect(ran.toSorted()).toEqual(['gpu', 'none', 'small']);

    await kit.holdfast.worker({ capabilities: { cpu: 16, fast: true } }).drain();
    expect(ran.toSorted()).toEqual(['big', 'gpu', 'none', 'odd', 'small']);
  });
});

describe("the catch-all type '*'", () => {
  test('runs what no other definition runs', async () => {
    const ran: string[] = [];
    const known = defineTask('known', { run: () => void ran.push('known') });
    const rest = defineTask('*', { run: (_, { type }) => void ran.push(`* ${type}`) });
    const kit = await open({ tasks: [rest, known] });
    await kit.holdfast.enqueue('known', null);
    await kit.holdfast.enqueue('stranger', null);

    await kit.drain();

    expect(ran.toSorted()).toEqual(['* stranger', 'known']);
  });

  test('answers failures with its own policy', async () => {
    const rest = defineTask('*', {
      retry: { maxAttempts: 2, ...atOnce },
      run() {
        throw new Error('no');
      },
    });
    const kit = await open({ tasks: [rest] });
    const { id } = await kit.holdfast.enqueue('stranger', null);

    await kit.drain();

    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 2 });
  });

  test('lets a worker be limited to types that have no definition of their own', async () => {
    const ran: string[] = [];
    const rest = defineTask('*', { run: (_, { type }) => void ran.push(type) });
    const kit = await open({ tasks: [rest], worker: { types: ['a'] } });
    for (const type of ['a', 'b']) await kit.holdfast.enqueue(type, null);

    await kit.drain();

    expect(ran).toEqual(['a']);
  });
});
