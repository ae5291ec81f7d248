import { expect, test } from 'vitest';
import { defineTask, Failed } from '../../src/index.ts';
import type { HappenedEvent } from '../../src/store/store.ts';
import { useKits } from '../worker/scene.ts';

const open = useKits();

function taskOf(event: HappenedEvent): number {
  if ('change' in event) throw new Error('It is no event of a task.');
  return event.task;
}

test('new events are read once each, also if many are of one millisecond', async () => {
  const work = defineTask('work', {
    retry: { maxAttempts: 1 },
    run() {
      throw new Failed('It failed.', { reason: 'net.timeout', kind: 'transient' });
    },
  });
  const kit = await open({ tasks: [work], worker: { concurrency: 100 } });
  const news = kit.holdfast.administration.follow('type:work');
  expect(await news.next()).toEqual([]);
  const count = 1_200;
  await kit.holdfast.enqueueAll(work, Array<null>(count).fill(null));
  await kit.drain();
  const seen = new Set((await news.next()).map(taskOf));
  expect(seen.size).toBe(count);
  expect(await news.next()).toEqual([]);

  const { events, searchedTo } = await kit.holdfast.administration.events({ filter: 'state:dead', limit: 2_000 });
  expect(searchedTo).toBeUndefined();
  expect(new Set(events.map(taskOf)).size).toBe(count);
  const [newest] = (await kit.holdfast.administration.events({ limit: 1 })).events;
  await kit.advance('1m');
  await kit.holdfast.retry(taskOf(newest as HappenedEvent));
  expect(await news.next()).toMatchObject([
    { task: taskOf(newest as HappenedEvent), entry: { kind: 'action', verb: 'retry' } },
  ]);
  expect((await kit.holdfast.administration.events({ filter: 'until:30s', limit: 5 })).events).toHaveLength(5);
});

test('events of sources are between those of tasks, and none is left out', async () => {
  const work = defineTask('work', {
    source: 'http:api',
    run() {
      throw Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });
    },
  });
  const kit = await open({ tasks: [work] });
  const { administration, sources } = kit.holdfast;
  const news = administration.follow('');
  await kit.holdfast.enqueueAll(work, Array<null>(20).fill(null));
  await kit.advance('1m');
  await sources.hold('http:other', { note: 'later' });
  await kit.holdfast.pauseQueue('mail');

  const heard = await news.next();
  expect(await news.next()).toEqual([]);
  expect(heard.map(({ at }) => at)).toEqual(heard.map(({ at }) => at).sort((a, b) => a - b));
  const changes = heard.flatMap((event) => ('change' in event ? [event.change] : []));
  expect(changes[0]).toMatchObject({ name: 'http:api', to: 'down', reason: 'net.refused' });
  expect(changes.slice(-2)).toMatchObject([{ name: 'http:other', change: 'hold' }, { name: 'mail' }]);

  const all = (await administration.events({ limit: 1_000 })).events;
  expect(new Set(all.map(({ id }) => id))).toEqual(new Set(heard.map(({ id }) => id)));
  const ids = async (filter: string, limit = 1_000) =>
    (await administration.events({ filter, limit })).events.map((event) =>
      'change' in event ? event.change.name : '',
    );
  expect(await ids('source:http:other')).toEqual(['http:other']);
  expect(await ids('', 1)).toEqual(['mail']);
  expect(await ids('-source:http:*')).toEqual(['mail']);
  expect(await ids('until:1h')).toEqual([]);
  const refused = await ids('reason:net.refused');
  expect(refused).toContain('http:api');
  expect(refused).toContain('');
  expect(new Set(await ids('type:work'))).toEqual(new Set(['']));
});
