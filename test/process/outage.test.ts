import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import type { Holdfast } from '../../src/index.ts';
import { elapse } from '../who-pays/lives.ts';
import { useScene } from '../who-pays/scene.ts';
import { usePrograms } from './children.ts';
import { type Call, LimitedServer } from './limited-server.ts';

const PROGRAM = fileURLToPath(new URL('outage-worker.mjs', import.meta.url));

/** In any second. */
const LIMIT = 20;
const ARRIVE_EVERY_MS = 150;
const DOWN_FOR_MS = 20_000;

describe.each(['sqlite', 'postgres'] as const)('on %s', (kind) => {
  const scene = useScene(kind);
  const { runIn } = usePrograms();

  test('four processes hardly call a server that is down, although one is killed while it probes, and then call it no faster than it allows', {
    timeout: 240_000,
  }, async () => {
    await using server = await LimitedServer.open(LIMIT);
    const { holdfast, where } = scene();
    const workers = [1, 2, 3, 4].map(() => runIn(process.execPath, [PROGRAM, kind, where, server.url]));
    await Promise.all(workers.map((worker) => worker.says('working')));
    const enqueued: Promise<{ id: number }>[] = [];
    const arrivals = setInterval(() => enqueued.push(holdfast.enqueue('call', {})), ARRIVE_EVERY_MS);

    await elapse(2_000);
    const downFrom = server.now;
    server.failsAfterMs = 300;
    server.goDown();
    while (!(await isKnownToBeDown(holdfast))) await elapse(100);
    // Until what was claimed before is answered.
    await elapse(2_000);
    const noticed = server.now;
    const killed = killWhoProbes(server);
    await elapse(DOWN_FOR_MS);
    const downUntil = server.now;
    server.comeBack();
    await elapse(5_000);
    clearInterval(arrivals);
    const ids = (await Promise.all(enqueued)).map(({ id }) => id);
    for (let left = ids.length; left > 0; ) {
      await elapse(500);
      const { byState } = await holdfast.counts();
      left = ids.length - byState.succeeded - byState.dead - byState.needs_manual;
    }

    const whileDown = server.calls.filter(({ at }) => at >= downFrom && at < downUntil);
    const probes = whileDown.filter(({ at }) => at >= noticed);
    expect(whileDown.length - probes.length).toBeLessThanOrEqual(40);
    expect(probes.length).toBeLessThanOrEqual(8);
    const after = server.calls.filter(({ at }) => at >= downUntil);
    expect(new Set(after.map(({ worker }) => worker)).has(await killed)).toBe(false);
    expect(fullestSecond(after)).toBeLessThanOrEqual(2 * LIMIT);
    expect(after.filter(({ status }) => status === 429).length).toBeLessThanOrEqual(LIMIT * 2);
    const tasks = await Promise.all(ids.map((id) => holdfast.get(id)));
    expect(tasks.filter(({ state, attempts }) => state !== 'succeeded' || attempts > 0)).toEqual([]);
    expect(await holdfast.store.upkeep.verify()).toEqual([]);
  });
});

async function isKnownToBeDown(holdfast: Holdfast): Promise<boolean> {
  return (await holdfast.sources.list()).some(({ state }) => state?.restriction?.probing);
}

/** Kills the next process that calls, before it is answered. Resolves with its id. */
function killWhoProbes(server: LimitedServer): Promise<number> {
  return new Promise((resolve) => {
    server.onCall = ({ worker }) => {
      server.onCall = () => {};
      process.kill(worker, 'SIGKILL');
      resolve(worker);
    };
  });
}

/** The most calls in any second. */
function fullestSecond(calls: readonly Call[]): number {
  let [most, first] = [0, 0];
  for (const [last, { at }] of calls.entries()) {
    while ((calls[first] as Call).at <= at - 1_000) first += 1;
    most = Math.max(most, last - first + 1);
  }
  return most;
}
