import { type DurationInput, duration } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { definePolicy, type PolicyOptions } from '../failure/policy.ts';
import { encodeJson } from '../json.ts';
import { moment, name, refuseUnknown, wholeNumber } from '../options.ts';
import type { NewTask } from '../store/store.ts';
import { HIGHEST_PRIORITY, type Json, type Needs } from '../task.ts';
import { type AnyTask, checkNeeds, parseInput } from '../worker/define-task.ts';

export interface EnqueueOptions {
  /** Due this long from now. Not together with `at`. */
  readonly delay?: DurationInput;
  /** Due at this time. */
  readonly at?: Date;
  /** When it was submitted to whoever hands it on: its place in a `fifo` queue. Default now. */
  readonly submittedAt?: Date;
  /** Absolute: what has not succeeded by then ends, however it waits. */
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
): Promise<NewTask> {
  refuseUnknown(options, OPTIONS, 'enqueue');
  if (options.delay !== undefined && options.at !== undefined) {
    throw new InvalidInputError('enqueue takes either `delay` or `at`, not both.');
  }
  const payload = encodeJson(input, 'payload', sizeLimit);
  // The schema and the functions of the definition see what the handler will see: the payload as JSON carries it.
  const parsed = await parsedInput(definition, JSON.parse(payload) as Json);
  const { source = definition.source ?? definition.type, idempotent = definition.idempotent ?? true } = options;
  const category = options.category ?? definition.category;
  const needs = options.needs ?? definition.needs;
  return {
    type: definition.type,
    queue: name(options.queue ?? definition.queue, 'queue'),
    source: name(typeof source === 'function' ? source(parsed) : source, 'source'),
    priority: wholeNumber(options.priority ?? definition.priority, 'priority', 0, HIGHEST_PRIORITY),
    payload,
    idempotent: trueOrFalse(typeof idempotent === 'function' ? idempotent(parsed) : idempotent),
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
  } catch (error) {
    throw new InvalidInputError(error instanceof Error ? error.message : String(error));
  }
}

function storablePolicy(retry: PolicyOptions, definition: AnyTask): string {
  definePolicy(retry, definition.policy);
  const backoffs = [retry.backoff, ...Object.values(retry.rules ?? {}).map((rule) => rule.backoff)];
  if (backoffs.some((backoff) => backoff?.kind === 'custom')) {
    throw new InvalidInputError(
      "A task's own policy is stored, so it cannot hold a custom backoff: a function stays in its process.",
    );
  }
  return JSON.stringify(retry);
}

function trueOrFalse(value: unknown): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidInputError(`idempotent must be true or false, got ${String(value)}.`);
}
