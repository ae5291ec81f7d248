import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError, PayloadError } from '../errors.ts';
import { describe } from '../failure/classify/describe.ts';
import { definePolicy, type PolicyOptions } from '../failure/policy.ts';
import { parseSignal } from '../failure/signals.ts';
import { decodeJson, encodeJson } from '../json.ts';
import { moment, name, oneOf, refuseUnknown, wholeNumber } from '../options.ts';
import type { NewTask } from '../store/store.ts';
import {
  HIGHEST_PRIORITY,
  type Json,
  type Needs,
  UNIQUE_CONFLICTS,
  UNIQUE_SCOPES,
  type UniqueConflict,
  type UniqueScope,
} from '../task.ts';
import { type AnyTask, checkNeeds, defineTask, isThenable, parseInput, trueOrFalse } from '../worker/define-task.ts';
import type { Writable } from '../writable.ts';

export interface EnqueueOptions {
  /** Due this long from now. Not together with `at`. */
  readonly delay?: DurationInput;
  /** Due at this time. */
  readonly at?: Date;
  /** When it was submitted to whoever hands it on: its place in a `fifo` queue. Default now. */
  readonly submittedAt?: Date;
  /** Absolute: what has not succeeded by then ends, however it waits; only an operator's hold puts that off. */
  readonly deadline?: Date;
  readonly priority?: number;
  readonly queue?: string;
  readonly category?: string;
  readonly needs?: Needs;
  readonly source?: string;
  readonly idempotent?: boolean;
  /** Enqueuing the same type with the same key again answers the first task, for as long as the store remembers it. */
  readonly key?: string;
  /** Only one task of its type may have this key at a time. A `key` that is known already is answered first. */
  readonly unique?: UniqueOptions;
  /** This task's own layer over its type's policy. Named functions cannot be part of it. */
  readonly retry?: PolicyOptions;
}

/**
 * At most one task of a type has a unique key at a time. It has it from its enqueue for as long as its own `while` says, over
 * retries, recoveries and an operator's hold; then the key is free. What two processes enqueue at once meets like the rest.
 */
export interface UniqueOptions {
  /** 1 to 255 characters; each type has its own keys. */
  readonly key: string;
  /**
   * How long the task has its key. `unfinished` (default): until it has succeeded, died or been cancelled; one that needs a
   * person has not ended. `waiting`: until it starts, so that one may run while the next one waits. If the one that ran is to be
   * retried then, it is superseded by the one that waits: it ends as cancelled, with the reason `unique.superseded`.
   */
  readonly while?: UniqueScope;
  /**
   * What becomes of a new task whose key another one has. `ignore` (default): it is not recorded, and the receipt names the
   * other one with `created: false`. `replace`: if the other one waits, it is cancelled in favour of the new one, which begins
   * with its own input, options and counts, and is held if the other one was; one that runs or needs a person stays, as by
   * `ignore`. `reject`: a UniqueConflictError with the id of the other one.
   */
  readonly onConflict?: UniqueConflict;
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
  'retry',
];

/** What a store takes of one input; a promise of it where the input's schema answers one. */
export type TaskMaker = (input: unknown) => NewTask | Promise<NewTask>;

/**
 * Checks a caller's options, and answers what checks an input and makes of both what a store takes. `unworked`: this process
 * has no definition of the type, so that its worker says whether a task of it may run twice.
 */
export function taskMaker(
  definition: AnyTask,
  options: EnqueueOptions,
  sizeLimit: number,
  unworked: boolean,
): TaskMaker {
  refuseUnknown(options, OPTIONS, 'enqueue');
  const common = settingsOf(definition, options);
  const source = options.source === undefined ? (definition.source ?? definition.type) : name(options.source, 'source');
  const idempotent =
    options.idempotent === undefined
      ? (definition.idempotent ?? (unworked ? undefined : true))
      : trueOrFalse(options.idempotent);
  // Every member is there before a copy is made: see `Writable`.
  if (idempotent !== undefined) common.idempotent = idempotent !== false;
  const complete = (payload: string, read: unknown): NewTask => {
    const mayRunTwice = said(definition, 'idempotent', idempotent, read);
    const itsSource = said(definition, 'source', source, read);
    const made = { ...common };
    made.payload = payload;
    made.source = itsSource === source ? (source as string) : name(itsSource, 'source');
    if (mayRunTwice !== undefined) made.idempotent = trueOrFalse(mayRunTwice);
    return made;
  };
  const looksAtInput = definition.input || typeof source === 'function' || typeof idempotent === 'function';
  return (input) => {
    const payload = encodeJson(input, 'payload', sizeLimit);
    if (!looksAtInput) return complete(payload, undefined);
    // The schema and the functions of the definition see what the handler will see: the payload as JSON carries it.
    const read = readInput(definition, decodeJson(payload));
    return read instanceof Promise ? read.then((later) => complete(payload, later)) : complete(payload, read);
  };
}

/** What makes a task of each of many inputs: by options that all share, or by its own. */
export function makerOfEach<Input>(
  options: EnqueueOptions | ((input: Input, index: number) => EnqueueOptions),
  makerWith: (options: EnqueueOptions) => TaskMaker,
): (input: Input, index: number) => TaskMaker {
  if (typeof options === 'function') return (input, index) => makerWith(options(input, index));
  for (const option of ['key', 'unique']) {
    if (Object(options)[option] === undefined) continue;
    throw new InvalidInputError(
      `\`${option}\` names one task, so enqueueAll takes a function of the input: (input) => ({ ${option}: … }).`,
    );
  }
  const shared = makerWith(options);
  return () => shared;
}

/** All that a store takes of many inputs; a promise only where the schema answers promises. */
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

/** What is made of each of many, in their order. All are looked at before it resolves, and the first that is refused is named. */
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
      // Its refusal is told below, in its turn, unless a later one is refused at once.
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

/** A type that some other process works. */
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

/** All that is the same for every input. */
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
  if (retry !== undefined) settings.policy = storablePolicy(retry, definition);
  if (category !== undefined) settings.category = name(category, 'category');
  if (needs !== undefined) settings.needs = checkNeeds(needs);
  return settings;
}

function uniqueOf(unique: UniqueOptions): NonNullable<NewTask['unique']> {
  refuseUnknown(unique, ['key', 'while', 'onConflict'], 'unique');
  return {
    key: name(unique.key, 'unique.key'),
    while: oneOf(unique.while ?? 'unfinished', UNIQUE_SCOPES, 'unique.while'),
    onConflict: oneOf(unique.onConflict ?? 'ignore', UNIQUE_CONFLICTS, 'unique.onConflict'),
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

/** What was said of this input, by a value or by a function of it. */
function said(definition: AnyTask, option: 'source' | 'idempotent', value: unknown, input: unknown): unknown {
  if (typeof value !== 'function') return value;
  try {
    return value(input);
  } catch (cause) {
    const text = `The function \`${option}\` of ${definition.type} threw: ${describe(cause).message}`;
    throw new InvalidInputError(text, 'invalid_input', { cause });
  }
}

function storablePolicy(retry: PolicyOptions, definition: AnyTask): string {
  definePolicy(retry, definition.policy);
  const backoffs = [retry.backoff, ...Object.values(retry.rules ?? {}).map((rule) => rule?.backoff)];
  if (backoffs.some((backoff) => backoff?.kind === 'custom')) {
    throw new InvalidInputError(
      "A task's own policy is stored, so it cannot hold a custom backoff: a function stays in its process.",
    );
  }
  return JSON.stringify(retry);
}
