import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { DurationInput } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import type { Failure } from '../failure/outcome.ts';
import {
  type Policy,
  type PolicyOptions,
  policyOver,
  type ReadOptions,
  readPolicy,
  standard,
  type WholePolicy,
} from '../failure/policy.ts';
import { namedBy, presetFor, presets } from '../failure/presets.ts';
import { Failed, type ReturnedSignal } from '../failure/signals.ts';
import type { CarriedAsJson } from '../json-types.ts';
import { type LimitOptions, parseLimits } from '../limits.ts';
import type { Logger } from '../log.ts';
import { name, refuseUnknown, wholeNumber } from '../options.ts';
import { OTHERWISE_CALLED } from '../otherwise-called.ts';
import type { Limits } from '../pace.ts';
import { show } from '../show.ts';
import type { LastFailure } from '../store/store.ts';
import { HIGHEST_PRIORITY, type Json, type Needs } from '../task.ts';
import { type Batching, type BatchOptions, parseBatch, runAlone } from './batches.ts';
import { type ChildSettings, parseRunIn, type RunInOptions } from './child/options.ts';
import type { Group } from './group.ts';

/** What a handler knows about its execution. */
export interface RunningTask {
  readonly id: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly key?: string;
  /** Charged failures so far, plus one. */
  readonly attempt: number;
  /** The number of this start, over all rounds. It also grows with starts after which nothing was charged. */
  readonly execution: number;
  readonly maxAttempts: number;
  /**
   * A key for calls that must take effect once, such as an `Idempotency-Key` header: the same in each execution until the task
   * ends, and another one after a person's retry has started a new round.
   */
  readonly idempotencyKey: string;
  /** An earlier execution was lost with its worker; perhaps it killed the worker. */
  readonly recovered: boolean;
  readonly submittedAt: Date;
  readonly deadline?: Date;
  /** The message of the failure before this execution. */
  readonly lastError?: string;
  /** The failure before this execution: its kind, its reason, such as `http.503`, its message, and the fingerprint of its group. */
  readonly lastFailure?: LastFailure;
  /** What this execution or an earlier one saved last. Undefined if nothing was saved. */
  readonly checkpoint: Json | undefined;
  /** Aborts on a timeout, a cancel, a shutdown, or a lost lease. Errors thrown after that do not decide the outcome. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Saves one JSON value of at most 64 KiB, which later executions read as `checkpoint`: after a retry, a crash, a new round. It
   * resolves when the value is durable. Each call is a commit.
   * @throws PayloadError if the value is not JSON or too large; LeaseLostError if the lease is lost. Then nothing was saved.
   */
  saveCheckpoint(value: unknown): Promise<void>;
  /**
   * Reports how far the work is, for people: `get`, `holdfast show` and `onEvent` have the value. Any JSON value of at most 4 KiB,
   * such as `{ done: 40, total: 100 }`. At most one value a second is written, and always the last one. The time limit goes on: see
   * `heartbeat`.
   * @throws PayloadError if the value is not JSON or too large: then the value before stays.
   */
  progress(value: unknown): void;
  /**
   * Of the follow-up of a group: the tasks of its group, how they ended, and their results. Empty for any other task.
   * @throws StoreError if it could not be read.
   */
  group(): Promise<Group>;
  /** Reports that the work continues. The time limit starts anew. */
  heartbeat(): void;
  /**
   * Reports how many more calls the source accepts until its limit resets, as in RateLimit headers. If few are left, its tasks
   * are spaced so that the calls last until then. The last call in an execution counts; a value that is not a number is ignored.
   */
  rateLimit(limit: { readonly remaining: number; readonly resetsIn: DurationInput }): void;
}

