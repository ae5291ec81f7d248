import { InvalidInputError } from '../errors.ts';
import type { Enqueuer, NewTask, Receipt } from '../store/store.ts';
import type { DefinitionOf } from '../worker/define-task.ts';
import type { EnqueueOptions, FollowUp, GroupOptions, GroupTasks, OptionsOfEach } from './enqueue.ts';

/** A Database of better-sqlite3 or a DatabaseSync of node:sqlite: the part of their types that is needed here. */
export interface SqliteHandle {
  prepare(text: string): unknown;
  exec(text: string): unknown;
}

/**
 * A connection to PostgreSQL in a transaction of the caller's: a client of pg, or the transaction that Drizzle, Kysely, Knex,
 * Prisma or postgres.js give to their callbacks.
 */
export type PostgresHandle =
  | { query(...args: never[]): unknown }
  | { execute(...args: never[]): unknown }
  | { executeQuery(...args: never[]): unknown }
  | { raw(...args: never[]): unknown }
  | { $queryRawUnsafe(...args: never[]): unknown }
  | { unsafe(...args: never[]): unknown };

/** Enqueues on a handle of the caller. On SQLite it returns a receipt; on PostgreSQL a promise of one. */
export interface Within<Answer, Answers, GroupAnswer> {
  /**
   * Records a task on this handle, as `enqueue` does: inside its transaction if one is open, so that the task exists exactly if
   * that transaction commits; otherwise in a transaction of its own.
   * @throws the errors of `enqueue`; InvalidInputError if the schema of the input returns a promise, because a transaction cannot
   * wait for it; StoreError, retryable, if somebody else is writing: begin with BEGIN IMMEDIATE to wait for them first. After an
   * error, nothing of this call is in the transaction, and the caller can continue with it.
   */
  enqueue<Given>(task: DefinitionOf<Given> | string, input: NoInfer<Given>, options?: EnqueueOptions): Answer;
  /** The same for many tasks of a type, as `enqueueAll` does: all of them, or none. */
  enqueueAll<Given>(
    task: DefinitionOf<Given>,
    inputs: readonly NoInfer<Given>[],
    options?: OptionsOfEach<Given>,
  ): Answers;
  enqueueAll<Given>(task: string, inputs: readonly Given[], options?: OptionsOfEach<Given>): Answers;
  /** The same for a group of tasks and its follow-up, as `enqueueGroup` does. */
  enqueueGroup<Given, Next>(
    task: DefinitionOf<Given> | string,
    inputs: readonly NoInfer<Given>[],
    group: GroupOptions<NoInfer<Given>, Next>,
  ): GroupAnswer;
  enqueueGroup<Inputs extends readonly unknown[], Next>(tasks: GroupTasks<Inputs>, group: FollowUp<Next>): GroupAnswer;
}

/** The receipts of tasks, at once where the store answers at once. */
export function recordWithin(
  enqueuer: Enqueuer,
  made: readonly NewTask[] | Promise<readonly NewTask[]>,
  what: string,
): readonly Receipt[] | Promise<readonly Receipt[]> {
  if (enqueuer.waits) return recordLater(enqueuer, made);
  if (!(made instanceof Promise)) return enqueuer.enqueue(made);
  // Its result is not used, so a rejection must not end the process.
  made.catch(() => {});
  throw new InvalidInputError(
    `The schema of ${what} is asynchronous; inside a transaction it must be synchronous. Nothing was enqueued. ` +
      'Do the asynchronous checks before the transaction.',
  );
}

async function recordLater(
  enqueuer: Enqueuer & { readonly waits: true },
  made: readonly NewTask[] | Promise<readonly NewTask[]>,
): Promise<readonly Receipt[]> {
  return enqueuer.enqueue(await made);
}
