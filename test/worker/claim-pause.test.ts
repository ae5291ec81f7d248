import { describe, expect, test } from 'vitest';
import { fixed } from '../../src/failure/backoff.ts';
import { command } from '../../src/handlers/command.ts';
import { defineTask, type LogEvent } from '../../src/index.ts';
import { type Kit, useKits } from './scene.ts';

const open = useKits();

/** What our own command handler throws where its folder is not there. */
function failureOfCommand(): Promise<unknown> {
  const task = { id: 1, attempt: 1, execution: 1, signal: new AbortController().signal, heartbeat() {} };
  const running = command({ environment: process.env })({ argv: ['true'], cwd: '/no/such/folder' }, task);
  return running.catch((error: unknown) => error);
}

/** A worker on a machine whose disk is full until it is freed, and what its log says of that. */
async function fullDisk({ tasks = 30, concurrency = 10, claimAhead = false } = {}) {
  let full = true;
  const noFolder = await failureOfCommand();
  const begun: number[] = [];
  const work = defineTask('work', {
    async run(needs: { disk: boolean; for?: string; folder?: boolean }, task) {
      begun.push(task.id);
      if (needs.folder) throw noFolder;
      if (needs.for) await kit.clock.sleep(needs.for);
      if (needs.disk && full) throw Object.assign(new Error('no space left on device, write'), { code: 'ENOSPC' });
    },
  });
  const lines: { event?: LogEvent; reason?: string }[] = [];
  const keep = (fields: object) => void lines.push(fields);
  const log = { debug() {}, info: keep, warn: keep, error: keep };
  const kit: Kit = await open({ tasks: [work], log, worker: { concurrency, claimAhead } });
  const said = () => lines.map(({ event }) => event).filter((event) => event?.startsWith('worker.'));
  await kit.holdfast.enqueueAll(work, Array(tasks).fill({ disk: true }));
  await kit.drain();
  const trouble = async () => (await kit.holdfast.workers())[0]?.trouble;
  const free = () => {
    full = false;
  };
  return { kit, work, begun, said, trouble, free };
}

