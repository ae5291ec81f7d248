import { afterEach, expect, test } from 'vitest';
import { defineTask, type ManualClaim, type OpenTelemetryApi, openTelemetry } from '../../src/index.ts';
import { useKits } from '../worker/scene.ts';

interface ReadSpan {
  readonly name: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly status: { readonly code: number };
  readonly events: readonly { readonly name: string }[];
  readonly links: readonly { readonly context: { readonly traceId: string; readonly spanId: string } }[];
  readonly parentSpanContext?: { readonly spanId: string };
  spanContext(): { readonly traceId: string; readonly spanId: string };
}

/** The packages are named in variables: their types are no part of ours. */
const load = (name: string) => import(/* @vite-ignore */ `@opentelemetry/${name}`);

const open = useKits();
const endings: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of endings.splice(0)) await end();
});

/** The real SDK, with exporters in memory, as a program registers it. */
async function registered() {
  const [api, { AsyncLocalStorageContextManager }, traces, metrics] = await Promise.all(
    ['api', 'context-async-hooks', 'sdk-trace-base', 'sdk-metrics'].map(load),
  );
  const spans = new traces.InMemorySpanExporter();
  const provider = new traces.BasicTracerProvider({ spanProcessors: [new traces.SimpleSpanProcessor(spans)] });
  const exporter = new metrics.InMemoryMetricExporter(0);
  const reader = new metrics.PeriodicExportingMetricReader({ exporter, exportIntervalMillis: 3_600_000 });
  const meters = new metrics.MeterProvider({ readers: [reader] });
  const { W3CTraceContextPropagator } = await load('core');
  api.context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  api.propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  api.trace.setGlobalTracerProvider(provider);
  api.metrics.setGlobalMeterProvider(meters);
  endings.push(() => meters.shutdown());
  endings.push(() => {
    for (const part of ['context', 'propagation', 'trace', 'metrics']) api[part].disable();
  });
  const points = async (): Promise<Record<string, readonly [Record<string, unknown>, unknown][]>> => {
    await meters.forceFlush();
    const all = exporter.getMetrics().at(-1)?.scopeMetrics[0]?.metrics ?? [];
    return Object.fromEntries(
      all.map((metric: { descriptor: { name: string }; dataPoints: { attributes: object; value: unknown }[] }) => [
        metric.descriptor.name,
        metric.dataPoints.map(({ attributes, value }) => [attributes, value]),
      ]),
    );
  };
  return { api: api as OpenTelemetryApi & typeof api, spans: () => spans.getFinishedSpans() as ReadSpan[], points };
}

test('an enqueue and its executions are spans of the messaging conventions, linked across processes', async () => {
  const { api, spans, points } = await registered();
  const inside: unknown[] = [];
  const work = defineTask('work', {
    queue: 'mail',
    retry: { maxAttempts: 3, backoff: { fixed: '2s' }, jitter: 'none' },
    async run(_: unknown, { attempt }) {
      await undefined;
      api.trace.getTracer('app').startSpan('inside', {}, api.context.active()).end();
      inside.push(api.trace.getSpan(api.context.active())?.spanContext().spanId);
      if (attempt === 1) throw Object.assign(new Error('busy'), { code: 'EBUSY' });
    },
  });
  const kit = await open({ tasks: [work], telemetry: openTelemetry(api) });
  const caller = api.trace.getTracer('app').startSpan('caller');
  const { id } = await api.context.with(api.trace.setSpan(api.context.active(), caller), () =>
    kit.holdfast.enqueue(work, null, { retry: { maxAttempts: 2 } }),
  );
  await kit.advance('10s');

  const [send, ...others] = spans();
  const [first, second] = others.filter(({ name }) => name === 'process mail');
  expect(send).toMatchObject({
    name: 'send mail',
    kind: api.SpanKind.PRODUCER,
    parentSpanContext: { spanId: caller.spanContext().spanId },
    attributes: { 'messaging.system': 'holdfast', 'messaging.destination.name': 'mail', 'holdfast.task.type': 'work' },
  });
  expect(first).toMatchObject({
    kind: api.SpanKind.CONSUMER,
    attributes: {
      'messaging.operation.type': 'process',
      'messaging.message.id': String(id),
      'holdfast.attempt.number': 1,
      'holdfast.attempt.max': 2,
      'error.type': 'fs.locked',
      'holdfast.outcome': 'failure',
      'holdfast.retry.delay': 2,
    },
    status: { code: api.SpanStatusCode.ERROR },
    events: [{ name: 'exception' }],
  });
  expect(second).toMatchObject({ attributes: { 'holdfast.attempt.number': 2, 'holdfast.task.state': 'succeeded' } });
  for (const span of [first, second]) {
    expect(span?.links.map(({ context }) => context.spanId)).toEqual([send?.spanContext().spanId]);
    expect(span?.links[0]?.context.traceId).toBe(caller.spanContext().traceId);
    expect(span?.spanContext().traceId).not.toBe(caller.spanContext().traceId);
  }
  expect(inside).toEqual([first?.spanContext().spanId, second?.spanContext().spanId]);
  const { retry, trace } = await kit.holdfast.get(id);
  expect(retry).toEqual({ maxAttempts: 2 });
  expect(trace?.traceparent).toContain(send?.spanContext().spanId);

  const measured = await points();
  expect(measured['messaging.client.sent.messages']).toEqual([
    [expect.objectContaining({ 'messaging.operation.name': 'send' }), 1],
  ]);
  expect(measured['messaging.client.consumed.messages']).toEqual([[expect.anything(), 2]]);
  expect(measured['messaging.process.duration']?.map(([attributes]) => attributes['error.type'])).toEqual([
    'fs.locked',
    undefined,
  ]);
  expect(measured['holdfast.task.outcomes']).toEqual([
    [expect.objectContaining({ 'holdfast.outcome': 'succeeded' }), 1],
  ]);
});

