import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { describe } from '../failure/classify/describe.ts';
import { definePolicy, type PolicyOptions } from '../failure/policy.ts';
import { parseSignal } from '../failure/signals.ts';
import { encodeJson } from '../json.ts';
import { moment, name, refuseUnknown, wholeNumber } from '../options.ts';
import type { NewTask } from '../store/store.ts';
import { HIGHEST_PRIORITY, type Json, type Needs } from '../task.ts';
import { type AnyTask, checkNeeds, parseInput, trueOrFalse } from '../worker/define-task.ts';

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
  /** This task's own layer over its type's policy. Named functions cannot be part of it. */
  readonly retry?: PolicyOptions;
}

const OPTIONS = [
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
  'retry',
];

/** Checks all that a caller gave and makes of it what a store takes. */
export async function newTask(
  definition: AnyTask,
  input: unknown,
  options: EnqueueOptions,
  sizeLimit: number,
): Promise<NewTask & { idempotent?: boolean }> {
  refuseUnknown(options, OPTIONS, 'enqueue');
  if (options.delay !== undefined && options.at !== undefined) {
    throw new InvalidInputError('enqueue takes either `delay` or `at`, not both.');
  }
  const payload = encodeJson(input, 'payload', sizeLimit);
  // The schema and the functions of the definition see what the handler will see: the payload as JSON carries it.
  const parsed = await parsedInput(definition, JSON.parse(payload) as Json);
  const { type, queue: itsQueue, priority: itsPriority, category: itsCategory, needs: itsNeeds } = definition;
  const { queue = itsQueue, priority = itsPriority, category = itsCategory, needs = itsNeeds } = options;
  const {
    source = said(definition, 'source', parsed, type),
    idempotent = said(definition, 'idempotent', parsed, true),
  } = options;
  return {
    type,
    queue: name(queue, 'queue'),
    source: name(source, 'source'),
    priority: wholeNumber(priority, 'priority', 0, HIGHEST_PRIORITY),
    payload,
    idempotent: trueOrFalse(idempotent),
    delay: options.delay === undefined ? 0 : duration(options.delay, 'delay'),
    ...(options.at !== undefined && { dueAt: moment(options.at, 'at').getTime() }),
    ...(options.submittedAt !== undefined && { submittedAt: moment(options.submittedAt, 'submittedAt').getTime() }),
    ...(options.deadline !== undefined && { deadline: moment(options.deadline, 'deadline').getTime() }),
    ...(options.key !== undefined && { key: name(options.key, 'key') }),
    ...(options.retry !== undefined && { policy: storablePolicy(options.retry, definition) }),
    ...(category !== undefined && { category: name(category, 'category') }),
    ...(needs !== undefined && { needs: checkNeeds(needs) }),
  };
}

async function parsedInput(definition: AnyTask, input: Json): Promise<unknown> {
  try {
    return await parseInput(definition, input);
  } catch (cause) {
    const { message } = describe(cause);
    const refused = parseSignal(cause)?.reason === 'validation';
    const text = refused ? message : `The input of ${definition.type} could not be checked: ${message}`;
    throw new InvalidInputError(text, 'invalid_input', { cause });
  }
}

/** What the definition says of this input, by a value or by a function of it. */
function said<T>(definition: AnyTask, option: 'source' | 'idempotent', input: unknown, otherwise: T): unknown {
  const value = definition[option];
  if (typeof value !== 'function') return value ?? otherwise;
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
