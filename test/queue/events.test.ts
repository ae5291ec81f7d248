import { expect, test } from 'vitest';
import { defineTask, Failed } from '../../src/index.ts';
import { useKits } from '../worker/scene.ts';

const open = useKits();

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
  const seen = new Set((await news.next()).map(({ task }) => task));
  expect(seen.size).toBe(count);
  expect(await news.next()).toEqual([]);

  const { events, searchedTo } = await kit.holdfast.administration.events({ filter: 'state:dead', limit: 2_000 });
  expect(searchedTo).toBeUndefined();
  expect(new Set(events.map(({ task }) => task)).size).toBe(count);
  const [newest] = (await kit.holdfast.administration.events({ limit: 1 })).events;
  await kit.advance('1m');
  await kit.holdfast.retry(newest?.task as number);
  expect(await news.next()).toMatchObject([{ task: newest?.task, entry: { kind: 'action', verb: 'retry' } }]);
  expect((await kit.holdfast.administration.events({ filter: 'until:30s', limit: 5 })).events).toHaveLength(5);
});
