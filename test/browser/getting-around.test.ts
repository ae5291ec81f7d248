import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillStore } from './a-day.ts';
import { axeViolations, useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-around-'));
let dashboard: RunningDashboard;

beforeAll(async () => {
  const store = join(folder, 'day.db');
  await fillStore(store);
  dashboard = await startDashboard(store);
});

afterAll(async () => {
  await dashboard?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openPage = useBrowser();

async function open(path: string, width = 1_280) {
  const { page, errors } = await openPage({ ...dashboard.options, viewport: { width, height: 900 } });
  await page.goto(`${dashboard.url}${path}`);
  await page.locator('h1').waitFor();
  await expect.poll(() => page.locator('.loading').count()).toBe(0);
  return { page, errors };
}

/** axe finds nothing in either theme, and nothing is wider than the screen. */
async function isFine(page: Page): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await axeViolations(page), colorScheme).toEqual([]);
  }
  const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
  expect(over).toBe(0);
}

describe('Ctrl+K', () => {
  async function find(page: Page, text: string): Promise<void> {
    await page.keyboard.press('Control+k');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type(text);
  }
  const option = (page: Page, text: string) => page.getByRole('option').filter({ hasText: text });

  test('goes to a page, a task, a source, a failure and a filter', async () => {
    const { page, errors } = await open('');
    await find(page, 'failu');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Failures');

    await find(page, '#3');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe('/tasks/3');

    await find(page, 'http:hooks.f');
    await option(page, 'http:hooks.foo.example').first().waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toContain('http:hooks.foo.example');

    await find(page, 'status code 503');
    await option(page, 'Request failed with status code 503').first().click();
    await expect.poll(() => page.locator('h1').textContent()).toContain('503');

    await find(page, 'state:dead type:payout.send');
    await page.keyboard.press('Enter');
    await expect.poll(() => new URL(page.url()).searchParams.get('filter')).toBe('state:dead type:payout.send');
    expect(errors).toEqual([]);
  });

  test('does what keys do on the open page, also from a field', async () => {
    const { page } = await open('tasks?filter=state:held');
    await page.locator('tbody a').first().click();
    await page.locator('.back').waitFor();
    await find(page, 'theme');
    await isFine(page);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.evaluate('document.documentElement.dataset.theme')).toBe('light');
    await page.keyboard.press('/');
    await find(page, 'follow');
    await option(page, 'Pause or follow changes').waitFor();
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.live-words').textContent()).toBe('Paused');
  });

  test('fits a narrow screen, and closes by Escape', async () => {
    const { page } = await open('', 360);
    await find(page, 'e');
    await isFine(page);
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
});

describe('saved views', () => {
  test('are lists under a name, in the navigation and in Ctrl+K, until they are removed', async () => {
    const { page } = await open('tasks?filter=state:dead%20type:payout.send&columns=state,reason&task=1');
    await page.getByText('Views', { exact: true }).click();
    await page.getByLabel('Save this list as').fill('broken payouts <b>');
    await page.keyboard.press('Enter');
    await isFine(page);
    const saved = page
      .getByRole('navigation', { name: 'Pages', exact: true })
      .getByRole('link', { name: 'broken payouts <b>' });
    expect(new URL(await saved.evaluate((link) => (link as unknown as { href: string }).href)).search).toBe(
      '?filter=state%3Adead+type%3Apayout.send&columns=state%2Creason',
    );
    await page.goto(`${dashboard.url}workers`);
    await saved.click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(6);
    await page.keyboard.press('g');
    await page.keyboard.press('o');
    await page.keyboard.press('Control+k');
    await page.keyboard.type('broken pay');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(6);
    await page.getByText('Views', { exact: true }).click();
    await page.getByRole('button', { name: 'Remove the view broken payouts <b>' }).click();
    await expect.poll(() => saved.count()).toBe(0);
  });

  test('that somebody wrote into the storage of the browser lead to no other site', async () => {
    const { page } = await open('tasks');
    const views = [
      { name: 'one', to: 'javascript:alert(1)' },
      { name: 'two', to: '//evil.example' },
      { name: 'three', to: 'tasks?filter=state:dead' },
      7,
    ];
    await page.evaluate(`localStorage.setItem('holdfast.views /', ${JSON.stringify(JSON.stringify(views))})`);
    await page.reload();
    await page.getByText('Views', { exact: true }).click();
    expect(await page.locator('.views li').allTextContents()).toEqual(['three']);
  });
});

describe('the preview of a task', () => {
  test('stands beside the list, goes along with j and k, acts, and has an address', async () => {
    const { page, errors } = await open('tasks?filter=state:scheduled%20type:report.render');
    await page.locator('tbody tr').first().waitFor();
    await page.keyboard.press('j');
    await page.keyboard.press('Space');
    const preview = page.locator('.preview');
    await preview.locator('h2').first().waitFor();
    const ids = (await page.locator('tbody a.task-link .mono').allTextContents()).map((id) => id.slice(1));
    expect(new URL(page.url()).searchParams.get('task')).toBe(ids[0]);
    await page.keyboard.press('j');
    await expect.poll(() => preview.getByRole('link').first().textContent()).toBe(`Open #${ids[1]}`);
    await preview.getByText('Next', { exact: true }).waitFor();
    await isFine(page);

    await preview.getByRole('button', { name: 'Hold' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Hold' }).click();
    await expect.poll(() => preview.locator('h2 .sign').textContent()).toBe('held');
    await page.reload();
    await expect.poll(() => preview.locator('h2 .sign').textContent()).toBe('held');
    await page.keyboard.press('Escape');
    await preview.waitFor({ state: 'detached' });
    expect(new URL(page.url()).searchParams.get('filter')).toBe('state:scheduled type:report.render');
    expect(errors).toEqual([]);
  });

  test('takes the answer to a task that needs a person, and opens by a click beside the links of a row', async () => {
    const { page } = await open('tasks?filter=state:needs_manual', 360);
    await page.locator('tbody tr').first().locator('td').last().click();
    await page.locator('.preview').getByText('What is the answer?').waitFor();
    await isFine(page);
    await page.keyboard.press('1');
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => page.locator('.preview h2 .sign').textContent()).toBe('succeeded');
  });
});
