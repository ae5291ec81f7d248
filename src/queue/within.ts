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

/** Enqueues on a handle of the caller's. On SQLite the answer is a receipt, at once. */
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

/** The receipt of one task that is ready to be recorded. */
export function recordAtOnce(enqueuer: Enqueuer, made: NewTask | Promise<NewTask>, type: string): Receipt {
  if (!(made instanceof Promise)) return enqueuer.enqueue([made])[0] as Receipt;
  // Whatever it comes to, nobody waits for it.
  made.catch(() => {});
  throw new InvalidInputError(
    `The schema of '${type}' answers with a promise, and no transaction can wait for it, so nothing was enqueued. ` +
      'Check what takes time before the transaction, and give the type a schema that answers at once.',
  );
}
