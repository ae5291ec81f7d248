import type { Claimed } from '../store/store.ts';
import type { WorkerEvent } from './events.ts';

/** The trace of an enqueue, as W3C headers: `traceparent` and perhaps `tracestate`. It is stored with the task. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** What is told of each enqueue and execution. `openTelemetry(api)` makes one. It must not throw. */
export interface Telemetry {
  /** Tasks of one call are about to be recorded. `ended` is called once, with the error if they were not. */
  sending(tasks: readonly { readonly type: string; readonly queue: string }[]): {
    readonly headers: TraceHeaders;
    ended(error?: unknown): void;
  };
  /** Each event of a worker. `headers` are those with which the task was recorded. */
  event(event: WorkerEvent, worker: string, headers: TraceHeaders | undefined): void;
  /** Calls a handler, so that what it does belongs to its execution. */
  within<Returned>(claimed: Claimed, call: () => Returned): Returned;
}
