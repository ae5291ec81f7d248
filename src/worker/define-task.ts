import type { StandardSchemaV1 } from '@standard-schema/spec';
import type { DurationInput } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { definePolicy, type Policy, type PolicyOptions } from '../failure/policy.ts';
import { presetFor } from '../failure/presets.ts';
import { Failed } from '../failure/signals.ts';
import { type LimitOptions, parseLimits } from '../limits.ts';
import type { Logger } from '../log.ts';
import { name, refuseUnknown, wholeNumber } from '../options.ts';
import type { Limits } from '../pace.ts';
import { show } from '../show.ts';
import { HIGHEST_PRIORITY, type Json, type Needs } from '../task.ts';

/** What a handler is told about the execution that it is. */
export interface RunningTask {
  readonly id: number;
  readonly type: string;
  readonly queue: string;
  readonly source: string;
  readonly key?: string;
  /** Charged failures so far, plus one. */
  readonly attempt: number;
  /** Which start of a handler this is, of all rounds. A retry that charged nothing raises this one only. */
  readonly execution: number;
  readonly maxAttempts: number;
  /** An earlier execution of it took its worker down, or went down with it. */
  readonly recovered: boolean;
  readonly submittedAt: Date;
  readonly deadline?: Date;
  /** The message of the failure before this execution. */
  readonly lastError?: string;
  /** What this execution or an earlier one saved last. Undefined where nothing was saved. */
  readonly checkpoint: Json | undefined;
  /** Aborts on time-out, cancel, shutdown, or when the lease is lost. What is thrown after that is not judged. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /**
   * Saves one JSON value of at most 64 KiB, which later executions read as `checkpoint`: after a retry, a crash, a new round. It
   * resolves when the value is durable, and costs a commit.
   * @throws PayloadError for what is no JSON or too large; LeaseLostError where the lease is over: nothing was saved.
   */
  saveCheckpoint(value: unknown): Promise<void>;
  /** Tells that work goes on: the time limit counts anew from here. */
  heartbeat(): void;
  /**
   * Tells how many more calls the source takes until it counts anew, as RateLimit headers say. Where few are left, its tasks are spaced
   * so that they last. The last word of an execution counts; what is no number is ignored.
   */
  rateLimit(limit: { readonly remaining: number; readonly resetsIn: DurationInput }): void;
}

/** `pace` and `concurrency` limit the source, as long as it is the same for all tasks of the type. */
export interface TaskOptions<Input, Result> extends LimitOptions {
  /** The policy for its failures: a preset, or options laid over `standard`. Default: the preset of its name, else `standard`. */
  readonly retry?: Policy | PolicyOptions;
  /** Default `default`. */
  readonly queue?: string;
  /** 0 (default) to 4,095; higher goes first in a queue ordered by priority. */
  readonly priority?: number;
  readonly category?: string;
  readonly needs?: Needs;
  /** The failure domain that it touches, such as `imap:INBOX`. Default: the task's type. */
  readonly source?: string | ((input: Input) => string);
  /** Whether running it twice does no harm. Default true; `false` sends every ambiguous end to a person. */
  readonly idempotent?: boolean | ((input: Input) => boolean);
  /** Any Standard Schema (zod, valibot, arktype): checked when enqueued, and again before it runs. */
  readonly input?: StandardSchemaV1<unknown, Input>;
  /**
   * Does the work. Its end is that of the promise it returns: one that it neither returns nor awaits is not watched, and
   * if that rejects, it ends the process as it would without Holdfast.
   */
  run(input: Input, task: RunningTask): Result | Promise<Result>;
  /**
   * Says whether a source works, at no task's cost. Where a source was down, one task after the other is run to see whether it works
   * again; with this, each of them starts only if this does not throw and does not answer false. It may take as long as the
   * type's `timeout`. Not called for claims by hand.
   */
  health?(source: string, check: HealthCheck): unknown;
  /**
   * Clears up what a lost execution left behind, such as its processes, where the task ends with that loss (it was cancelled, or is
   * dead) and so no later execution will. Called once, after the task has ended, by the worker or claim that recovers it and has a
   * definition of its type, or `'*'`; what it throws is logged. Not called where the task was recovered, waited or needed a person,
   * and was cancelled, resolved or expired only then; nor where the process that recovered it is killed before it is done.
   */
  cleanUp?(input: Input, lost: LostExecution): void | Promise<void>;
}

/** One question whether a source works. */
export interface HealthCheck {
  /** Aborts on time-out, cancel, shutdown, or when the lease is lost. */
  readonly signal: AbortSignal;
}