test('a claim by hand is a span that is linked to its enqueue, however it ends', async () => {
  const { api, spans, points } = await registered();
  const kit = await open({ tasks: [], telemetry: openTelemetry(api) });
  const inputs = ['done', 'failed', 'lost', 'lost in progress', 'handed back'];
  const enqueued = await kit.holdfast.enqueueAll('by hand', inputs);
  const [done, failed, lost, lostInProgress, handedBack] = await Promise.all(
    enqueued.map(async ({ id }) => (await kit.holdfast.claim({ id, name: 'hand', leaseFor: '10s' })) as ManualClaim),
  );
  await done?.complete('result');
  await failed?.fail(Object.assign(new Error('busy'), { code: 'EBUSY' }));
  await handedBack?.[Symbol.asyncDispose]();
  for (const { id } of await kit.holdfast.workers()) await kit.holdfast.endWorker(id);
  expect(await lost?.renew()).toBe('lost');
  await lost?.complete('late');
  lostInProgress?.progress('half');
  await expect.poll(() => lostInProgress?.renew()).toBe('lost');

  const [send, ...claims] = spans();
  for (const { links, kind, attributes } of claims) {
    expect(links.map(({ context }) => context.spanId)).toEqual([send?.spanContext().spanId]);
    expect({ kind, queue: attributes['messaging.destination.name'] }).toEqual({
      kind: api.SpanKind.CONSUMER,
      queue: 'default',
    });
  }
  const ofTask = (claim: ManualClaim | undefined) =>
    claims
      .filter(({ attributes }) => attributes['messaging.message.id'] === String(claim?.id))
      .map(({ attributes }) => attributes);
  expect(ofTask(done)).toEqual([
    expect.objectContaining({ 'messaging.client.id': 'hand', 'holdfast.task.state': 'succeeded' }),
  ]);
  expect(ofTask(failed)).toEqual([
    expect.objectContaining({ 'error.type': 'fs.locked', 'holdfast.task.state': 'scheduled' }),
  ]);
  for (const claim of [lost, lostInProgress]) {
    expect(ofTask(claim)).toEqual([expect.objectContaining({ 'holdfast.lease.lost': true })]);
  }
  expect(ofTask(handedBack)).toEqual([expect.objectContaining({ 'holdfast.outcome': 'interruption' })]);
  const { 'messaging.client.consumed.messages': consumed } = await points();
  expect(consumed?.map(([, count]) => count)).toEqual([5]);
});

test('what a schedule enqueues, and a merged enqueue, is linked to the execution; a step without a task is no span', async () => {
  const { api, spans, points } = await registered();
  const report = defineTask('report', { run: async () => {} });
  const kit = await open({ tasks: [report], telemetry: openTelemetry(api) });
  await kit.holdfast.schedules.set('each minute', { task: report, cron: '* * * * *' });
  const started = api.trace.getTracer('app').startSpan('main');
  api.context.with(api.trace.setSpan(api.context.active(), started), () => {
    kit.holdfast.work();
    kit.holdfast.work();
  });
  await kit.advance('2m');
  const { id } = await kit.holdfast.schedules.run('each minute');
  await kit.advance('1s');
  const merge = (before: unknown) => before;
  await kit.holdfast.enqueue(report, null, {
    delay: '1s',
    unique: { key: 'one', while: 'waiting', onConflict: { merge } },
  });
  await kit.advance('10s');

  const sent = spans().filter(({ name }) => name === 'send default');
  expect(sent.map(({ attributes }) => attributes['holdfast.schedule'])).toEqual([
    'each minute',
    'each minute',
    undefined,
    undefined,
  ]);
  for (const span of sent.slice(0, 2)) expect(span.parentSpanContext).toBeUndefined();
  const worked = spans().filter(({ name }) => name === 'process default');
  expect(worked.flatMap(({ links }) => links.map(({ context }) => context.spanId))).toEqual(
    sent.map((span) => span.spanContext().spanId),
  );
  expect((await kit.holdfast.get(id)).trace?.traceparent).toContain(sent[2]?.spanContext().spanId);
  const { 'messaging.client.sent.messages': counts } = await points();
  expect(counts?.map(([, count]) => count)).toEqual([4]);
});

test('a telemetry that is none is refused, with what it should be', async () => {
  await expect(open({ telemetry: {} as never })).rejects.toThrow('telemetry takes openTelemetry(api)');
});
