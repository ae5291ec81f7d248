import type { LogLevel } from '../../log.ts';
import type { Json } from '../../task.ts';
import type { PackedError } from './thrown.ts';

/** What a worker sends to a child process. */
export type ToChild =
  | {
      readonly kind: 'run';
      /** The address of the module that exports the definition of this type. */
      readonly module: string;
      readonly type: string;
      readonly input: Json;
      /** The fields of the `RunningTask` that are data, and the names of its functions. */
      readonly fields: Readonly<Record<string, unknown>>;
      readonly functions: readonly string[];
    }
  | { readonly kind: 'abort'; readonly reason: PackedError }
  | { readonly kind: 'returned'; readonly call: number; readonly value: unknown; readonly checkpoint: Json | undefined }
  | { readonly kind: 'threw'; readonly call: number; readonly thrown: PackedError };

/** What a child process sends to its worker. */
export type ToWorker =
  /** A call of a function of the `RunningTask`. */
  | { readonly kind: 'call'; readonly call: number; readonly name: string; readonly args: readonly unknown[] }
  | { readonly kind: 'log'; readonly level: LogLevel; readonly fields: object; readonly message: string }
  /** The module is loaded, so an end without an answer is the handler's. */
  | { readonly kind: 'loaded' }
  /** It has aborted the signal of the handler, so its event loop is not blocked. */
  | { readonly kind: 'aborted' }
  | Answer;

/** How the handler ended. It is the last message of a child. */
export type Answer =
  /** `result` is JSON. */
  | { readonly kind: 'succeeded'; readonly result: string | undefined }
  /** The handler succeeded, and its result cannot be written as JSON. */
  | { readonly kind: 'result_refused'; readonly thrown: PackedError }
  | { readonly kind: 'failed'; readonly thrown: PackedError }
  /** The handler was not called, because its module could not be loaded. */
  | { readonly kind: 'not_loaded'; readonly thrown: PackedError };
