import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { list, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import { show } from '../show.ts';
import type { PrunedTask, Takes } from '../store/store.ts';
import type { Needs } from '../task.ts';
import type { WorkerEvent } from '../telemetry/events.ts';
import { checkNeeds, trueOrFalse } from './define-task.ts';
import { type RetentionOptions, refuseRetention } from './retention-options.ts';

export interface WorkerOptions {
  /** The name that people see. Default: the `workerName` with which Holdfast was opened, else `worker-PID`. */
  readonly name?: string;
  /** How many executions may run at the same time. Default 10. */
  readonly concurrency?: number;
  /** Only tasks of these queues. Default: all. */
  readonly queues?: readonly string[];
  /** Only tasks of these types. Default: the types that have a definition. */
  readonly types?: readonly string[];
  /** Only tasks of these categories. Default: all, and those without one. */
  readonly categories?: readonly string[];
  /** The capabilities of the worker, for tasks with `needs`. */
  readonly capabilities?: Needs;
  /** How long a worker keeps its tasks without a renewal. It renews three times in this time. Default 30 s, at least 1 s. */
  readonly leaseFor?: DurationInput;
  /**
   * How often it looks for work about which it got no message, at least 1 ms. Default 1 s; on PostgreSQL, after half a minute without a
   * task, 10 s, or 30 s where LISTEN works.
   */
  readonly pollInterval?: DurationInput;
  /** How long a handler has to end when its execution or the worker is stopped. Default 30 s. */
  readonly grace?: DurationInput;
  /** Starts this many executions, then finishes. Default: no end. */
  readonly maxTasks?: number;
  /** Claim only these tasks, by id. */
  readonly only?: readonly number[];
  /**
   * Whether tasks are claimed before a slot is free for them, so that many claims share a transaction. This is done only for
   * types whose executions were measured to be short (10 ms), while no others run, and for at most about 50 ms of work per slot.
   * A task of higher priority may wait for this long. If such tasks take longer than measured, the waiting ones are handed back
   * when the first execution ends, or after a second. Tasks that must not run twice, have a deadline, or were lost before are
   * never claimed ahead. Default true.
   */
  readonly claimAhead?: boolean;
  /**
   * Called with each event, in order. But if a settlement and the next start share a transaction, the start may come first.
   * Errors that it throws are logged and have no other effect.
   */
  readonly onEvent?: (event: WorkerEvent) => void;
  /**
   * When tasks that ended or need a person are removed: `{ succeeded: '7d', dead: { default: '30d', 'fs.locked': '90d' } }`. Once
   * an hour exactly one of all workers removes them, by its own option, so give all workers the same value. A worker with `only`
   * removes none. Default: 30 days, and `needs_manual` never.
   */
  readonly retention?: RetentionOptions;
  /**
   * What happens after an error that nobody waits for: a handler left a promise behind that rejects, or a timer or listener that
   * throws. The error is logged, and recorded in the history of the task, even if the task has ended. Then `continue`: the
   * process continues; or `exit`: Node's own rules apply, and the process ends. Errors that belong to no handler are always left
   * to Node. Default `continue`.
   */
  readonly unhandledRejections?: UnhandledRejections;
  /**
   * Called with the tasks that were removed by retention, one batch at a time. Errors that it throws are logged and have no other
   * effect.
   */
  readonly onRemoved?: (tasks: readonly PrunedTask[]) => void;
}

export const UNHANDLED_REJECTIONS = ['continue', 'exit'] as const;
export type UnhandledRejections = (typeof UNHANDLED_REJECTIONS)[number];

const OPTIONS = [
  'name',
  'concurrency',
  'queues',
  'types',
  'categories',
  'capabilities',
  'leaseFor',
  'pollInterval',
  'grace',
  'maxTasks',
  'only',
  'claimAhead',
  'onEvent',
  'unhandledRejections',
  'retention',
  'onRemoved',
];

/** The options of a worker, read and with their defaults. */
export interface WorkerSettings {
  readonly name?: string;
  readonly concurrency: number;
  readonly takes: Takes;
  readonly only?: readonly number[];
  readonly claimAhead: boolean;
  readonly leaseFor: Milliseconds;
  /** Undefined where the worker was given none. */
  readonly pollInterval?: Milliseconds;
  readonly grace: Milliseconds;
  /** Infinity if there is no end. */
  readonly maxTasks: number;
  readonly unhandledRejections: UnhandledRejections;
  readonly onEvent?: (event: WorkerEvent) => void;
  readonly onRemoved: (tasks: readonly PrunedTask[]) => void;
}

const SHORTEST_LEASE: Milliseconds = 1_000;

/**
 * Reads the options of a worker over the defaults.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function parseWorkerOptions(given: WorkerOptions, otherwise: WorkerOptions = {}): WorkerSettings {
  refuseUnknown(given, OPTIONS, 'A worker', OTHERWISE_CALLED.worker);
  const options = { ...otherwise, ...given };
  const {
    concurrency = 10,
    capabilities = {},
    leaseFor = '30s',
    pollInterval,
    grace = '30s',
    claimAhead = true,
    unhandledRejections = 'continue',
    onEvent,
    onRemoved = () => {},
  } = options;
  for (const [called, value] of Object.entries({ onEvent, onRemoved })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new InvalidInputError(`${called} must be a function, got ${show(value)}.`);
    }
  }
  refuseRetention(options.retention);
  const id = (value: unknown, what: string) => wholeNumber(value, what, 1);
  return {
    ...(options.name !== undefined && { name: name(options.name, 'name') }),
    concurrency: wholeNumber(concurrency, 'concurrency', 1, 10_000),
    takes: {
      capabilities: checkNeeds(capabilities, 'capabilities'),
      ...(options.types !== undefined && { types: list(options.types, 'types', name) }),
      ...(options.queues !== undefined && { queues: list(options.queues, 'queues', name) }),
      ...(options.categories !== undefined && { categories: list(options.categories, 'categories', name) }),
    },
    ...(options.only !== undefined && { only: list(options.only, 'only', id) }),
    claimAhead: trueOrFalse(claimAhead, 'claimAhead'),
    leaseFor: atLeast(SHORTEST_LEASE, duration(leaseFor, 'leaseFor'), 'leaseFor must be at least 1 s'),
    ...(pollInterval !== undefined && {
      pollInterval: atLeast(1, duration(pollInterval, 'pollInterval'), 'pollInterval must be at least 1 ms'),
    }),
    grace: duration(grace, 'grace'),
    maxTasks: options.maxTasks === undefined ? Number.POSITIVE_INFINITY : wholeNumber(options.maxTasks, 'maxTasks', 1),
    unhandledRejections: oneOf(unhandledRejections, UNHANDLED_REJECTIONS, 'unhandledRejections'),
    ...(onEvent !== undefined && { onEvent }),
    onRemoved,
  };
}

function atLeast(least: Milliseconds, value: Milliseconds, objection: string): Milliseconds {
  if (value >= least) return value;
  throw new InvalidInputError(`${objection}, got ${value} ms.`);
}
