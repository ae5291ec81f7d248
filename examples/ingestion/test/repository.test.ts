import { expect, test } from 'vitest';
import { openScene } from './scene.js';

const REPOSITORY = 'octo/notes';

async function openRepository(titles: string[] | undefined = ['A', 'B', 'C', 'D', 'E']) {
  const scene = await openScene();
  const { kit, tasks, server, story } = scene;
  if (titles.length > 0) server.repositories[REPOSITORY] = titles;
  return {
    ...scene,
    async read() {
      const { id } = await kit.holdfast.enqueue(tasks.githubRepository, { repository: REPOSITORY });
      await kit.drain();
      return { id, ...(await story(id)) };
    },
  };
}

test('a repository is read page by page, and not at all while its ETag stays the same', async () => {
  const { server, documents, read } = await openRepository();
  expect(await read()).toMatchObject({ state: 'succeeded', result: { read: 5, unchanged: 0 } });
  expect(server.asked).toEqual([1, 2, 3].map((page) => `${REPOSITORY} ${page} 200`));
  expect(await read()).toMatchObject({ state: 'succeeded', result: { read: 0, unchanged: 5 } });
  expect(server.asked.slice(3)).toEqual([`${REPOSITORY} 1 304`]);
  server.repositories[REPOSITORY]?.push('F');
  expect(await read()).toMatchObject({ result: { read: 1, unchanged: 5 } });
  expect((await documents.of(`github:${REPOSITORY}`)).documents).toHaveLength(6);
});

test('a limit that names its end (429 with Retry-After, 403 with a reset) is obeyed in full, and charged to nobody', async () => {
  const { kit, server, read, story } = await openRepository();
  const reset = String(Math.round(kit.holdfast.now() / 1_000) + 1_800);
  server.trouble[REPOSITORY] = [
    {
      status: 403,
      message: 'API rate limit exceeded',
      headers: {
        'x-ratelimit-remaining': '0',
        'x-ratelimit-reset': reset,
        date: new Date(kit.holdfast.now()).toUTCString(),
      },
    },
    { status: 429, headers: { 'retry-after': '7200' } },
  ];
  const { id, ...first } = await read();
  expect(first).toMatchObject({ state: 'scheduled', attempts: 0, executions: 1 });
  await kit.advance('1799s');
  expect((await story(id)).executions).toBe(1);
  // Jitter adds at most 5 min.
  await kit.advance('301s');
  expect(await story(id)).toMatchObject({ state: 'scheduled', attempts: 0, executions: 2 });
  await kit.advance('2h5m');
  expect(await story(id)).toMatchObject({ state: 'succeeded', attempts: 0, executions: 3 });
});

test('a bare 429 waits at least 15 min less jitter; a 503 waits 5 min and its page is read again', async () => {
  const { kit, server, read, story } = await openRepository();
  server.trouble[REPOSITORY] = [{ status: 429 }, { status: 503 }];
  const { id } = await read();
  await kit.advance('674s');
  expect(await story(id)).toMatchObject({ state: 'scheduled', reason: 'http.429', attempts: 1, executions: 1 });
  await kit.advance('451s');
  expect(await story(id)).toMatchObject({ state: 'scheduled', reason: 'http.5xx', attempts: 2, executions: 2 });
  await kit.advance('1h');
  expect(await story(id)).toMatchObject({ state: 'succeeded', attempts: 2, executions: 3 });
});

test('a repository that is not there (404), or that the token may not read (403), is dead at once', async () => {
  const { server, read } = await openRepository([]);
  expect(await read()).toMatchObject({ state: 'dead', reason: 'http.404', executions: 1 });
  server.trouble[REPOSITORY] = [{ status: 403, message: 'Resource not accessible by personal access token' }];
  expect(await read()).toMatchObject({ state: 'dead', reason: 'auth.forbidden', executions: 1 });
});
