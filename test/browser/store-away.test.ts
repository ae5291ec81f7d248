import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { type Cluster, startCluster } from '../postgres/cluster.mjs';
import { useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

let cluster: Cluster;
let dashboard: RunningDashboard;

// A server of this file's own. A killed server loses nothing without fsync.
beforeAll(async () => {
  cluster = await startCluster({ fsync: false });
  await enqueue('before.it');
  dashboard = await startDashboard(cluster.url());
});

afterAll(async () => {
  await dashboard?.stop();
  await cluster?.stop();
});

const openPage = useBrowser();

async function enqueue(type: string): Promise<void> {
  const holdfast = await openHoldfast({ store: postgres(cluster.url()) });
  await holdfast.enqueue(type, null);
  await holdfast.close();
}

test('a page says that the server of the store is away, keeps what it shows, and goes on by itself', async () => {
  const { page } = await openPage(dashboard.options);
  await page.goto(`${dashboard.url}tasks`);
  await page.locator('tbody tr', { hasText: 'before.it' }).waitFor();
  await page.locator('.live-words', { hasText: 'Live' }).waitFor();

  await cluster.kill();
  await page.locator('.notice', { hasText: 'does not answer' }).waitFor();
  await page.locator('.live-words', { hasText: 'No answer' }).waitFor();
  expect(await page.locator('tbody tr', { hasText: 'before.it' }).count()).toBe(1);
  // The store's own calls give up after half a minute, and say why.
  await page.locator('.problem', { hasText: 'Cannot connect' }).waitFor({ timeout: 80_000 });

  await cluster.start();
  await enqueue('after.it');
  await page.locator('tbody tr', { hasText: 'after.it' }).waitFor({ timeout: 60_000 });
  await page.locator('.live-words', { hasText: 'Live' }).waitFor();
  await page.locator('.notice').waitFor({ state: 'detached' });
}, 200_000);
