import { InvalidInputError, StoreError } from '../errors.ts';
import type { Mistakes } from '../mistakes.ts';
import { list, refuseUnknown } from '../options.ts';
import { show } from '../show.ts';
import { WHEN_GROUP_ENDS } from '../store/new-task.ts';
import type { NewTask, Receipt, Store } from '../store/store.ts';
import type { Telemetry } from '../telemetry/tracing.ts';
import { checkTask } from '../worker/check-task.ts';
import type { AnyTask } from '../worker/define-task.ts';
import { beginSending, send } from '../worker/traces.ts';
import {
  type EnqueueOptions,
  type GroupOptions,
  type GroupReceipts,
  groupReceipts,
  madeOfEach,
  makerOfEach,
  newTasks,
  type OptionsOfEach,
  type TaskMaker,
  type TaskToEnqueue,
  taskMaker,
  unworked,
} from './enqueue.ts';
import { importedTasks, partsOfImport, type TaskToImport } from './import.ts';
import { enqueueMerging, mergingOf } from './merging.ts';
import { type ActionOptions, by } from './operate.ts';
import { type PostgresHandle, recordWithin, type SqliteHandle, type Within } from './within.ts';

export const NO_OPTIONS: EnqueueOptions = {};

/** How many tasks one call takes. */
const MOST_AT_ONCE = 10_000;

const MOST_QUEUES_SEEN = 1_000;

/** Checks new tasks and passes them to the store. */
export class Recorder {
  readonly #store: Store;
  readonly #definitions: ReadonlyMap<string, AnyTask>;
  readonly #sizeLimit: number;
  readonly #mistakes: Mistakes;
  /** Calls whose inputs are still being checked or written. */
  readonly #recording = new Set<Promise<unknown>>();
  /** The queues whose order was looked at. */
  readonly #ordersSeen = new Set<string>();
  /** The types of which a key is being looked at. */
  readonly #keysAsked = new Set<string>();
  /** The definitions that were enqueued and are not among `definitions`, by type. */
  readonly #enqueued = new Map<string, AnyTask>();
  /** The functions that make tasks of definitions without options. */
  readonly #plainMakers = new WeakMap<AnyTask, TaskMaker>();

  readonly #telemetry: Telemetry | undefined;

  constructor(
    store: Store,
    definitions: ReadonlyMap<string, AnyTask>,
    sizeLimit: number,
    mistakes: Mistakes,
    telemetry?: Telemetry,
  ) {
    this.#telemetry = telemetry;
    this.#mistakes = mistakes;
    this.#store = store;
    this.#definitions = definitions;
    this.#sizeLimit = sizeLimit;
  }

