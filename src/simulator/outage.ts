import type { Milliseconds } from '../duration.ts';
import type { Holdfast } from '../queue/holdfast.ts';
import { openWith } from '../queue/open.ts';
import { aged } from '../source/memory.ts';
import { readMemory } from '../source/stored.ts';
import { troubleOf } from '../source/trouble.ts';
import type { StoreOpener } from '../store/store.ts';
import { dice } from '../testing/dice.ts';
import { VirtualClock } from '../testing/virtual-clock.ts';
import { defineTask } from '../worker/define-task.ts';
import type { SimulatedPolicy } from './policies.ts';
import { SimulatedServer } from './server.ts';
import { type Sample, type SourceCondition, Tally } from './tally.ts';

/** One outage of one source, and the tasks that arrive meanwhile. */
export interface Scenario {
  /** Tasks that arrive in a second, on average. */
  readonly arrivals: number;
  /** Calls that the server serves in any second; it throttles the others. More than `arrivals`: otherwise nothing drains. */
  readonly capacity: number;
  /** How long everything works before the outage, and after the backlog is drained. */
  readonly before: Milliseconds;
  readonly outage: Milliseconds;
  /** The simulation ends when the backlog is drained, or at the latest this long after the outage. */
  readonly longest: Milliseconds;
}

/** The scenario of the published numbers: an hour without the server. */
export const HOUR_OUTAGE: Scenario = {
  arrivals: 20,
  capacity: 50,
  before: 60_000,
  outage: 3_600_000,
  longest: 24 * 3_600_000,
};

export interface Simulation {
  readonly policy: SimulatedPolicy;
  readonly scenario: Scenario;
  readonly store: StoreOpener;
  /** The same seed gives the same numbers. */
  readonly seed: number;
  /** Default 1. */
  readonly workers?: number;
}

/** The effect of a policy on the server and on the tasks. */
export interface OutageResult {
  /** Calls during the outage. */
  readonly useless_calls: number;
  /** Calls that the server throttled after the outage. */
  readonly throttled_after: number;
  /** Tasks that ended as dead, although nothing was wrong with them. */
  readonly dead: number;
  /** Attempts that are charged to tasks at the end. */
  readonly attempts_charged: number;
  /**
   * How long after the outage nothing of its backlog waited any more, as a multiple of the shortest possible time. A dead task does
   * not wait, so where tasks died this may be below 1. Null where the backlog was not drained in time.
   */
  readonly drain_ratio: number | null;
  /**
   * The median time from arrival to success of tasks that arrived while the backlog drained. Null if most of them did not
   * succeed.
   */
  readonly fresh_wait_p50_ms: number | null;
  /** The most calls in one second after the outage. */
  readonly peak_calls_per_second: number;
  readonly tasks: number;
}

export interface SimulatedOutage {
  readonly result: OutageResult;
  readonly samples: readonly Sample[];
}

const SOURCE = 'api.example.com';

const SECOND: Milliseconds = 1_000;

/** How many tasks a worker runs at a time. Calls take no time, so this is how many it claims at once. */
const CONCURRENCY = 100;

/** The clock moves in steps of this length. What becomes due between two steps happens at the second one. */
const STEP: Milliseconds = 50;

/** How many intervals of equal length the outage is divided into, for the plot. */
const INTERVALS = 360;

