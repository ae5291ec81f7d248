import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-login-'));
const store = join(folder, 'tasks.db');
let one: RunningDashboard;
let other: RunningDashboard;

beforeAll(async () => {
  const holdfast = await openHoldfast({ store: sqlite(store) });
  await holdfast.enqueue('report.render', { page: 1 });
  await holdfast.close();
  [one, other] = await Promise.all([startDashboard(store), startDashboard(store)]);
});

afterAll(async () => {
  await Promise.all([one?.stop(), other?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const openPage = useBrowser();
const shows = (page: Page, title: string) => page.locator('h1', { hasText: title }).waitFor();

test('a link lets a browser in, also after a reload, in another tab, and beside another dashboard', async () => {
  const { page, errors } = await openPage();
  await page.goto(one.link.replace('/?', '/tasks/1?'));
  await shows(page, 'report.render');
  // Neither the token nor the key is in the address, which people copy.
  expect(page.url()).toBe(`${one.url}tasks/1`);
  await page.reload();
  await shows(page, 'report.render');

  const tab = await page.context().newPage();
  await tab.goto(`${one.url}tasks`);
  await tab.locator('tbody tr', { hasText: 'report.render' }).waitFor();
  await tab.goto(other.link);
  await shows(tab, 'Overview');

  await page.reload();
  await page.getByRole('button', { name: 'Cancel' }).first().click();
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).last().click();
  await page.locator('.sign', { hasText: 'cancelled' }).first().waitFor();
  expect(errors).toEqual([]);
});

test('who was not let in is told what to do', async () => {
  const { page } = await openPage();
  const answer = await page.goto(one.url);
  expect([answer?.status(), await page.content()]).toEqual([401, expect.stringContaining('not let you in')]);
});
