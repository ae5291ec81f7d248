import { systemClock } from '../clock.ts';
import { InvalidInputError, StoreError } from '../errors.ts';
import { DEFAULT_SIZE_LIMIT } from '../json.ts';
import { LIMIT_OPTIONS, type LimitOptions, limitsGiven, parseLimits } from '../limits.ts';
import { checkLog, type Logger, silent } from '../log.ts';
import { nodeProblem } from '../node-version.ts';
import { list, name, oneOf, refuseNoRecord, refuseUnknown, wholeNumber } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import type { Limits } from '../pace.ts';
import { show } from '../show.ts';
import type { StoreOpener, World } from '../store/store.ts';
import { QUEUE_ORDERS, type QueueOrder } from '../task.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { checkTask } from '../worker/check-task.ts';
import { type Configuration, UNCONFIGURED } from '../worker/configuration.ts';
import type { AnyTask } from '../worker/define-task.ts';
import { Holdfast } from './holdfast.ts';
import { limitByConfig } from './sources.ts';

export interface HoldfastOptions {
  /** `sqlite('tasks.db')`, or another store. */
  readonly store: StoreOpener;
  /** The types that this process enqueues by definition or runs. */
  readonly tasks?: readonly AnyTask[];
  /**
   * Settings of queues: `{ mail: { order: 'priority', fair: true } }`. They are stored. A setting that is left out stays as it
   * is; the defaults are `fifo` and not fair. `pace` and `concurrency` limit all tasks of the queue together, over all workers.
   */
  readonly queues?: Readonly<Record<string, QueueOptions>>;
  /**
   * Limits of sources, by name, over all workers: `{ 'api.example.com': { pace: '10/s', concurrency: 4 } }`. A limit that is left
   * out stays as it is, and null removes it. A limit that a person has set with `sources.limit` is not replaced.
   */
  readonly sources?: Readonly<Record<string, LimitOptions>>;
  /** A configuration that wins over the code and may change while the program runs: a `Registry` of `holdfast/config`. */
  readonly config?: Configuration;
  /** How large a payload or result may be, in bytes of JSON. Default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /** Any logger with pino's four methods. Default: nothing is logged. */
  readonly log?: Logger;
  /** What is told of each enqueue and execution: `openTelemetry(api)` makes traces and metrics of them. Default: none. */
  readonly telemetry?: Telemetry;
  /** The name of workers without a `name`. Default `worker-PID`. */
  readonly workerName?: string;
}

/** The settings of a queue. */
export interface QueueOptions extends LimitOptions {
  /** Which ready task goes first: `fifo` (the oldest `submittedAt`), `lifo`, `priority` (then the oldest), or `weighted_random`. Default `fifo`. */
  readonly order?: QueueOrder;
  /** Whether the sources of the queue take turns, so that one with many tasks does not keep the others waiting. Default false. */
  readonly fair?: boolean;
}

const OPTIONS = ['store', 'tasks', 'queues', 'sources', 'config', 'maxPayloadBytes', 'log', 'telemetry', 'workerName'];

/**
 * Opens a store. Nothing is read or written before this call. Call `close` on the result.
 * @throws InvalidInputError if an option is unknown or invalid; StoreError if the store cannot be opened.
 */
export function openHoldfast(options: HoldfastOptions): Promise<Holdfast> {
  return openWith(options, { clock: systemClock, random: Math.random });
}