/** Runs the scenario with its own clock, through the real worker, store and `decide`. */
export async function simulateOutage(simulation: Simulation): Promise<SimulatedOutage> {
  const { scenario, store, seed, policy, workers = 1 } = simulation;
  const clock = new VirtualClock(new Date('2026-01-01T00:00:00Z'));
  const start = clock.now();
  const downFrom = start + scenario.before;
  const downUntil = downFrom + scenario.outage;
  const server = new SimulatedServer({ downFrom, downUntil, capacity: scenario.capacity });
  const tally = new Tally(start, downFrom, downUntil);

  const errors = { down: httpError(503, 'Service Unavailable'), throttled: httpError(429, 'Too Many Requests') };
  const call = defineTask('call', {
    source: SOURCE,
    retry: policy.options(dice(seed + 1)),
    run(arrival: number) {
      const answer = server.answer(clock.now());
      tally.called(clock.now(), answer);
      if (answer !== 'served') throw errors[answer];
      tally.succeeded(arrival, clock.now());
    },
  });
  const holdfast = await openWith({ store, tasks: [call] }, { clock, random: dice(seed) });
  try {
    for (let n = 1; n <= workers; n++) {
      holdfast.work({
        name: `worker ${n}`,
        concurrency: CONCURRENCY,
        leaseFor: '7d',
        pollInterval: '7d',
        claimAhead: false,
        onEvent(event) {
          if (event.kind !== 'settled') return;
          const { state, task } = event;
          if (state === 'dead' || state === 'needs_manual') tally.gaveUp(JSON.parse(task.payload), clock.now());
        },
      });
    }
    const arrivals = momentsFrom(start, scenario.arrivals / SECOND, dice(seed + 2));
    const latest = downUntil + scenario.longest;
    const interval = scenario.outage / INTERVALS;
    let sampleAt = start + interval;
    while (clock.now() < Math.min(latest, tally.drainedAt + scenario.before)) {
      clock.moveTo(nextStep(clock, Math.min(arrivals.next, sampleAt)));
      const enqueued: Promise<unknown>[] = [];
      for (; arrivals.next <= clock.now(); arrivals.draw()) {
        enqueued.push(holdfast.enqueue(call, tally.arrived(clock.now())));
      }
      await Promise.all(enqueued);
      await untilQuiet(holdfast);
      if (sampleAt > clock.now()) continue;
      tally.sample(clock.now(), policy.remembers && (await conditionOf(SOURCE, holdfast)));
      while (sampleAt <= clock.now()) sampleAt += interval;
    }
    tally.sample(clock.now());
    return { result: resultOf(tally, downUntil, scenario, await attemptsChargedIn(holdfast)), samples: tally.samples };
  } finally {
    await Promise.all([...holdfast.ownWorkers].map((worker) => worker.stop({ grace: 0 })));
    await holdfast.close();
  }
}

function resultOf(tally: Tally, downUntil: number, scenario: Scenario, attemptsCharged: number): OutageResult {
  const shortest = (tally.arrivedInOutage / (scenario.capacity - scenario.arrivals)) * SECOND;
  const drainRatio = (tally.drainedAt - downUntil) / shortest;
  const { freshWait } = tally;
  return {
    useless_calls: tally.uselessCalls,
    throttled_after: tally.throttledAfter,
    dead: tally.givenUp,
    attempts_charged: attemptsCharged,
    drain_ratio: Number.isFinite(drainRatio) ? Math.round(drainRatio * 1_000) / 1_000 : null,
    fresh_wait_p50_ms: Number.isFinite(freshWait) ? freshWait : null,
    peak_calls_per_second: tally.peak,
    tasks: tally.arrivals,
  };
}

function httpError(status: number, message: string): Error {
  return Object.assign(new Error(`HTTP ${status} ${message}`), { status });
}

/** When the clock must move next. */
function nextStep(clock: VirtualClock, moment: number): number {
  const next = Math.min(clock.nextTimer ?? moment, moment);
  return Math.max(clock.now() + STEP, Math.ceil(next / STEP) * STEP);
}

/** Random times, with this average number per millisecond. */
function momentsFrom(start: number, rate: number, random: () => number): { readonly next: number; draw(): void } {
  const gap = () => -Math.log(1 - random()) / rate;
  let next = start + gap();
  return {
    get next() {
      return next;
    },
    draw() {
      next += gap();
    },
  };
}

/** Until every worker waits for the clock. Handlers never do. */
async function untilQuiet(holdfast: Holdfast): Promise<void> {
  do {
    await new Promise((resolve) => setImmediate(resolve));
  } while (![...holdfast.ownWorkers].every(({ resting }) => resting));
}

async function conditionOf(source: string, holdfast: Holdfast): Promise<SourceCondition> {
  const state = (await holdfast.sources.list()).find(({ name }) => name === source)?.state;
  return state === undefined ? 'normal' : (troubleOf(aged(readMemory(state.memory), state.age))?.condition ?? 'normal');
}

async function attemptsChargedIn(holdfast: Holdfast): Promise<number> {
  let charged = 0;
  let before = Number.POSITIVE_INFINITY;
  for (;;) {
    const page = await holdfast.list({ limit: 1_000, ...(Number.isFinite(before) && { before }) });
    for (const { attempts } of page) charged += attempts;
    const last = page.at(-1);
    if (last === undefined) return charged;
    before = last.id;
  }
}