/** `pace` and `concurrency` limit the source. They need a `source` that is the same for all tasks of the type. */
export interface TaskOptions<Input, Result, Given = Input> extends LimitOptions, RunInOptions {
  /**
   * The policy for its failures: a preset, or options that change `standard`. Default: the preset with the name of the type, else
   * `standard`.
   */
  readonly retry?: PolicyOptions | WholePolicy;
  /** Default `default`. */
  readonly queue?: string;
  /** 0 (default) to 4,095; higher goes first in a queue ordered by priority. */
  readonly priority?: number;
  /** A name by which workers choose tasks: `categories` of a worker. Default: none. */
  readonly category?: string;
  /** What a worker must offer: numbers mean at least, texts and booleans must be equal: `{ cpu: 4, gpu: 'RTX5090' }`. Default: nothing. */
  readonly needs?: Needs;
  /** The failure domain that it touches, such as `imap:INBOX`. Default: the task's type. */
  readonly source?: string | ((input: Input) => string);
  /**
   * Whether the task may run twice. Default true. With `false`, a person is asked whenever it is not known whether the effect
   * happened.
   */
  readonly idempotent?: boolean | ((input: Input) => boolean);
  /** Any Standard Schema (zod, valibot, arktype): checked when enqueued, and again before it runs. */
  readonly input?: StandardSchemaV1<Given, Input>;
  /**
   * The version of the form of its input, from 1 (default). Raise it when tasks that wait in an older form could not run any more.
   * A worker that knows only older versions puts a task off, without a charge, until another worker takes it.
   */
  readonly version?: number;
  /**
   * Makes an input of this version from one of an older version, as it was stored, before the schema reads it. Needed from version
   * 2 on. Tasks that were stored without a version have version 1.
   */
  // biome-ignore lint/suspicious/noExplicitAny: an older form has no type any more
  migrate?(payload: any, from: number): Given | Promise<Given>;
  /**
   * Does the work. A signal such as `new NeedsManual()` acts alike whether it is thrown or returned. The execution ends when the returned promise settles. `unhandledRejections` of the worker says what happens if another
   * promise, which the handler neither returned nor awaited, rejects.
   */
  run(input: Input, task: RunningTask): Result | ReturnedSignal | Promise<Result | ReturnedSignal>;
  /**
   * Checks cheaply whether a source works. If a source is down, one task at a time tests it. With this function, such a task
   * starts only if the function does not throw and does not return false. It may take as long as the `timeout` of the type. It is
   * not called for claims by hand.
   */
  health?(source: string, check: HealthCheck): unknown;
  /**
   * Finds out whether the effect happened, where a person would be asked otherwise: the task is `idempotent: false`, and its failure
   * is ambiguous or it was lost with its worker. `happened`: the task succeeds. `did_not_happen`: the policy answers the failure as
   * any other. `unknown`, an error, or no answer within 30 s: a person is asked.
   */
  verify?(input: Input, check: VerifyCheck): Verified | Promise<Verified>;
  /**
   * Cleans up what a lost execution left behind, such as its processes, if the task ends with this loss (it was cancelled, or is
   * dead), because then no later execution can. Called once, after the task has ended, by the worker or claim that recovers it
   * and has a definition of its type, or `'*'`. Errors that it throws are logged. Not called if the task was recovered first,
   * waited or needed a person, and ended later; nor if the process that recovers it is killed before this is done.
   */
  cleanUp?(input: Input, lost: LostExecution): void | Promise<void>;
}

/** What a verify step can answer: the effect happened, it did not, or that is not known. */
export const VERIFIED = ['happened', 'did_not_happen', 'unknown'] as const;
export type Verified = (typeof VERIFIED)[number];