describe('a worker whose tasks fail by its own fault', () => {
  test('charges nobody, and 30 of 30 tasks survive an hour of a full disk', async () => {
    const { kit, begun, free } = await fullDisk();
    await kit.advance('1h');
    // Ten at once, and then one at a time: after 1, 2, 4 … 60 s.
    expect(begun.length).toBeLessThan(10 + 70);
    free();
    await kit.advance('10m');

    const tasks = await kit.holdfast.list();
    expect(tasks.map(({ state, attempts }) => [state, attempts])).toEqual(Array(30).fill(['succeeded', 0]));
  });

  test('says in its log and its row why it claims nothing, and when it goes on', async () => {
    const { kit, said, trouble, free } = await fullDisk();
    expect(said()).toEqual(['worker.paused']);
    expect(await trouble()).toMatchObject({ reason: 'fs.no_space', since: kit.clock.now() });
    free();
    await kit.advance('1s');
    expect(said()).toEqual(['worker.paused', 'worker.resumed']);
    expect(await trouble()).toBeUndefined();
  });

  test('and `explain` says that a task waits for it', async () => {
    const { kit } = await fullDisk();
    const { id } = (await kit.holdfast.list({ states: ['ready'] }))[0] as { id: number };
    expect(await kit.holdfast.explain(id)).toMatchObject({
      heldBy: ['worker_paused'],
      headline: expect.stringMatching(
        /cannot work properly and has claimed only single tasks to test for 0ms: fs\.no_space \(no space left/,
      ),
    });
  });

  test('probes with one task after 1 s, doubling up to a minute, and takes all again once one ends well', async () => {
    const { kit, begun, free } = await fullDisk({ tasks: 40, concurrency: 10 });
    const at: number[] = [];
    for (let second = 1; second <= 300; second++) {
      const before = begun.length;
      await kit.advance('1s');
      for (let n = before; n < begun.length; n++) at.push(second);
    }
    expect(at).toEqual([1, 3, 7, 15, 31, 63, 123, 183, 243]);
    free();
    await kit.advance('60s');
    expect((await kit.holdfast.counts()).byState.succeeded).toBeGreaterThan(30);
  });

  test('probes with one task only where its type is short and its concurrency is 1', async () => {
    const { kit, work, begun } = await fullDisk({ tasks: 0, concurrency: 1, claimAhead: true });
    await kit.holdfast.enqueueAll(work, Array(40).fill({ disk: false }));
    await kit.drain();
    begun.length = 0;

    await kit.holdfast.enqueueAll(work, Array(20).fill({ disk: true }));
    await kit.drain();
    expect(begun).toHaveLength(2);
    await kit.advance('1s');
    expect(begun).toHaveLength(3);
    expect((await kit.holdfast.counts()).byState.running).toBe(0);
    await kit.advance('2s');
    expect(begun).toHaveLength(4);
  });

  test('does not pause for one such failure among others: it may be the task that asks for too much', async () => {
    const { kit, work, said, begun } = await fullDisk({ tasks: 1, concurrency: 1 });
    await kit.holdfast.enqueueAll(work, [{ disk: false }, { disk: false }, { disk: true }, { disk: false }]);
    await kit.drain();
    expect(said()).toEqual([]);
    expect(begun).toHaveLength(5);
  });

  test('does not pause for tasks whose folder is not there, and one of them ends no pause', async () => {
    const { kit, work, begun, said } = await fullDisk({ tasks: 0 });
    await kit.holdfast.enqueueAll(work, Array(5).fill({ disk: false, folder: true }));
    await kit.drain();
    expect(said()).toEqual([]);
    expect(await kit.holdfast.get(1)).toMatchObject({ state: 'scheduled', attempts: 0, deferrals: 1 });

    await kit.holdfast.enqueueAll(work, Array(2).fill({ disk: true }));
    await kit.drain();
    expect(said()).toEqual(['worker.paused']);
    const before = begun.length;
    await kit.holdfast.enqueue(work, { disk: false, folder: true });
    await kit.advance('1s');
    expect(begun.slice(before)).toContain(8);
    expect(said()).toEqual(['worker.paused']);
  });

  describe('whose probe runs for long', () => {
    const onceADay = { retry: { backoff: fixed('1d') } };

    /** The worker pauses, and then there are tasks of an hour; in which second each of them begins. */
    async function longProbes(scene: Awaited<ReturnType<typeof fullDisk>>, seconds: number) {
      const { kit, work, begun } = scene;
      await kit.holdfast.enqueueAll(work, Array(2).fill({ disk: true }), onceADay);
      await kit.drain();
      await kit.holdfast.enqueueAll(work, Array(9).fill({ disk: false, for: '1h' }));
      const at: number[] = [];
      for (let half = 1; half <= 2 * seconds; half++) {
        const before = begun.length;
        await kit.advance('500ms');
        for (let n = before; n < begun.length; n++) at.push(half / 2);
      }
      return at;
    }

    test('tries the next task once the probe has run for as long as the worker waited', async () => {
      const scene = await fullDisk({ tasks: 0 });
      expect(await longProbes(scene, 4)).toEqual([1, 2, 3, 4]);
      expect(scene.said()).toEqual(['worker.paused']);
    });

    test('waits no longer because an execution fails that began before the pause', async () => {
      const scene = await fullDisk({ tasks: 0 });
      await scene.kit.holdfast.enqueue(scene.work, { disk: true, for: '2500ms' }, onceADay);
      expect(await longProbes(scene, 4)).toEqual([1, 2, 3, 4]);
    });

    test('waits for twice as long when the probe fails in the end, however many were begun', async () => {
      const scene = await fullDisk({ tasks: 0 });
      const { kit, work, begun } = scene;
      await kit.holdfast.enqueueAll(work, Array(2).fill({ disk: true }), onceADay);
      await kit.drain();
      await kit.holdfast.enqueueAll(work, Array(9).fill({ disk: true, for: '2500ms' }), onceADay);
      // Begun at 1, 2 and 3 s, they fail at 3.5, 4.5 and 5.5 s: only the first of these failures counts.
      await kit.advance('5s');
      expect(begun).toHaveLength(2 + 3);
      await kit.advance('500ms');
      expect(begun).toHaveLength(2 + 4);
      await kit.advance('2s');
      expect(begun).toHaveLength(2 + 5);
    });
  });

  test('continues as soon as a task ends without such a failure, even one that began before the pause', async () => {
    const { kit, work, said } = await fullDisk({ tasks: 0 });
    await kit.holdfast.enqueue(work, { disk: false, for: '20s' });
    await kit.holdfast.enqueueAll(work, Array(3).fill({ disk: true, for: '19s' }));
    await kit.advance('19s');
    expect(said()).toEqual(['worker.paused']);
    await kit.advance('1s');
    expect(said()).toEqual(['worker.paused', 'worker.resumed']);
  });

  test('is waited for by a drain', async () => {
    const { kit, work, begun } = await fullDisk({ tasks: 0 });
    await kit.worker.stop({ grace: 0 });
    const worker = kit.holdfast.worker({ concurrency: 2, pollInterval: '1h' });
    await kit.holdfast.enqueueAll(work, Array(4).fill({ disk: true }), { retry: { maxDeferrals: 2 } });
    let drained = false;
    const draining = worker.drain().then(() => {
      drained = true;
    });
    await kit.drain();
    expect(drained).toBe(false);
    await kit.advance('20m');
    await draining;
    expect(begun.length).toBeGreaterThan(4);
  });
});
