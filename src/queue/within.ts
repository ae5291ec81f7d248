import { InvalidInputError } from '../errors.ts';
import type { Enqueuer, NewTask, Receipt } from '../store/store.ts';
import type { TaskDefinition } from '../worker/define-task.ts';
import type { EnqueueOptions } from './enqueue.ts';

/** A Database of better-sqlite3, as far as its type matters here. */
export interface SqliteHandle {
  prepare(text: string): unknown;
  exec(text: string): unknown;
  readonly inTransaction: boolean;
}

/**
 * A connection to PostgreSQL in a transaction of the caller's: a client of pg, or the transaction that Drizzle, Kysely, Knex,
 * Prisma or postgres.js hand out.
 */
export type PostgresHandle =
  | { query(...args: never[]): unknown }
  | { execute(...args: never[]): unknown }
  | { executeQuery(...args: never[]): unknown }
  | { raw(...args: never[]): unknown }
  | { $queryRawUnsafe(...args: never[]): unknown }
  | { unsafe(...args: never[]): unknown };

/** Enqueues on a handle of the caller's. On SQLite the answer is a receipt, at once; on PostgreSQL the promise of one. */
export interface Within<Answer> {
  /**
   * Records a task on that handle, as `enqueue` does: inside its transaction if one is open, so that the task exists exactly if
   * that one commits, else in a transaction of its own. Workers hear of it at the commit.
   * @throws what `enqueue` throws; InvalidInputError for an input whose schema answers later, which no transaction can wait for;
   * StoreError, retryable, where somebody else is writing: begin with BEGIN IMMEDIATE, so that the wait comes first. Whatever it
   * throws, nothing of this call is left in the transaction, which is still the caller's to go on with.
   */
  enqueue<Input>(task: TaskDefinition<Input, unknown> | string, input: Input, options?: EnqueueOptions): Answer;
}

/** The receipt of one task, at once where the store answers at once. */
export function recordWithin(
  enqueuer: Enqueuer,
  made: NewTask | Promise<NewTask>,
  type: string,
): Receipt | Promise<Receipt> {
  if (enqueuer.waits) return recordLater(enqueuer, made);
  if (!(made instanceof Promise)) return enqueuer.enqueue([made])[0] as Receipt;
  // Its result is not used, so a rejection must not end the process.
  made.catch(() => {});
  throw new InvalidInputError(
    `The schema of '${type}' is asynchronous; inside a transaction it must be synchronous. Nothing was enqueued. ` +
      'Do the asynchronous checks before the transaction.',
  );
}

async function recordLater(
  enqueuer: Enqueuer & { readonly waits: true },
  made: NewTask | Promise<NewTask>,
): Promise<Receipt> {
  const [receipt] = await enqueuer.enqueue([await made]);
  return receipt as Receipt;
}