/** What a verify step knows of the execution whose effect may have happened. */
export interface VerifyCheck {
  readonly id: number;
  readonly type: string;
  readonly source: string;
  /** The number of its start, over all rounds. */
  readonly execution: number;
  /** The one that the execution had. */
  readonly idempotencyKey: string;
  readonly submittedAt: Date;
  /** What executions of the task saved last, if anything. */
  readonly checkpoint: Json | undefined;
  /** How the execution failed; undefined if it was lost with its worker. */
  readonly failure: Failure | undefined;
  /** Aborts after 30 s. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/** A task of a batch: its input, and what a handler knows about its execution. */
export interface BatchedTask<Input> extends RunningTask {
  readonly input: Input;
}

/** The options of a type whose tasks run in batches: `runBatch` in place of `run`. */
export interface BatchTaskOptions<Input, Result, Given = Input>
  extends Omit<TaskOptions<Input, Result, Given>, 'run' | keyof RunInOptions> {
  /** How many tasks one call gets, and how long it waits for them. */
  readonly batch: BatchOptions;
  /**
   * Does the work of several tasks. It returns nothing if all have succeeded; otherwise a list with an entry for each task, or a Map by
   * task id. An entry is a result, an error, or an element of what `Promise.allSettled` resolves with. What it throws is the failure of each task.
   */
  runBatch(tasks: readonly BatchedTask<Input>[]): BatchReturn<Result> | Promise<BatchReturn<Result>>;
}

/** What `runBatch` returns. */
export type BatchReturn<Result> =
  // biome-ignore lint/suspicious/noConfusingVoidType: a function may return nothing
  | void
  | readonly (Result | Error | PromiseSettledResult<Result>)[]
  | ReadonlyMap<number, Result | Error | PromiseSettledResult<Result>>;

/** The arguments of a health check. */
export interface HealthCheck {
  /** Aborts on a timeout, a cancel, a shutdown, or a lost lease. */
  readonly signal: AbortSignal;
}

/** An execution that was lost with its worker. */
export interface LostExecution {
  readonly id: number;
  readonly type: string;
  /** The number of its start, over all rounds. */
  readonly execution: number;
  readonly submittedAt: Date;
  /** What executions of the task saved last, if anything. */
  readonly checkpoint: Json | undefined;
  readonly log: Logger;
}

/** A type of task: its name, its policy, and what runs it. */
export interface TaskDefinition<Input, Result, Given = Input>
  extends Omit<
    TaskOptions<Input, Result, Given>,
    'retry' | 'queue' | 'priority' | 'pace' | 'concurrency' | keyof RunInOptions
  > {
  readonly type: string;
  /** The policy for its failures, unless a configuration sets another one. */
  readonly policy: Policy;
  /** The policy options of this definition. A configuration can override them. */
  readonly retry?: Policy | ReadOptions;
  readonly queue: string;
  readonly priority: number;
  /** The limits of its source, which is the same for all of its tasks. */
  readonly limits?: Limits;
  /** Set if its handler runs in a child process. */
  readonly child?: ChildSettings;
  /** Set if its tasks run in batches. `run` then runs one task alone. */
  readonly batching?: Batching;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of definitions of different inputs has no narrower type
export type AnyTask = TaskDefinition<any, any, any>;

/** A definition by what is given to enqueue it and by what its handler returns; what its handler gets is between them. */
// biome-ignore lint/suspicious/noExplicitAny: options that are made apart from their task fit any input
export type DefinitionOf<Given, Result = unknown> = TaskDefinition<any, Result, Given>;

const OPTIONS = [
  'retry',
  'queue',
  'priority',
  'category',
  'needs',
  'source',
  'pace',
  'concurrency',
  'idempotent',
  'input',
  'version',
  'migrate',
  'run',
  'batch',
  'runBatch',
  'runIn',
  'module',
  'memory',
  'health',
  'cleanUp',
  'verify',
];

/**
 * Defines a type of task. The type `'*'` runs whatever no other definition of the worker runs.
 * @throws InvalidInputError naming the option and value that is refused.
 */
// biome-ignore lint/suspicious/noExplicitAny: an input without a schema has any type
export function defineTask<Input = any, Result = unknown, Given = Input>(
  type: string,
  options: BatchTaskOptions<Input, Result, Given> & CarriedAsJson<Given>,
): TaskDefinition<Input, Result, Given>;
// biome-ignore lint/suspicious/noExplicitAny: options that are made apart from their task fit any input
export function defineTask<Input = any, Result = unknown, Given = Input>(
  type: string,
  options: TaskOptions<Input, Result, Given> & CarriedAsJson<Given>,
): TaskDefinition<Input, Result, Given>;
export function defineTask<Input, Result, Given>(
  type: string,
  options: TaskOptions<Input, Result, Given> | BatchTaskOptions<Input, Result, Given>,
): TaskDefinition<Input, Result, Given> {
  if (typeof type === 'object')
    throw new InvalidInputError("The name of the type comes first: defineTask('type', { run }).");
  name(type, 'The type of a task');
  const what = `defineTask('${type}')`;
  if (typeof options === 'function') {
    throw new InvalidInputError(
      `defineTask takes the work as \`run\`: defineTask('${type}', { run: (input, task) => … }).`,
    );
  }
  refuseUnknown(options, OPTIONS, what, OTHERWISE_CALLED.task);
  if ('retry' in options && options.retry === undefined) {
    throw new InvalidInputError(
      `\`retry\` is undefined in ${what}. Leave it out, or use a preset that exists: ${Object.keys(presets).join(', ')}.`,
      'invalid_policy',
    );
  }
  const {
    retry,
    queue = 'default',
    priority = 0,
    pace,
    concurrency,
    runIn,
    module,
    memory,
    batch,
    runBatch,
    ...rest
  } = options as TaskOptions<Input, Result, Given> & Partial<BatchTaskOptions<Input, Result, Given>>;
  const isBatched = batch !== undefined || runBatch !== undefined;
  const batching = isBatched ? parseBatch(batch, runBatch, what) : undefined;
  if (batching && (rest.run !== undefined || runIn !== undefined)) {
    throw new InvalidInputError(
      `${what} takes \`runBatch\` in place of \`run\`, and runs it in the process of the worker.`,
    );
  }
  if (!batching && typeof rest.run !== 'function') {
    throw new InvalidInputError(`defineTask('${type}') needs a function \`run\`, got ${typeof rest.run}.`);
  }
  for (const option of ['health', 'cleanUp', 'migrate', 'verify'] as const) {
    if (rest[option] === undefined || typeof rest[option] === 'function') continue;
    throw new InvalidInputError(`${option} must be a function, got ${show(rest[option])}.`);
  }
  if (rest.version !== undefined) checkVersion(type, wholeNumber(rest.version, 'version', 1), rest.migrate);
  if (rest.category !== undefined) name(rest.category, 'category');
  if (rest.needs !== undefined) checkNeeds(rest.needs);
  if (rest.input !== undefined) checkSchema(rest.input);
  if (rest.source !== undefined && typeof rest.source !== 'function') name(rest.source, 'source');
  if (rest.idempotent !== undefined && typeof rest.idempotent !== 'function') trueOrFalse(rest.idempotent);
  const limits = parseLimits({ pace, concurrency }, `defineTask('${type}')`);
  const child = parseRunIn({ runIn, module, memory } as RunInOptions, what);
  const isLimited = Object.keys(limits).length > 0;
  if (isLimited && (typeof rest.source === 'function' || type === '*')) {
    throw new InvalidInputError(
      `defineTask('${type}') cannot limit its source, because its tasks have several. Name the sources in \`sources\` of openHoldfast.`,
    );
  }
  // A preset is known by its identity.
  const said = retry === undefined ? undefined : namedBy(retry as Policy) ? (retry as Policy) : readPolicy(retry);
  return Object.freeze({
    ...rest,
    type,
    ...(isLimited && { limits }),
    ...(child && { child }),
    ...(batching && {
      batching,
      run: (input: Input, task: RunningTask) => runAlone(batching, input, task) as Promise<Result>,
    }),
    // A copy of a policy with changed options still has the old version, so it is read anew.
    policy: said === undefined ? presetFor(type) : policyOver(said, standard),
    ...(said !== undefined && { retry: said }),
    queue: name(queue, 'queue'),
    priority: wholeNumber(priority, 'priority', 0, HIGHEST_PRIORITY),
  });
}

function checkVersion(type: string, version: number, migrate: unknown): void {
  if (type === '*') throw new InvalidInputError("defineTask('*') has no version: its tasks have several types.");
  if (version === 1 || migrate !== undefined) return;
  throw new InvalidInputError(
    `defineTask('${type}') has version ${version}, so it needs \`migrate: (payload, from) => …\`, which makes an input of this version from an older one.`,
  );
}

/** Reads a boolean option. */
export function trueOrFalse(value: unknown, what = 'idempotent'): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidInputError(`${what} must be true or false, got ${show(value)}.`);
}

/** The most capabilities of a worker. Every claim compares all of them. */
const MOST_NEEDS = 64;

/** @throws InvalidInputError for a capability that is neither a finite number, a text nor true or false. */
export function checkNeeds(needs: unknown, what = 'needs'): Needs {
  const known = Object.keys(Object(needs));
  if (known.length > MOST_NEEDS) {
    throw new InvalidInputError(`${what} may name at most ${MOST_NEEDS} capabilities, got ${known.length}.`);
  }
  if (Array.isArray(needs))
    throw new InvalidInputError(`${what} must be an object, such as { gpu: true }, got a list.`);
  refuseUnknown(needs, known, what);
  for (const [key, value] of Object.entries(needs as object)) {
    name(key, `A name in ${what}`);
    if (typeof value === 'string') name(value, `${what}.${key}`);
    if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) continue;
    throw new InvalidInputError(`${what}.${key} must be a number, a text or true or false, got ${show(value)}.`);
  }
  return needs as Needs;
}

