/// <reference lib="esnext.disposable" preserve="true" />

/**
 * The kit for users' tests: the real engine, and a clock that the test moves.
 * @module holdfast/testing
 */

import { type DurationInput, duration, LONGEST, type Milliseconds, span } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { moment, refuseNoRecord, refuseUnknown } from '../options.ts';
import type { Holdfast } from '../queue/holdfast.ts';
import { type HoldfastOptions, openWith } from '../queue/open.ts';
import { show } from '../show.ts';
import { sqlite } from '../store/sqlite/index.ts';
import type { StoreOpener } from '../store/store.ts';
import { defineTask } from '../worker/define-task.ts';
import type { Worker, WorkerEvent, WorkerOptions } from '../worker/worker.ts';
import { dice } from './dice.ts';
import { VirtualClock } from './virtual-clock.ts';

export { VirtualClock } from './virtual-clock.ts';

export interface TestOptions extends Omit<HoldfastOptions, 'store'> {
  /** Default: SQLite in memory, the real engine. */
  readonly store?: StoreOpener;
  /** Default 2026-01-01T00:00:00Z. */
  readonly start?: Date;
  /** The seed of the random numbers for jitter and weights. Default 1. */
  readonly seed?: number;
  /** Options of the worker that runs the tasks. Its lease is a day by default, so that long schedules pass quickly. */
  readonly worker?: WorkerOptions;
  /** After how much real time without activity a handler counts as waiting for the clock. Default 250 ms. */
  readonly patienceMs?: Milliseconds;
}

/** A Holdfast whose clock the test moves: a three-day retry schedule passes in milliseconds, and always in the same way. */
export interface TestHoldfast extends AsyncDisposable {
  readonly holdfast: Holdfast;
  readonly worker: Worker;
  readonly clock: VirtualClock;
  /** What the worker did, in order. */
  readonly events: readonly WorkerEvent[];
  /** Runs everything that is due now, on all workers of this Holdfast. */
  drain(): Promise<void>;
  /** Moves the clock, and runs everything that becomes due on the way, each at its own time. */
  advance(time: DurationInput): Promise<void>;
  close(): Promise<void>;
}

const OPTIONS = [
  'tasks',
  'queues',
  'sources',
  'config',
  'maxPayloadBytes',
  'log',
  'telemetry',
  'workerName',
  'store',
  'start',
  'seed',
  'worker',
  'patienceMs',
];

/** The type of a kit without tasks: a worker needs a type, and this one is never enqueued. */
const NOTHING = defineTask('holdfast.testing.nothing', { run() {} });

/**
 * Opens Holdfast for a test, with a clock that stands still and seeded random numbers. A handler that waits should use
 * `clock.sleep`. A handler that hangs is noticed after `patienceMs` of real time, and then the clock moves on. Without `tasks` it
 * is for claims by hand: its worker claims nothing, and only recovers lost tasks.
 */
export async function openTestHoldfast(options: TestOptions = {}): Promise<TestHoldfast> {
  refuseUnknown(options, OPTIONS, 'openTestHoldfast');
  const { store = sqlite(':memory:'), start = new Date('2026-01-01T00:00:00Z'), seed = 1, patienceMs = 250 } = options;
  const { worker: workerOptions, start: _, seed: __, patienceMs: ___, ...rest } = options;
  const clock = new VirtualClock(moment(start, 'start'));
  if (!Number.isFinite(seed)) throw new InvalidInputError(`seed must be a number, got ${show(seed)}.`);
  const patience = span(patienceMs, 'patienceMs');
  if (workerOptions !== undefined) refuseNoRecord(workerOptions, 'worker');
  const tasks = rest.tasks?.length === 0 ? undefined : rest.tasks;
  const holdfast = await openWith({ ...rest, tasks: tasks ?? [NOTHING], store }, { clock, random: dice(seed) });
  const events: WorkerEvent[] = [];
  const worker = await closingAfterFailure(holdfast, () =>
    holdfast.work({
      leaseFor: '1d',
      pollInterval: `${LONGEST}ms`,
      // With this clock, every handler seems short.
      claimAhead: false,
      ...workerOptions,
      onEvent(event) {
        events.push(event);
        return workerOptions?.onEvent?.(event);
      },
    }),
  );
  await holdfast.schedulesSet;
  const drain = () => untilQuiet(holdfast, clock, events, patience);
  const close = () => closeInItsTime(holdfast, worker, clock);
  return {
    holdfast,
    worker,
    clock,
    events,
    drain,
    async advance(time) {
      const target = clock.now() + duration(time, 'time');
      await drain();
      for (let next = clock.nextTimer; next !== undefined && next <= target; next = clock.nextTimer) {
        clock.moveTo(Math.max(next, clock.now()));
        await drain();
      }
      clock.moveTo(target);
      await drain();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

async function closingAfterFailure<T>(holdfast: Holdfast, step: () => T): Promise<T> {
  try {
    return step();
  } catch (error) {
    await holdfast.close();
    throw error;
  }
}

/**
 * A handler counts as hanging only after this many turns of the event loop without activity: on a busy machine one turn may take
 * long.
 */
const LEAST_TURNS = 100;

/** Runs until nothing is due and nothing runs, or all running handlers wait for the clock. */
async function untilQuiet(
  holdfast: Holdfast,
  clock: VirtualClock,
  events: readonly WorkerEvent[],
  patienceMs: Milliseconds,
): Promise<void> {
  for (const worker of holdfast.ownWorkers) worker.look();
  let seen = events.length;
  let since = performance.now();
  let turns = 0;
  for (;;) {
    await nextTurn();
    turns += 1;
    const workers = [...holdfast.ownWorkers];
    const resting = workers.every((worker) => worker.resting);
    const running = workers.reduce((sum, { handlers }) => sum + handlers, 0);
    if (resting && clock.sleepers >= running) return;
    // The patience applies only to handlers: calls of the store will be answered, even if the disk is slow.
    if (!resting || events.length !== seen) {
      since = performance.now();
      turns = 0;
    }
    seen = events.length;
    if (turns >= LEAST_TURNS && performance.now() - since > patienceMs) return;
  }
}

/** The kit's own worker drops its executions. The graces of other workers pass on the clock, which only the kit can move. */
async function closeInItsTime(holdfast: Holdfast, worker: Worker, clock: VirtualClock): Promise<void> {
  let closed = false;
  const closing = Promise.all([worker.stop({ grace: 0 }), holdfast.close()]).finally(() => {
    closed = true;
  });
  while (!closed) {
    await nextTurn();
    const { nextTimer = clock.now() } = clock;
    if ([...holdfast.ownWorkers].every(({ resting }) => resting)) clock.moveTo(Math.max(nextTimer, clock.now()));
  }
  await closing;
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
