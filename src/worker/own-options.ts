import type { ReadOptions } from '../failure/policy.ts';
import type { TraceHeaders } from '../telemetry/tracing.ts';

/** What a task has of its own: options of a policy, the version of its input if that is not 1, and the trace of its enqueue. */
export interface OwnOptions {
  readonly retry?: ReadOptions;
  readonly inputVersion?: number;
  readonly trace?: TraceHeaders;
}

/** As text for the store, in its column `policy`. Undefined if there is nothing to store. */
export function ownText({ retry, inputVersion, trace }: OwnOptions): string | undefined {
  if (retry === undefined && inputVersion === undefined && trace === undefined) return undefined;
  return JSON.stringify({ ...retry, ...(inputVersion !== undefined && { inputVersion }), ...(trace && { trace }) });
}

/** The stored text as it was given. */
export function readOwn(stored: object): OwnOptions {
  const { inputVersion, trace, ...retry } = stored as ReadOptions & Omit<OwnOptions, 'retry'>;
  return {
    ...(Object.keys(retry).length > 0 && { retry }),
    ...(typeof inputVersion === 'number' && { inputVersion }),
    ...(typeof trace === 'object' && trace !== null && { trace }),
  };
}

/** The version of a task's input, from its stored text. */
export function inputVersionOf(text: string | undefined): number {
  return ownOf(text).inputVersion ?? 1;
}

/** The trace of a task's enqueue, from its stored text. */
export function traceOf(text: string | undefined): TraceHeaders | undefined {
  return ownOf(text).trace;
}

/** The stored text with the trace of an enqueue. */
export function withTrace(text: string | undefined, trace: TraceHeaders): string | undefined {
  return Object.keys(trace).length === 0 ? text : ownText({ ...ownOf(text), trace });
}

/** A text that cannot be read says nothing. */
function ownOf(text: string | undefined): OwnOptions {
  if (text === undefined) return {};
  try {
    return readOwn(JSON.parse(text) as object);
  } catch {
    return {};
  }
}