  /** `refuse` throws once Holdfast is closed. */
  async enqueue(task: unknown, input: unknown, options: EnqueueOptions, refuse: () => void): Promise<Receipt> {
    refuse();
    const merging = options === NO_OPTIONS ? undefined : mergingOf(options);
    const make = this.#plainMaker(task, options) ?? this.#makerFor(task, 'enqueue')(merging?.options ?? options);
    const made = make(input);
    // Most tasks have no key. As many callers enqueue at once, each call makes as few promises as possible.
    if (!merging && !(made instanceof Promise) && made.key === undefined) {
      return (await this.#write([made]))[0] as Receipt;
    }
    const tasks = made instanceof Promise ? made.then((one) => [one]) : [made];
    const [receipt] = await (merging
      ? this.#record(Promise.resolve(tasks), async ([one]) => [
          await send(this.#telemetry, [one as NewTask], ([task]) =>
            enqueueMerging(this.#store, task as NewTask, merging.merge, make),
          ),
        ])
      : this.#enqueueAll(tasks));
    return receipt as Receipt;
  }

  /** A task as `enqueue` would record it. */
  async taskFor(task: unknown, input: unknown, options: EnqueueOptions, verb: string): Promise<NewTask> {
    return this.#makerFor(task, verb)(options)(input);
  }

  async enqueueAll<Input>(
    task: unknown,
    inputs: readonly Input[],
    options: OptionsOfEach<Input>,
  ): Promise<readonly Receipt[]> {
    const makerWith = this.#makerFor(task, 'enqueueAll');
    refuseTooMany(inputs, 'inputs', 'enqueueAll');
    return this.#enqueueAll(newTasks(inputs, makerOfEach(options, makerWith)));
  }

  async enqueueGroup(task: unknown, inputs: unknown, group: unknown): Promise<GroupReceipts> {
    return groupReceipts(await this.#enqueueAll(this.#groupFrom(task, inputs, group)));
  }

  /**
   * The tasks of a group, and then its follow-up. All of one type: `task`, `inputs`, `group`. Of several types: a list of tasks
   * and `group`, without a third argument.
   */
  #groupFrom(
    task: unknown,
    inputs: unknown,
    group: unknown = inputs,
  ): readonly NewTask[] | Promise<readonly NewTask[]> {
    const isMixed = Array.isArray(task);
    if (isMixed) refuseTooMany(task, 'tasks', 'enqueueGroup');
    else refuseTooMany(inputs, 'inputs', 'enqueueGroup');
    refuseUnknown(group, isMixed ? ['followUp'] : ['followUp', 'options'], 'enqueueGroup');
    const { followUp, options = {} } = group as GroupOptions<unknown, unknown>;
    for (const option of ['delay', 'at']) {
      if (Object(Object(followUp)[2])[option] === undefined) continue;
      throw new InvalidInputError(
        `The follow-up of a group is due when its tasks have ended, so it takes no \`${option}\`.`,
      );
    }
    const made = isMixed
      ? madeOfEach(
          task,
          (one, index) => this.#taskFrom(one, `tasks[${index}]`),
          (index) => `tasks[${index}] is refused, so nothing was enqueued.`,
        )
      : newTasks(inputs as readonly unknown[], makerOfEach(options, this.#makerFor(task, 'enqueueGroup')));
    const last = this.#taskFrom(followUp, 'followUp');
    const whole = (tasks: readonly NewTask[], one: NewTask): readonly NewTask[] => [
      ...tasks,
      { ...one, delay: 0, dueAt: WHEN_GROUP_ENDS, groupOf: tasks.length },
    ];
    if (!(made instanceof Promise) && !(last instanceof Promise)) return whole(made, last);
    return Promise.all([made, last]).then(([tasks, one]) => whole(tasks, one));
  }

  #taskFrom(given: unknown, what: string): NewTask | Promise<NewTask> {
    const [task, input, options = NO_OPTIONS] = list(given, what, (item) => item) as TaskToEnqueue<unknown>;
    return this.#makerFor(task, 'enqueueGroup')(options)(input);
  }

  #enqueueAll(made: readonly NewTask[] | Promise<readonly NewTask[]>): Promise<readonly Receipt[]> {
    return this.#record(made, async (tasks) => {
      if (!tasks.some(({ key }) => key !== undefined)) return this.#write(tasks);
      const receipts = await this.#write(tasks);
      for (let i = 0; i < receipts.length; i++) {
        if (receipts[i]?.created === false) void this.#lookAtKey(tasks[i] as NewTask, receipts[i] as Receipt);
      }
      return receipts;
    });
  }

  #write(tasks: readonly NewTask[]): Promise<readonly Receipt[]> {
    return send(this.#telemetry, tasks, (traced) => this.#store.tasks.enqueue(traced));
  }

  async importTasks(tasks: readonly TaskToImport[], options: ActionOptions): Promise<readonly Receipt[]> {
    refuseTooMany(tasks, 'tasks', 'importTasks');
    const made = importedTasks(tasks, {
      now: this.#store.upkeep.now(),
      by: by(options, 'importTasks'),
      sizeLimit: this.#sizeLimit,
      makerFor: (type) => this.#makerFor(type, 'importTasks'),
    });
    // As a promise, so that closing waits for all batches.
    return this.#record(Promise.resolve(made), async (imported) => {
      const receipts: Receipt[] = [];
      for (const part of partsOfImport(imported)) receipts.push(...(await this.#store.tasks.import(part)));
      return receipts;
    });
  }

  /** `refuse` throws once Holdfast is closed. */
  within(
    handle: SqliteHandle | PostgresHandle,
    refuse: () => void,
  ): Within<
    Receipt | Promise<Receipt>,
    readonly Receipt[] | Promise<readonly Receipt[]>,
    GroupReceipts | Promise<GroupReceipts>
  > {
    if (!this.#store.within) {
      throw new StoreError(
        'store_unsupported',
        'This store cannot enqueue inside a transaction of yours: call `enqueue`.',
      );
    }
    const enqueuer = this.#store.within(handle);
    const record = (task: unknown, made: readonly NewTask[] | Promise<readonly NewTask[]>) => {
      const tasks = made instanceof Promise ? made.then((all) => this.#handedOver(all)) : this.#handedOver(made);
      const what = Array.isArray(task) ? 'a task' : `'${typeof task === 'string' ? task : (task as AnyTask).type}'`;
      return recordWithin(enqueuer, tasks, what);
    };
    return {
      enqueue: (task, input, options = {}) => {
        refuse();
        const made = this.#makerFor(task, 'enqueue')(options)(input);
        const receipts = record(task, made instanceof Promise ? made.then((one) => [one]) : [made]);
        return receipts instanceof Promise
          ? receipts.then(([receipt]) => receipt as Receipt)
          : (receipts[0] as Receipt);
      },
      enqueueAll: (task, inputs, options = {}) => {
        refuse();
        refuseTooMany(inputs, 'inputs', 'enqueueAll');
        return record(task, newTasks(inputs, makerOfEach(options, this.#makerFor(task, 'enqueueAll'))));
      },
      enqueueGroup: (task: unknown, inputs: unknown, group?: unknown) => {
        refuse();
        const receipts = record(task, this.#groupFrom(task, inputs, group));
        return receipts instanceof Promise ? receipts.then(groupReceipts) : groupReceipts(receipts);
      },
    };
  }

  /** The span of tasks in a transaction of the caller ends at once: its commit is not known here. */
  #handedOver(tasks: readonly NewTask[]): readonly NewTask[] {
    const sending = beginSending(this.#telemetry, tasks);
    sending.ended();
    return sending.tasks;
  }

  /** Resolves when all calls so far are written or refused. */
  async allRecorded(): Promise<void> {
    await Promise.allSettled(this.#recording);
  }

  #makerFor(task: unknown, verb: string): (options: EnqueueOptions) => TaskMaker {
    const known = typeof task === 'string' ? this.#definitionOf(task) : this.#checkDefinition(task, verb);
    const definition = known ?? unworked(task as string);
    return (options) => {
      const plain = this.#plainMaker(definition, options);
      if (plain) return plain;
      const { type } = definition;
      // A schema reads the payload as JSON brings it back, so that the handler gets what it says.
      const onChange = definition.input ? undefined : (change: string) => this.#tellOfChange(type, change);
      const maker = taskMaker(definition, options, this.#sizeLimit, known === undefined, onChange);
      const { queue = definition.queue, priority = definition.priority } = options;
      if (priority > 0) this.#lookAtOrder(queue);
      if (options === NO_OPTIONS) this.#plainMakers.set(definition, maker);
      return maker;
    };
  }

  /** The function that makes tasks of a definition that was enqueued without options before; undefined if there is none. */
  #plainMaker(definition: unknown, options: EnqueueOptions): TaskMaker | undefined {
    return options === NO_OPTIONS ? this.#plainMakers.get(definition as AnyTask) : undefined;
  }

  #tellOfChange(type: string, change: string): void {
    this.#mistakes.tell(
      `change ${type}`,
      `The handler of '${type}' gets its input in another form: ${change}. Convert it before you enqueue it, or give the type an \`input\` schema that reads it.`,
    );
  }

  /** Whether the order of a queue looks at priorities. In the background: an enqueue does not wait for that, nor fail by it. */
  #lookAtOrder(queue: string): void {
    if (this.#ordersSeen.has(queue) || this.#ordersSeen.size >= MOST_QUEUES_SEEN) return;
    this.#ordersSeen.add(queue);
    this.#store.records.queues().then(
      (queues) => {
        const order = queues.find(({ name }) => name === queue)?.order ?? 'fifo';
        if (order === 'priority' || order === 'weighted_random') return;
        this.#mistakes.tell(
          `priority ${queue}`,
          `A priority has no effect in the queue '${queue}', whose order is ${order}. Set its order, by \`holdfast queues order ${queue} priority\` or openHoldfast({ queues: { ${show(queue)}: { order: 'priority' } } }).`,
        );
      },
      // The store says what is wrong with it to whoever waits for a call.
      () => this.#ordersSeen.delete(queue),
    );
  }

  /** Whether a key that was taken belongs to a task with another input. In the background, one at a time for each type. */
  async #lookAtKey({ type, key, payload }: NewTask, { id }: Receipt): Promise<void> {
    const about = `key ${type}`;
    if (key === undefined || this.#keysAsked.has(type) || this.#mistakes.hasWarned(about)) return;
    this.#keysAsked.add(type);
    try {
      const found = await this.#store.records.find(id);
      if (found?.key === key && found.payload !== payload) {
        this.#mistakes.tell(
          about,
          `The key ${show(key)} of '${type}' belongs to task #${id}, which has another input, so nothing was enqueued. Use a new key for new work.`,
        );
      }
    } catch {
      // As above: only whoever waits for a call is told of a store that fails.
    } finally {
      this.#keysAsked.delete(type);
    }
  }

  /** Two definitions of a type would answer its failures by two policies, and check its inputs by two schemas. */
  #checkDefinition(task: unknown, verb: string): AnyTask {
    const definition = checkTask(task, verb);
    const { type } = definition;
    const known = this.#definitions.get(type) ?? this.#enqueued.get(type);
    if (known === undefined) this.#enqueued.set(type, definition);
    else if (known !== definition) {
      const where = this.#definitions.has(type) ? 'passed in `tasks` of openHoldfast' : 'enqueued before';
      throw new InvalidInputError(
        `${verb} got another definition of the type '${type}' than the one that was ${where}. Define the type once, export it, and use it in both places.`,
      );
    }
    return definition;
  }

  /** Inputs whose check is asynchronous are waited for at the end. The others are passed to the store in this turn. */
  #record<Made>(
    made: readonly Made[] | Promise<readonly Made[]>,
    write: (made: readonly Made[]) => Promise<readonly Receipt[]>,
  ): Promise<readonly Receipt[]> {
    if (!(made instanceof Promise)) return write(made);
    const recorded = made.then(write);
    this.#recording.add(recorded);
    const forget = () => this.#recording.delete(recorded);
    recorded.then(forget, forget);
    return recorded;
  }

  /** The definition of a type, or the definition for `'*'` under its name. */
  #definitionOf(type: string): AnyTask | undefined {
    const catchAll = this.#definitions.get('*');
    return this.#definitions.get(type) ?? (catchAll && { ...catchAll, type });
  }
}

/** @throws InvalidInputError for more tasks than one call may have. */
function refuseTooMany(items: unknown, what: string, verb: string): void {
  const { length } = list(items, what, (item) => item);
  if (length <= MOST_AT_ONCE) return;
  throw new InvalidInputError(
    `${verb} takes at most ${MOST_AT_ONCE} ${what} at once, got ${length}. Call it several times.`,
  );
}