/** An execution that was lost with its worker. */
export interface LostExecution {
  readonly id: number;
  readonly type: string;
  /** Which start of a handler it was. */
  readonly execution: number;
  readonly submittedAt: Date;
  /** What executions of the task saved last. */
  readonly checkpoint: Json | undefined;
  readonly log: Logger;
}

/** A type of task: its name, its policy, and what runs it. */
export interface TaskDefinition<Input, Result>
  extends Omit<TaskOptions<Input, Result>, 'retry' | 'queue' | 'priority' | 'pace' | 'concurrency'> {
  readonly type: string;
  /** The policy for its failures, as long as no configuration says otherwise. */
  readonly policy: Policy;
  /** What was said of it here; a configuration goes over it. */
  readonly retry?: Policy | PolicyOptions;
  readonly queue: string;
  readonly priority: number;
  /** Of its source, which is the same for all of its tasks. */
  readonly limits?: Limits;
}

// biome-ignore lint/suspicious/noExplicitAny: a list of definitions of different inputs has no narrower type
export type AnyTask = TaskDefinition<any, any>;

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
  'run',
  'health',
  'cleanUp',
];

/**
 * Defines a type of task. The type `'*'` runs whatever no other definition of the worker runs.
 * @throws InvalidInputError naming the option and value that is refused.
 */
// biome-ignore lint/suspicious/noExplicitAny: an input that nobody declared is the handler's to know
export function defineTask<Input = any, Result = unknown>(
  type: string,
  options: TaskOptions<Input, Result>,
): TaskDefinition<Input, Result> {
  name(type, 'The type of a task');
  refuseUnknown(options, OPTIONS, `defineTask('${type}')`);
  const { retry, queue = 'default', priority = 0, pace, concurrency, ...rest } = options;
  if (typeof rest.run !== 'function') {
    throw new InvalidInputError(`defineTask('${type}') needs a function \`run\`, got ${typeof rest.run}.`);
  }
  for (const option of ['health', 'cleanUp'] as const) {
    if (rest[option] === undefined || typeof rest[option] === 'function') continue;
    throw new InvalidInputError(`${option} must be a function, got ${show(rest[option])}.`);
  }
  if (rest.category !== undefined) name(rest.category, 'category');
  if (rest.needs !== undefined) checkNeeds(rest.needs);
  if (rest.input !== undefined) checkSchema(rest.input);
  if (rest.source !== undefined && typeof rest.source !== 'function') name(rest.source, 'source');
  if (rest.idempotent !== undefined && typeof rest.idempotent !== 'function') trueOrFalse(rest.idempotent);
  const limits = parseLimits({ pace, concurrency }, `defineTask('${type}')`);
  const isLimited = Object.keys(limits).length > 0;
  if (isLimited && (typeof rest.source === 'function' || type === '*')) {
    throw new InvalidInputError(
      `defineTask('${type}') cannot limit its source, because its tasks have several. Name the sources in \`sources\` of openHoldfast.`,
    );
  }
  return Object.freeze({
    ...rest,
    type,
    ...(isLimited && { limits }),
    // A policy that was spread and changed still carries its old version, so it is read anew.
    policy: retry === undefined ? presetFor(type) : definePolicy(retry),
    ...(retry !== undefined && { retry }),
    queue: name(queue, 'queue'),
    priority: wholeNumber(priority, 'priority', 0, HIGHEST_PRIORITY),
  });
}

/** @throws InvalidInputError for anything but what `defineTask` returned, or a copy of it. */
export function checkTask(task: unknown, what: string): AnyTask {
  const { run, type, policy } = (typeof task === 'object' && task !== null ? task : {}) as Partial<AnyTask>;
  if (typeof run === 'function' && typeof type === 'string' && typeof policy?.version === 'string') {
    return task as AnyTask;
  }
  throw new InvalidInputError(`${what} takes what defineTask returns, got ${show(task)}.`);
}

/** A yes or no, as somebody said it. */
export function trueOrFalse(value: unknown, what = 'idempotent'): boolean {
  if (typeof value === 'boolean') return value;
  throw new InvalidInputError(`${what} must be true or false, got ${show(value)}.`);
}

/** More would be no description of a machine, and every claim looks at them. */
const MOST_NEEDS = 64;

/** @throws InvalidInputError for a capability that is neither a finite number, a text nor true or false. */
export function checkNeeds(needs: unknown, what = 'needs'): Needs {
  const known = Object.keys(Object(needs));
  if (known.length > MOST_NEEDS) {
    throw new InvalidInputError(`${what} may name at most ${MOST_NEEDS} capabilities, got ${known.length}.`);
  }
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
 * Reads an input by the definition's schema, if it has one. A refusal is a permanent failure of the task, `validation`.
 * Answers a promise only where the schema does.
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
