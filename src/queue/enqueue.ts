import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError, PayloadError } from '../errors.ts';
import { describe } from '../failure/classify/describe.ts';
import { type PolicyOptions, policyOver, type ReadOptions, readPolicy, type WholePolicy } from '../failure/policy.ts';
import { parseSignal } from '../failure/signals.ts';
import { decodeJson, encodeJson } from '../json.ts';
import { moment, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import { show } from '../show.ts';
import type { NewTask, Receipt } from '../store/store.ts';
import {
  HIGHEST_PRIORITY,
  type Json,
  type Needs,
  UNIQUE_CONFLICTS,
  UNIQUE_SCOPES,
  type UniqueConflict,
  type UniqueScope,
} from '../task.ts';
import {
  type AnyTask,
  checkNeeds,
  type DefinitionOf,
  defineTask,
  isThenable,
  parseInput,
  trueOrFalse,
} from '../worker/define-task.ts';
import { ownText } from '../worker/own-options.ts';
import type { Writable } from '../writable.ts';

/** `Given` is the type of the input. */
// biome-ignore lint/suspicious/noExplicitAny: options that are made apart from their task fit any input
export interface EnqueueOptions<Given = any> {
  /** Due this long from now. Not together with `at`. */
  readonly delay?: DurationInput;
  /** Due at this time. */
  readonly at?: Date;
  /** When the work was first submitted, if not now: this decides its place in a `fifo` queue. Default now. */
  readonly submittedAt?: Date;
  /** A fixed time. If the task has not succeeded by then, it ends, unless an operator holds it. */
  readonly deadline?: Date;
  /** 0 to 4,095; higher goes first in a queue ordered by priority. Default: that of the definition, else 0. */
  readonly priority?: number;
  /** The queue of the task. Default: that of the definition, else `default`. */
  readonly queue?: string;
  /** A name by which workers choose tasks. Default: that of the definition, else none. */
  readonly category?: string;
  /** What a worker must offer, such as `{ gpu: true }`. Default: that of the definition, else nothing. */
  readonly needs?: Needs;
  /** The failure domain that the task touches, such as `imap:INBOX`. Default: that of the definition, else the type. */
  readonly source?: string;
  /** Whether the task may run twice. Default: that of the definition; a process without one leaves it to the worker's. */
  readonly idempotent?: boolean;
  /**
   * Enqueueing the same type with the same key again returns the receipt of the first task, as long as the store keeps that task.
   */
  readonly key?: string;
  /** Only one task of its type may have this key at a time. `key` is checked before this. */
  readonly unique?: UniqueOptions<Given>;
  /** The version of the type whose form the input has. Default: that of the definition here, else 1. */
  readonly version?: number;
  /** Policy options for this task only. They win over its type's policy. Named functions cannot be part of it. */
  readonly retry?: PolicyOptions | WholePolicy;
}

/**
 * At most one task of a type has a unique key at a time. It has the key from its enqueue for as long as its own `while` says,
 * during retries, recoveries and holds too. Then the key is free. This also works between processes that enqueue at the same
 * time.
 */
// biome-ignore lint/suspicious/noExplicitAny: options that are made apart from their task fit any input
export interface UniqueOptions<Given = any> {
  /** 1 to 255 characters; each type has its own keys. */
  readonly key: string;
  /**
   * How long the task has its key. `unfinished` (default): until it has succeeded, died or been cancelled; one that needs a
   * person has not ended. `waiting`: until it starts, so that one task may run while the next one waits. If the running task
   * fails and must be retried while the next one waits, it is superseded: it ends as cancelled, with the reason
   * `unique.superseded`.
   */
  readonly while?: UniqueScope;
  /**
   * The task has its key for at least this long after its enqueue, also when it has ended or started before. Default: only as long
   * as `while` says.
   */
  readonly for?: DurationInput;
  /**
   * What happens to a new task if another task has its key. `ignore` (default): the new task is not recorded, and the receipt
   * names the other one with `created: false`. `replace`: if the other task waits, it is cancelled and the new task is recorded
   * with its own input, options and counts; it is held if the other one was. If the other task runs or needs a person, this is
   * like `ignore`. `reject`: a UniqueConflictError with the id of the other task. `{ merge }`: if the other task waits, its input
   * becomes what the function returns, and it gets a new idempotency key; otherwise this is like `reject`. Only in `enqueue`.
   */
  readonly onConflict?: UniqueConflict | Merging<Given>;
}

export interface Merging<Given> {
  /**
   * Makes one input of that of the waiting task and the new one, both as JSON brings them back. It is called again if the waiting task
   * was changed meanwhile.
   */
  merge(waiting: Given, added: Given): Given | Promise<Given>;
}

export const OPTIONS = [
  'delay',
  'at',
  'submittedAt',
  'deadline',
  'priority',
  'queue',
  'category',
  'needs',
  'source',
  'idempotent',
  'key',
  'unique',
  'version',
  'retry',
];

/** A new task for the store, made from one input; a promise of it if the input's schema returns one. */
export type TaskMaker = (input: unknown) => NewTask | Promise<NewTask>;

/**
 * Checks a caller's options, and returns a function that checks an input and makes a new task for the store. `unworked`: this
 * process has no definition of the type, so the worker's definition says whether the task may run twice. `onChange` hears of a value that
 * the handler gets in another form.
 */
export function taskMaker(
  definition: AnyTask,
  options: EnqueueOptions,
  sizeLimit: number,
  unworked: boolean,
  onChange?: (change: string) => void,
): TaskMaker {
  refuseUnknown(options, OPTIONS, 'enqueue', OTHERWISE_CALLED.enqueue);
  const common = settingsOf(definition, options);
  const source = options.source === undefined ? (definition.source ?? definition.type) : name(options.source, 'source');
  const idempotent =
    options.idempotent === undefined
      ? (definition.idempotent ?? (unworked ? undefined : true))
      : trueOrFalse(options.idempotent);
  // All members are set before the object is copied: see `Writable`.
  if (idempotent !== undefined) common.idempotent = idempotent !== false;
  const sourceReturned = `what the function \`source\` of ${definition.type} returns`;
  const complete = (payload: string, read: unknown): NewTask => {
    const mayRunTwice = said(definition, 'idempotent', idempotent, read);
    const itsSource = said(definition, 'source', source, read);
    const made = { ...common };
    made.payload = payload;
    made.source = itsSource === source ? (source as string) : name(itsSource, sourceReturned);
    if (mayRunTwice !== undefined) made.idempotent = trueOrFalse(mayRunTwice);
    return made;
  };
  const looksAtInput = definition.input || typeof source === 'function' || typeof idempotent === 'function';
  return (input) => {
    const payload = encodeJson(input, 'payload', sizeLimit, onChange);
    if (!looksAtInput) return complete(payload, undefined);
    // The schema and the functions of the definition get the same value as the handler: the payload after JSON.
    const read = readInput(definition, decodeJson(payload));
    return read instanceof Promise ? read.then((later) => complete(payload, later)) : complete(payload, read);
  };
}

/** Options that many tasks share, or a function of the input and its index that returns the options of each. */
export type OptionsOfEach<Input> =
  | Omit<EnqueueOptions, 'key' | 'unique'>
  | ((input: Input, index: number) => EnqueueOptions);

/** Makes the function that turns each of many inputs into a task, with options that all share, or with its own options. */
export function makerOfEach<Input>(
  options: OptionsOfEach<Input>,
  makerWith: (options: EnqueueOptions) => TaskMaker,
): (input: Input, index: number) => TaskMaker {
  if (typeof options === 'function') return (input, index) => makerWith(options(input, index));
  for (const option of ['key', 'unique']) {
    if (Object(options)[option] === undefined) continue;
    throw new InvalidInputError(
      `\`${option}\` names one task. Give the options as a function of the input: (input) => ({ ${option}: … }).`,
    );
  }
  const shared = makerWith(options);
  return () => shared;
}

/** A task as a list: its definition or type, its input and its options. */
export type TaskToEnqueue<Given> = readonly [
  task: DefinitionOf<Given> | string,
  input: NoInfer<Given>,
  options?: EnqueueOptions,
];

/** The tasks of a group, each of its own type. */
export type GroupTasks<Inputs extends readonly unknown[]> = readonly [
  ...{ readonly [Index in keyof Inputs]: TaskToEnqueue<Inputs[Index]> },
];

export interface FollowUp<Next> {
  /**
   * The task that runs once when all tasks of the group have ended, without `delay` and `at`. Give it a `key` if the call may be
   * repeated.
   */
  readonly followUp: TaskToEnqueue<Next>;
}

/** The follow-up of a group, and the options of its other tasks. */
export interface GroupOptions<Given, Next> extends FollowUp<Next> {
  /** As in `enqueueAll`. */
  readonly options?: OptionsOfEach<Given>;
}

export interface GroupReceipts {
  /** For each task, in their order. A task that existed before (`created: false`) does not belong to the group. */
  readonly tasks: readonly Receipt[];
  readonly followUp: Receipt;
}

export function groupReceipts(receipts: readonly Receipt[]): GroupReceipts {
  return { tasks: receipts.slice(0, -1), followUp: receipts.at(-1) as Receipt };
}

/** The new tasks of many inputs; a promise only if the schema returns promises. */
export function newTasks<Input>(
  inputs: readonly Input[],
  makerOf: (input: Input, index: number) => TaskMaker,
): readonly NewTask[] | Promise<readonly NewTask[]> {
  return madeOfEach(
    inputs,
    (input, index) => makerOf(input, index)(input),
    (index) => `inputs[${index}] is refused, so nothing was enqueued.`,
  );
}

/**
 * Makes a task from each item, in their order. All are checked before this resolves, and the error names the first refused one.
 */
export function madeOfEach<Item, Made>(
  items: readonly Item[],
  make: (item: Item, index: number) => Made | Promise<Made>,
  refusal: (index: number) => string,
): readonly Made[] | Promise<readonly Made[]> {
  const made: (Made | Promise<Made>)[] = [];
  let asked = false;
  for (let index = 0; index < items.length; index++) {
    try {
      const one = make(items[index] as Item, index);
      // Its error is thrown below, when its turn comes, unless a later item is refused at once.
      if (one instanceof Promise) one.catch(() => {});
      asked ||= one instanceof Promise;
      made.push(one);
    } catch (error) {
      throw ofItem(error, index, refusal);
    }
  }
  return asked ? allOf(made, refusal) : (made as Made[]);
}

async function allOf<Made>(
  made: readonly (Made | Promise<Made>)[],
  refusal: (index: number) => string,
): Promise<readonly Made[]> {
  const all: Made[] = [];
  for (const one of made) {
    try {
      all.push(await one);
    } catch (error) {
      throw ofItem(error, all.length, refusal);
    }
  }
  return all;
}

function ofItem(error: unknown, index: number, refusal: (index: number) => string): unknown {
  const text = `${refusal(index)} ${describe(error).message}`;
  if (error instanceof PayloadError) return new PayloadError(error.code, text, error.path, { cause: error, index });
  const code = error instanceof InvalidInputError ? error.code : 'invalid_input';
  return new InvalidInputError(text, code, { cause: error, index });
}

/** A type whose tasks another process runs. */
export function unworked(type: string): AnyTask {
  return defineTask(type, {
    run() {
      throw new InvalidInputError(
        `This process has no definition of the type '${type}'. Pass it in \`tasks\`.`,
        'unknown_type',
      );
    },
  });
}

/** The values that are the same for every input. */
function settingsOf(definition: AnyTask, options: EnqueueOptions): Writable<NewTask> {
  const { delay, at, submittedAt, deadline, key, unique, retry } = options;
  if (delay !== undefined && at !== undefined) {
    throw new InvalidInputError('enqueue takes either `delay` or `at`, not both.');
  }
  const { type, queue: itsQueue, priority: itsPriority, category: itsCategory, needs: itsNeeds } = definition;
  const { queue = itsQueue, priority = itsPriority, category = itsCategory, needs = itsNeeds } = options;
  const settings: Writable<NewTask> = {
    type,
    queue: name(queue, 'queue'),
    priority: wholeNumber(priority, 'priority', 0, HIGHEST_PRIORITY),
    delay: delay === undefined ? 0 : duration(delay, 'delay'),
    source: type,
    payload: 'null',
  };
  if (at !== undefined) settings.dueAt = moment(at, 'at').getTime();
  if (submittedAt !== undefined) settings.submittedAt = moment(submittedAt, 'submittedAt').getTime();
  if (deadline !== undefined) settings.deadline = moment(deadline, 'deadline').getTime();
  if (key !== undefined) settings.key = name(key, 'key');
  if (unique !== undefined) settings.unique = uniqueOf(unique);
  const version = wholeNumber(options.version ?? definition.version ?? 1, 'version', 1);
  const own = ownText({
    ...(retry !== undefined && { retry: storablePolicy(retry, definition) }),
    ...(version > 1 && { inputVersion: version }),
  });
  if (own !== undefined) settings.policy = own;
  if (category !== undefined) settings.category = name(category, 'category');
  if (needs !== undefined) settings.needs = checkNeeds(needs);
  return settings;
}

function uniqueOf(unique: UniqueOptions): NonNullable<NewTask['unique']> {
  if (typeof unique === 'string') {
    throw new InvalidInputError(`unique takes an object of options. Write unique: { key: ${show(unique)} }.`);
  }
  refuseUnknown(unique, ['key', 'while', 'for', 'onConflict'], 'unique');
  if (Object(unique.onConflict).merge !== undefined) {
    throw new InvalidInputError(
      'unique.onConflict: { merge } works with `enqueue` only: it reads the other task first.',
    );
  }
  const forMs = unique.for === undefined ? undefined : duration(unique.for, 'unique.for');
  if (forMs === 0) throw new InvalidInputError('unique.for must be longer than 0.');
  return {
    key: name(unique.key, 'unique.key'),
    while: oneOf(unique.while ?? 'unfinished', UNIQUE_SCOPES, 'unique.while'),
    onConflict: oneOf(unique.onConflict ?? 'ignore', UNIQUE_CONFLICTS, 'unique.onConflict'),
    ...(forMs !== undefined && { for: forMs }),
  };
}

/** The input as the schema parsed it; a promise only if the schema returns one. */
function readInput(definition: AnyTask, input: Json): unknown {
  const refuse = (cause: unknown): never => {
    const { message } = describe(cause);
    const refused = parseSignal(cause)?.reason === 'validation';
    const text = refused ? message : `The input of ${definition.type} could not be checked: ${message}`;
    throw new InvalidInputError(text, 'invalid_input', { cause });
  };
  try {
    const read = parseInput(definition, input);
    return isThenable(read) ? Promise.resolve(read).catch(refuse) : read;
  } catch (cause) {
    return refuse(cause);
  }
}

/** An option's value for this input: a fixed value, or the result of a function of the input. */
function said(definition: AnyTask, option: 'source' | 'idempotent', value: unknown, input: unknown): unknown {
  if (typeof value !== 'function') return value;
  try {
    return value(input);
  } catch (cause) {
    const text = `The function \`${option}\` of ${definition.type} threw: ${describe(cause).message}`;
    throw new InvalidInputError(text, 'invalid_input', { cause });
  }
}

function storablePolicy(retry: PolicyOptions | WholePolicy, definition: AnyTask): ReadOptions {
  const read = readPolicy(retry);
  policyOver(read, definition.policy);
  const backoffs = [read.backoff, ...Object.values(read.rules ?? {}).map((rule) => rule?.backoff)];
  if (backoffs.some((backoff) => backoff?.kind === 'custom')) {
    throw new InvalidInputError(
      "A task's own policy is stored, so it cannot hold a custom backoff: a function stays in its process.",
    );
  }
  return read;
}
