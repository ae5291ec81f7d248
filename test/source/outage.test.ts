import { describe, expect, test } from 'vitest';
import { failureOf } from '../../src/failure/foresee.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import { presets } from '../../src/failure/presets.ts';
import { SimulatedServer } from '../../src/simulator/server.ts';
import { MINUTE, SECOND } from './given.ts';
import { dice, type SmallTask, SmallWorld } from './small-world.ts';

const ARRIVALS = 4;
const CAPACITY = 10;
const BEFORE = 10 * SECOND;
const OUTAGE = 10 * MINUTE;

/** A server that is down for ten minutes, and then throttles what is above its capacity without saying for how long. */
function outage() {
  const server = new SimulatedServer({ downFrom: BEFORE, downUntil: BEFORE + OUTAGE, capacity: CAPACITY });
  const answers: Readonly<Record<ReturnType<SimulatedServer['answer']>, Outcome>> = {
    served: { kind: 'success' },
    down: { kind: 'failure', failure: failureOf('http.5xx', { kind: 'transient', fault: 'source' }) },
    throttled: { kind: 'failure', failure: failureOf('http.429') },
  };
  const roll = dice(1);
  const world = new SmallWorld(presets.standard, roll);
  const counts = { served: 0, down: 0, throttled: 0 };
  const waits = new Map<SmallTask, number>();
  const backlog: SmallTask[] = [];
  let drainedAt: number | undefined;
  let nextArrival = 0;
  const until = BEFORE + 3 * OUTAGE;
  while (world.now < until || world.tasks.some(({ end }) => end === undefined)) {
    world.now = Math.max(world.now, Math.min(nextArrival, world.nextStart()));
    if (nextArrival <= world.now) {
      const task = world.enqueue();
      if (world.now >= BEFORE && world.now < BEFORE + OUTAGE) backlog.push(task);
      nextArrival =
        world.now < until ? world.now + (-Math.log(1 - roll()) * SECOND) / ARRIVALS : Number.POSITIVE_INFINITY;
    }
    for (let running = world.claim(); running; running = world.claim()) {
      const { task } = running;
      const isNew = world.now > BEFORE + OUTAGE && task.submittedAt > BEFORE + OUTAGE;
      if (isNew && !waits.has(task)) waits.set(task, world.now - task.submittedAt);
      if (task.verdict !== undefined) {
        world.finish(running, { kind: 'verdict', reason: task.verdict });
        continue;
      }
      const answer = server.answer(world.now);
      counts[answer]++;
      world.finish(running, answers[answer]);
    }
    if (drainedAt === undefined && world.now > BEFORE + OUTAGE && backlog.every(({ end }) => end))
      drainedAt = world.now;
  }
  const sorted = [...waits.values()].sort((a, b) => a - b);
  return {
    ...counts,
    world,
    drainRatio: ((drainedAt as number) - BEFORE - OUTAGE) / ((backlog.length / (CAPACITY - ARRIVALS)) * SECOND),
    medianWait: sorted[sorted.length >> 1] as number,
  };
}

describe('an outage of ten minutes', () => {
  const result = outage();

  test('costs few calls: the probes, and those that showed it', () => {
    expect(result.down).toBeLessThan(35);
  });

  test('charges nobody in the end, and kills no task', () => {
    expect(result.world.tasks.every(({ end }) => end === 'succeeded')).toBe(true);
    expect(result.world.tasks.flatMap(({ rows }) => rows).filter(({ to }) => to === 'task')).toEqual([]);
  });

  test('is followed by few calls above what the source can do', () => {
    expect(result.throttled).toBeLessThan(60);
  });

  test('leaves a backlog that is worked off almost as fast as the source can do, while new work hardly waits', () => {
    expect(result.drainRatio).toBeLessThan(1.5);
    expect(result.medianWait).toBeLessThan(SECOND);
  });

  test('leaves nothing behind', () => {
    expect(result.world.memory).toBeUndefined();
  });
});
