import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { list, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { PrunedTask, Takes } from '../store/store.ts';
import type { Needs } from '../task.ts';
import type { WorkerEvent } from '../telemetry/events.ts';
import { checkNeeds, trueOrFalse } from './define-task.ts';
import { type RetentionOptions, refuseRetention } from './retention-options.ts';

export interface WorkerOptions {
  /** Shown to people. Default: `workerName` of the opener, `worker-PID` unless said. */
  readonly name?: string;
  /** How many executions at a time. Default 10. */
  readonly concurrency?: number;
  /** Only tasks of these queues, types or categories. Default: all queues and categories, and the types that have a definition. */
  readonly queues?: readonly string[];
  readonly types?: readonly string[];
  readonly categories?: readonly string[];
  /** What it offers to tasks with needs. */
  readonly capabilities?: Needs;
  /** How long a silent worker keeps its tasks; it renews three times in that time. Default 30 s, at least 1 s. */
  readonly leaseFor?: DurationInput;
  /** How often it looks for work that nothing told it of. Default 1 s, at least 1 ms. */
  readonly pollInterval?: DurationInput;
  /** How long a handler has to end when its execution or the worker is stopped. Default 30 s. */
  readonly grace?: DurationInput;
  /** Starts this many executions, then finishes. Default: no end. */
  readonly maxTasks?: number;
  /** Only these tasks, by id. */
  readonly only?: readonly number[];
  /**
   * Whether tasks are claimed before there is room for them, so that many share a transaction: only of types whose executions
   * were measured to be short (10 ms), while nothing else runs, and at most about 50 ms of work for each slot. So long may a task
   * of higher priority wait, and what was claimed begins although its source or queue was shut meanwhile. What then takes longer
   * than was measured is handed back when the first such execution ends, or after a second. What must not run twice, has a
   * deadline, or was lost before is never claimed ahead. Default true.
   */
  readonly claimAhead?: boolean;
  /**
   * Told of what happens, in order; but of a settlement and the start that followed it in the same transaction, the start
   * may be told first. What it throws is logged and goes no further.
   */
  readonly onEvent?: (event: WorkerEvent) => void;
  /**
   * When tasks that came to rest are removed: `{ succeeded: '7d', dead: { default: '30d', 'fs.locked': '90d' } }`. Once an hour one
   * of all workers does so, by what it is told, so tell all of them the same; one with `only` leaves it to others. Default:
   * 30 days, and `needs_manual` never.
   */
  readonly retention?: RetentionOptions;
  /**
   * What follows when a handler leaves a promise behind that is rejected, or throws in a timer or a listener, where nobody waits for
   * it. It is logged, and recorded in its task's history, also of a task that has ended. Then `continue`: the process goes on; or
   * `exit`: Node's own rules apply, by which it ends. What belongs to no handler is always left to Node. Default `continue`.
   */
  readonly unhandledRejections?: UnhandledRejections;
  /** Told of what was removed because its time was up, some tasks at a time. What it throws is logged and goes no further. */
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
  readonly pollInterval: Milliseconds;
  readonly grace: Milliseconds;
  /** Infinity where there is no end. */
  readonly maxTasks: number;
  readonly unhandledRejections: UnhandledRejections;
  readonly onEvent?: (event: WorkerEvent) => void;
  readonly onRemoved: (tasks: readonly PrunedTask[]) => void;
}

const SHORTEST_LEASE: Milliseconds = 1_000;

/**
 * Reads the options of a worker over those that hold where it is not told otherwise.
 * @throws InvalidInputError naming the option and showing the value.
 */
export function parseWorkerOptions(given: WorkerOptions, otherwise: WorkerOptions = {}): WorkerSettings {
  refuseUnknown(given, OPTIONS, 'A worker');
  const options = { ...otherwise, ...given };
  const {
    concurrency = 10,
    capabilities = {},
    leaseFor = '30s',
    pollInterval = '1s',
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
    pollInterval: atLeast(1, duration(pollInterval, 'pollInterval'), 'pollInterval must be at least 1 ms'),
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
