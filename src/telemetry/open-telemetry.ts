import type { Claimed, Lease } from '../store/store.ts';
import { hasEnded } from '../task.ts';
import type { Finished, WorkerEvent } from './events.ts';
import type { Telemetry, TraceHeaders } from './tracing.ts';

type Attributes = Record<string, string | number | boolean>;

/** A span, as far as it is used. */
interface Span {
  spanContext(): object;
  setAttributes(attributes: Attributes): unknown;
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(exception: { name: string; message: string }): void;
  end(): void;
}

/** The part of `@opentelemetry/api` that is used: pass the module itself. Holdfast does not import it. */
export interface OpenTelemetryApi {
  readonly trace: {
    getTracer(name: string, version?: string): { startSpan(name: string, options?: object, context?: never): object };
    setSpan(context: never, span: never): unknown;
    getSpanContext(context: never): object | undefined;
  };
  readonly context: { active(): unknown; with(context: never, call: () => unknown): unknown };
  readonly propagation: {
    inject(context: never, carrier: object): void;
    extract(context: never, carrier: unknown): unknown;
  };
  readonly metrics: {
    getMeter(name: string): {
      createCounter(name: string, options?: object): { add(value: number, attributes?: Attributes): void };
      createHistogram(name: string, options?: object): { record(value: number, attributes?: Attributes): void };
    };
  };
  readonly ROOT_CONTEXT: unknown;
  readonly SpanKind: { readonly PRODUCER: number; readonly CONSUMER: number };
  readonly SpanStatusCode: { readonly ERROR: number };
}

const SCOPE = 'holdfast';
const SYSTEM = 'holdfast';

const LEASE_LOST: Attributes = { 'holdfast.lease.lost': true };

/** The buckets of the messaging conventions, in seconds. */
const BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];

/**
 * Traces and metrics by the messaging conventions of OpenTelemetry: `openHoldfast({ telemetry: openTelemetry(api) })`, where `api` is
 * the module `@opentelemetry/api`. An enqueue is a span `send QUEUE`, also that of a schedule. Each execution, and each
 * claim by hand, is a span `process QUEUE` in a trace of its own that is linked to the enqueue, in any process. An SDK must be registered, or nothing is recorded.
 */
export function openTelemetry(api: OpenTelemetryApi): Telemetry {
  return new OpenTelemetry(api);
}

interface Running {
  readonly span: Span;
  readonly context: unknown;
}

class OpenTelemetry implements Telemetry {
  readonly #api: OpenTelemetryApi;
  readonly #tracer;
  readonly #sent;
  readonly #consumed;
  readonly #duration;
  readonly #outcomes;
  readonly #running = new Map<string, Running>();

  constructor(api: OpenTelemetryApi) {
    this.#api = api;
    this.#tracer = api.trace.getTracer(SCOPE);
    const meter = api.metrics.getMeter(SCOPE);
    this.#sent = meter.createCounter('messaging.client.sent.messages', { unit: '{message}' });
    this.#consumed = meter.createCounter('messaging.client.consumed.messages', { unit: '{message}' });
    const advice = { explicitBucketBoundaries: BUCKETS };
    this.#duration = meter.createHistogram('messaging.process.duration', { unit: 's', advice });
    this.#outcomes = meter.createCounter('holdfast.task.outcomes', { unit: '{task}' });
  }

