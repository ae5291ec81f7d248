import type { Claimed } from '../store/store.ts';
import type { WorkerEvent } from './events.ts';

/** The trace of an enqueue, as W3C headers: `traceparent` and perhaps `tracestate`. It is stored with the task. */
export type TraceHeaders = Readonly<Record<string, string>>;

/** What is told of each enqueue and each execution, claims by hand included. `openTelemetry(api)` makes one. It must not throw. */
export interface Telemetry {
  /**
   * Tasks of one call, or of the schedule with this name, are about to be recorded. `ended` is called once, with the error if they were
   * not; it is not called if the schedule enqueued nothing, because another process was first or its task before has not ended.
   */
  sending(
    tasks: readonly { readonly type: string; readonly queue: string }[],
    schedule?: string,
  ): {
    readonly headers: TraceHeaders;
    ended(error?: unknown): void;
  };
  /** Each event of a worker. `headers` are those with which the task was recorded. */
  event(event: WorkerEvent, worker: string, headers: TraceHeaders | undefined): void;
  /** A claim by hand has ended: it was lost, unless it was settled before. */
  claimEnded(claimed: Claimed): void;
  /** Calls a handler, so that what it does belongs to its execution. */
  within<Returned>(claimed: Claimed, call: () => Returned): Returned;
}