/** `openHoldfast` with another clock and other random numbers, for the testing kit. */
export async function openWith(options: HoldfastOptions, world: World): Promise<Holdfast> {
  const tooOld = nodeProblem();
  if (tooOld !== undefined) throw new StoreError('store_unsupported', tooOld);
  if (typeof options === 'string') {
    throw new InvalidInputError("openHoldfast takes options, such as openHoldfast({ store: sqlite('tasks.db') }).");
  }
  refuseUnknown(options, OPTIONS, 'openHoldfast', OTHERWISE_CALLED.openHoldfast);
  if (typeof options.store?.open !== 'function') {
    throw new InvalidInputError("openHoldfast needs a store, such as { store: sqlite('tasks.db') }.");
  }
  const {
    config: configuration = UNCONFIGURED,
    log = silent,
    queues: settings = {},
    sources: limits = {},
    tasks: definitions = [],
  } = options;
  const { maxPayloadBytes: sizeLimit = DEFAULT_SIZE_LIMIT, workerName = `worker-${process.pid}` } = options;
  wholeNumber(sizeLimit, 'maxPayloadBytes', 1);
  name(workerName, 'workerName');
  checkLog(log);
  checkTelemetry(options.telemetry);
  checkConfig(configuration);
  const queues = queueSettings(settings);
  const sources = sourceLimits(limits);
  const tasks = byType(list(definitions, 'tasks', checkTask));
  const store = await options.store.open(world);
  try {
    for (const { queue, ...settings } of queues) await store.sources.setUp(queue, settings);
    for (const [queue, settings] of configuration.queues) await store.sources.setUp(queue, settings);
    for (const { type, source = type, limits } of tasks.values()) {
      if (limits && typeof source === 'string') await limitByConfig(store, source, limits);
    }
    for (const [source, limits] of [...sources, ...configuration.limits]) await limitByConfig(store, source, limits);
  } catch (error) {
    await store.upkeep.close();
    throw error;
  }
  return new Holdfast({ store, world, tasks, configuration, sizeLimit, log, telemetry: options.telemetry, workerName });
}

function queueSettings(given: Readonly<Record<string, QueueOptions>>) {
  refuseNoRecord(given, 'queues');
  return Object.entries(given).map(([queue, settings]) => {
    const what = `The queue '${queue}'`;
    refuseUnknown(settings, ['order', 'fair', ...LIMIT_OPTIONS], what);
    const { order, fair } = settings;
    const limits = parseLimits(settings, what);
    if (order === undefined && fair === undefined && Object.keys(limits).length === 0) {
      throw new InvalidInputError(`${what} has no settings. Set \`order\`, \`fair\`, \`pace\` or \`concurrency\`.`);
    }
    return {
      queue: name(queue, 'queue'),
      ...(order !== undefined && { order: oneOf(order, QUEUE_ORDERS, `The order of '${queue}'`) }),
      ...(fair !== undefined && { fair: oneOf(fair, [true, false], `Whether '${queue}' is fair`) }),
      ...limits,
    };
  });
}

function sourceLimits(given: Readonly<Record<string, LimitOptions>>): readonly (readonly [string, Limits])[] {
  refuseNoRecord(given, 'sources');
  return Object.entries(given).map(([source, options]) => {
    return [name(source, 'source'), limitsGiven(options, `The source '${source}'`)] as const;
  });
}

function checkConfig(config: Configuration): void {
  if (typeof Object(config).said === 'function' && typeof Object(config).onChange === 'function') return;
  const how = "what loadConfig('holdfast.yaml') of holdfast/config resolves to";
  throw new InvalidInputError(`config takes ${how}, got ${show(config)}.`);
}

function checkTelemetry(telemetry: unknown): void {
  if (telemetry === undefined || typeof Object(telemetry).sending === 'function') return;
  const how = "openTelemetry(api) with `import * as api from '@opentelemetry/api'`";
  throw new InvalidInputError(`telemetry takes ${how}, got ${show(telemetry)}.`);
}

function byType(tasks: readonly AnyTask[]): ReadonlyMap<string, AnyTask> {
  const known = new Map<string, AnyTask>();
  for (const task of tasks) {
    if (known.has(task.type)) {
      throw new InvalidInputError(
        `The type '${task.type}' is defined twice in \`tasks\`. Keep one definition, or give one of them another type.`,
      );
    }
    known.set(task.type, task);
  }
  return known;
}