  sending(tasks: readonly { readonly type: string; readonly queue: string }[], schedule?: string) {
    const { trace, context, propagation, SpanKind, SpanStatusCode } = this.#api;
    const queue = onlyOf(tasks.map((task) => task.queue));
    const type = onlyOf(tasks.map((task) => task.type));
    const attributes = { ...operation('send', queue), ...(type !== undefined && { 'holdfast.task.type': type }) };
    const span = this.#start(nameOf('send', queue), {
      kind: SpanKind.PRODUCER,
      // What is active while a schedule is due is only what its worker was started in.
      root: schedule !== undefined,
      attributes: {
        ...attributes,
        ...(tasks.length > 1 && { 'messaging.batch.message_count': tasks.length }),
        ...(schedule !== undefined && { 'holdfast.schedule': schedule }),
      },
    });
    const headers: Record<string, string> = {};
    propagation.inject(trace.setSpan(context.active() as never, span as never) as never, headers);
    return {
      headers,
      ended: (error?: unknown) => {
        const failed = error === undefined ? {} : { 'error.type': errorType(error) };
        if (error !== undefined) {
          span.setAttributes(failed);
          span.setStatus({
            code: SpanStatusCode.ERROR,
            message: error instanceof Error ? error.message : String(error),
          });
        }
        span.end();
        this.#sent.add(tasks.length, { ...attributes, ...failed });
      },
    };
  }

  event(event: WorkerEvent, worker: string, headers: TraceHeaders | undefined): void {
    if (event.kind === 'started') this.#begin(event.task, worker, event.policy.maxAttempts, headers);
    else if (event.kind === 'settled' || event.kind === 'stale') this.#end(event);
  }

  claimEnded({ lease }: Claimed): void {
    const key = keyOf(lease);
    const span = this.#running.get(key)?.span;
    this.#running.delete(key);
    span?.setAttributes(LEASE_LOST);
    span?.end();
  }

  within<Returned>({ lease }: Claimed, call: () => Returned): Returned {
    const running = this.#running.get(keyOf(lease));
    return running ? (this.#api.context.with(running.context as never, call) as Returned) : call();
  }

  #begin(claimed: Claimed, worker: string, maxAttempts: number, headers: TraceHeaders | undefined): void {
    const { trace, propagation, ROOT_CONTEXT, SpanKind } = this.#api;
    const { lease, type, queue, source, facts } = claimed;
    const sender = headers && trace.getSpanContext(propagation.extract(ROOT_CONTEXT as never, headers) as never);
    const attributes = {
      ...operation('process', queue),
      'messaging.message.id': String(lease.task),
      'messaging.client.id': worker,
      'holdfast.task.type': type,
      'holdfast.source': source,
      'holdfast.execution.number': lease.execution,
      'holdfast.attempt.number': facts.charged.reduce((sum, { count }) => sum + count, 0) + 1,
      'holdfast.attempt.max': maxAttempts,
    };
    const options = { kind: SpanKind.CONSUMER, attributes, root: true, links: sender ? [{ context: sender }] : [] };
    const span = this.#start(nameOf('process', queue), options);
    const context = trace.setSpan(ROOT_CONTEXT as never, span as never);
    this.#running.set(keyOf(lease), { span, context });
    this.#consumed.add(1, { ...operation('process', queue), 'holdfast.task.type': type });
  }

  #end(event: Finished): void {
    const { task, outcome } = event;
    const key = keyOf(task.lease);
    const running = this.#running.get(key);
    this.#running.delete(key);
    const attributes = { ...operation('process', task.queue), 'holdfast.task.type': task.type };
    const failure = outcome.kind === 'failure' ? outcome.failure : undefined;
    const failed = failure ? { 'error.type': failure.reason } : {};
    if (event.kind === 'settled') {
      const { state, ranFor } = event;
      if (running) this.#duration.record(ranFor / 1_000, { ...attributes, ...failed });
      if (hasEnded(state) || state === 'needs_manual')
        this.#outcomes.add(1, { ...attributes, 'holdfast.outcome': state });
    }
    if (!running) return;
    const { span } = running;
    span.setAttributes({ 'holdfast.outcome': outcome.kind, ...failed, ...decided(event) });
    if (failure) {
      span.recordException({ name: failure.name, message: failure.message });
      span.setStatus({ code: this.#api.SpanStatusCode.ERROR, message: failure.message });
    }
    span.end();
  }

  #start(name: string, options: object): Span {
    return this.#tracer.startSpan(name, options) as Span;
  }
}

function decided(event: Finished): Attributes {
  if (event.kind === 'stale') return LEASE_LOST;
  const { decision, state } = event;
  const { rule, policyVersion } = decision.because;
  return {
    'holdfast.task.state': state,
    'holdfast.rule.id': rule,
    'holdfast.policy.version': policyVersion,
    ...(decision.next === 'scheduled' && { 'holdfast.retry.delay': decision.after / 1_000 }),
  };
}

function operation(type: 'send' | 'process', queue: string | undefined): Attributes {
  return {
    'messaging.system': SYSTEM,
    'messaging.operation.name': type,
    'messaging.operation.type': type,
    ...(queue !== undefined && { 'messaging.destination.name': queue }),
  };
}

function nameOf(operation: string, queue: string | undefined): string {
  return queue === undefined ? operation : `${operation} ${queue}`;
}

/** The value that all have; undefined if they differ. */
function onlyOf(values: readonly string[]): string | undefined {
  return values.every((value) => value === values[0]) ? values[0] : undefined;
}

function errorType(error: unknown): string {
  const { code, name } = Object(error) as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === 'string' ? code : typeof name === 'string' ? name : '_OTHER';
}

function keyOf({ task, execution, token }: Lease): string {
  return `${task} ${execution} ${token}`;
}