/**
 * Reads an input by the definition's schema, if it has one. A refused input is a permanent failure of the task, `validation`.
 * Returns a promise only if the schema does.
 */
export function parseInput(definition: AnyTask, input: Json | undefined): unknown {
  if (!definition.input) return input;
  const result = definition.input['~standard'].validate(input);
  return isThenable(result) ? result.then((later) => accepted(definition, later)) : accepted(definition, result);
}

export function isThenable<T>(value: T | PromiseLike<T>): value is PromiseLike<T> {
  return typeof (value as PromiseLike<T> | null | undefined)?.then === 'function';
}

function accepted(definition: AnyTask, result: StandardSchemaV1.Result<unknown>): unknown {
  if (!result.issues) return result.value;
  const issues = result.issues.slice(0, 5).map(({ message, path }) => {
    const at = (path ?? []).map((part) => String(typeof part === 'object' ? part.key : part)).join('.');
    return at === '' ? message : `${at}: ${message}`;
  });
  throw new Failed(`The input of ${definition.type} is refused: ${issues.join('; ')}`, {
    kind: 'permanent',
    reason: 'validation',
  });
}

function checkSchema(input: unknown): void {
  const standard = Object(input)['~standard'] as Partial<StandardSchemaV1['~standard']> | undefined;
  if (typeof standard?.validate === 'function') return;
  throw new InvalidInputError(
    `input takes a Standard Schema, as zod, valibot and arktype make it, got ${show(input)}.`,
  );
}
