import { expect, onTestFinished, test, vi } from 'vitest';
import { defineTask } from '../../src/worker/define-task.ts';
import { useKits } from '../worker/scene.ts';
import { callsOf, ORIGIN } from './calls.ts';

const open = useKits();
const work = defineTask('work', { run() {} });

test('open pages are told that something changed, and one loop looks at the store for all of them', async () => {
  const kit = await open({ tasks: [work] });
  let looks = 0;
  const { totals } = kit.holdfast.store.records;
  Object.assign(kit.holdfast.store.records, {
    totals() {
      looks += 1;
      return totals.call(kit.holdfast.store.records);
    },
  });
  const { dashboard } = callsOf(kit.holdfast);
  const readers = await Promise.all(
    [1, 2, 3].map(async () => {
      const { headers, body } = await dashboard.fetch(new Request(`${ORIGIN}/api/v1/events`));
      expect(headers.get('content-type')).toBe('text/event-stream');
      return (body as ReadableStream<Uint8Array>).getReader();
    }),
  );
  const next = async (reader: (typeof readers)[number], wanted: string) => {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) throw new Error('The stream has ended.');
      if (new TextDecoder().decode(value).includes(wanted)) return;
    }
  };
  await expect.poll(() => looks).toBe(1);
  await kit.holdfast.enqueue(work, null, { delay: '1h' });
  await Promise.all(readers.map((reader) => next(reader, 'event: tasks')));
  expect(looks).toBe(2);
  await kit.holdfast.sources.hold('work');
  await Promise.all(readers.map((reader) => next(reader, 'event: sources')));
  const [first, ...others] = readers;
  await Promise.all(others.map((reader) => reader.cancel()));
  await dashboard.close();
  expect(await first?.read()).toEqual({ done: true, value: undefined });
});

test('a question for only the headers of the live view opens none', async () => {
  const kit = await open({ tasks: [work] });
  const { dashboard } = callsOf(kit.holdfast);
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] });
  onTestFinished(() => {
    vi.useRealTimers();
  });
  const { status, headers } = await dashboard.fetch(new Request(`${ORIGIN}/api/v1/events`, { method: 'HEAD' }));
  expect([status, headers.get('content-type')]).toEqual([200, 'text/event-stream']);
  expect(vi.getTimerCount()).toBe(0);
  const { body } = await dashboard.fetch(new Request(`${ORIGIN}/api/v1/events`));
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  await body?.cancel();
  expect(vi.getTimerCount()).toBe(0);
});

test('pages are told when the store does not answer, and when it does again', async () => {
  const kit = await open({ tasks: [work] });
  const { records } = kit.holdfast.store;
  const { totals } = records;
  let isAway = true;
  Object.assign(records, { totals: () => (isAway ? Promise.reject(new Error('refused')) : totals.call(records)) });
  const { dashboard } = callsOf(kit.holdfast);
  const follow = async () => {
    const { body } = await dashboard.fetch(new Request(`${ORIGIN}/api/v1/events`));
    return (body as ReadableStream<Uint8Array>).getReader();
  };
  const next = async (reader: Awaited<ReturnType<typeof follow>>) =>
    new TextDecoder().decode((await reader.read()).value);
  const first = await follow();
  expect([await next(first), await next(first)]).toEqual([
    expect.stringContaining('retry'),
    'event: away\ndata: {}\n\n',
  ]);
  const second = await follow();
  expect([await next(second), await next(second)]).toEqual([
    expect.stringContaining('retry'),
    'event: away\ndata: {}\n\n',
  ]);
  isAway = false;
  expect([await next(first), await next(second)]).toEqual(Array(2).fill('event: back\ndata: {}\n\n'));
  await dashboard.close();
});
