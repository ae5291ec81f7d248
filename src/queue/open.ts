import { systemClock } from '../clock.ts';
import { InvalidInputError } from '../errors.ts';
import { DEFAULT_SIZE_LIMIT } from '../json.ts';
import { type Logger, silent } from '../log.ts';
import { list, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { QueueSettings, StoreOpener, World } from '../store/store.ts';
import { QUEUE_ORDERS } from '../task.ts';
import { type Configuration, UNCONFIGURED } from '../worker/configuration.ts';
import { type AnyTask, checkTask } from '../worker/define-task.ts';
import { Holdfast } from './holdfast.ts';

export interface HoldfastOptions {
  /** `sqlite('tasks.db')`, or another store. */
  readonly store: StoreOpener;
  /** The types that this process enqueues by definition or works. */
  readonly tasks?: readonly AnyTask[];
  /**
   * How queues are set up, for good: `{ mail: { order: 'priority', fair: true } }`. What is left out stays as it was: `fifo`,
   * and not fair, unless it was ever set.
   */
  readonly queues?: Readonly<Record<string, Partial<QueueSettings>>>;
  /** What an operator says over the code, and may change while this runs: a `Registry` of `holdfast/config`. */
  readonly config?: Configuration;
  /** How large a payload or result may be, in bytes of JSON. Default 1 MiB. */
  readonly maxPayloadBytes?: number;
  /** Any logger with pino's four methods. Default: nothing is logged. */
  readonly log?: Logger;
  /** How workers are called that were given no name. Default `worker-PID`. */
  readonly workerName?: string;
}

const OPTIONS = ['store', 'tasks', 'queues', 'config', 'maxPayloadBytes', 'log', 'workerName'];

/**
 * Opens a store. Nothing touches the disk before this is called. Close what it returns.
 * @throws InvalidInputError for options that it does not know or cannot use; StoreError if the store cannot be opened.
 */
export function openHoldfast(options: HoldfastOptions): Promise<Holdfast> {
  return openWith(options, { clock: systemClock, random: Math.random });
}

/** `openHoldfast` with another clock and other random numbers, for the testing kit. */
export async function openWith(options: HoldfastOptions, world: World): Promise<Holdfast> {
  refuseUnknown(options, OPTIONS, 'openHoldfast');
  if (typeof options.store?.open !== 'function') {
    throw new InvalidInputError("openHoldfast needs a store, such as { store: sqlite('tasks.db') }.");
  }
  const {
    config: configuration = UNCONFIGURED,
    log = silent,
    queues: settings = {},
    tasks: definitions = [],
  } = options;
  const { maxPayloadBytes: sizeLimit = DEFAULT_SIZE_LIMIT, workerName = `worker-${process.pid}` } = options;
  wholeNumber(sizeLimit, 'maxPayloadBytes', 1);
  name(workerName, 'workerName');
  checkLog(log);
  checkConfig(configuration);
  const queues = queueSettings(settings);
  const tasks = byType(list(definitions, 'tasks', checkTask));
  const store = await options.store.open(world);
  try {
    for (const { queue, ...settings } of queues) await store.sources.setUp(queue, settings);
    for (const [queue, settings] of configuration.queues) await store.sources.setUp(queue, settings);
  } catch (error) {
    await store.upkeep.close();
    throw error;
  }
  return new Holdfast({ store, world, tasks, configuration, sizeLimit, log, workerName });
}

function queueSettings(given: Readonly<Record<string, Partial<QueueSettings>>>) {
  refuseUnknown(given, Object.keys(Object(given)), 'queues');
  return Object.entries(given).map(([queue, settings]) => {
    refuseUnknown(settings, ['order', 'fair'], `The queue '${queue}'`);
    const { order, fair } = settings;
    if (order === undefined && fair === undefined) {
      throw new InvalidInputError(`The queue '${queue}' has no settings. Set \`order\` or \`fair\`.`);
    }
    return {
      queue: name(queue, 'queue'),
      ...(order !== undefined && { order: oneOf(order, QUEUE_ORDERS, `The order of '${queue}'`) }),
      ...(fair !== undefined && { fair: oneOf(fair, [true, false], `Whether '${queue}' is fair`) }),
    };
  });
}

function checkConfig(config: Configuration): void {
  if (typeof Object(config).said === 'function' && typeof Object(config).onChange === 'function') return;
  const how = "what loadConfig('holdfast.yaml') of holdfast/config resolves to";
  throw new InvalidInputError(`config takes ${how}, got ${show(config)}.`);
}

function checkLog(log: unknown): void {
  const missing = ['debug', 'info', 'warn', 'error'].find((method) => typeof Object(log)[method] !== 'function');
  if (missing !== undefined)
    throw new InvalidInputError(`log needs the methods of pino; it has no function \`${missing}\`.`);
}

function byType(tasks: readonly AnyTask[]): ReadonlyMap<string, AnyTask> {
  const known = new Map<string, AnyTask>();
  for (const task of tasks) {
    if (known.has(task.type)) throw new InvalidInputError(`The type '${task.type}' is defined twice.`);
    known.set(task.type, task);
  }
  return known;
}
