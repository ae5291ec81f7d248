import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useBrowser } from './browser.ts';
import { useScene } from './scene.ts';

describe('whoever operates', () => {
  const scene = useScene('sqlite');
  const openPage = useBrowser();

  async function open(path: string, width = 1_280): Promise<Page> {
    const { dashboard } = scene();
    const { page } = await openPage({ ...dashboard.options, viewport: { width, height: 900 } });
    await page.goto(`${dashboard.url}${path}`);
    await page.getByText('you are').waitFor();
    return page;
  }

  const said = (page: Page) => page.getByRole('status').textContent();
  const inDialog = (page: Page, name: string) => page.getByRole('dialog').getByRole('button', { name }).click();

  test('limits a queue and changes its order', async () => {
    const page = await open('queues');
    const row = page.locator('tbody tr').first();
    await row.getByRole('button', { name: 'Limit' }).click();
    await page.getByLabel('Starts (such as 10/s or 5000/h)').fill('90/s');
    await page.getByLabel('At the same time').fill('40');
    await inDialog(page, 'Limit');
    await expect.poll(() => said(page)).toBe('default is limited.');
    await expect.poll(() => row.textContent()).toContain('90/s');
    await row.getByRole('button', { name: 'Order' }).click();
    await page.getByLabel('Which tasks come first').selectOption('priority');
    await page.getByLabel('Fair: its sources take turns').check();
    await inDialog(page, 'Order');
    await expect.poll(() => said(page)).toBe('The queue default is priority, fair.');
    await expect.poll(() => row.textContent()).toContain('priority, fair');
  });

  test('removes a schedule', async () => {
    const page = await open('schedules/nightly-report');
    await page.getByRole('button', { name: 'Remove' }).click();
    await inDialog(page, 'Remove');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Schedules');
    expect(await said(page)).toBe('nightly-report is removed.');
    expect(await page.locator('main').textContent()).not.toContain('nightly-report');
  });

  test('sees what happened lately, filtered, and goes on to the task', async () => {
    const page = await open('');
    await page.keyboard.press('g');
    await page.keyboard.press('v');
    await expect.poll(() => page.locator('tbody tr').count()).toBeGreaterThan(3);
    await page.getByLabel('Which events').fill('type:invoice.send state:dead');
    await page.keyboard.press('Enter');
    await expect
      .poll(async () => new Set(await page.locator('tbody .sign').allTextContents()))
      .toEqual(new Set(['dead']));
    expect(await page.locator('tbody tr').first().textContent()).toContain('invoice.invalid_iban');
    await page.locator('h1').click();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toContain('invoice.send');
  });

  test('tries an error on a policy, at an address of its own', async () => {
    const page = await open('policies/order.push');
    await page.getByLabel('If a new task fails with this error').fill('{"status": 403}');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.text pre').textContent()).toContain('auth.forbidden');
    expect(new URL(page.url()).searchParams.get('error')).toBe('{"status": 403}');
    expect(await page.locator('main').textContent()).toContain('explain --type order.push --error');
  });

  test('sees whether the store, its disk and its clock are sound, by the keyboard', async () => {
    const page = await open('', 360);
    await page.keyboard.press('g');
    await page.keyboard.press('y');
    await expect.poll(() => page.locator('h1').textContent()).toBe('System');
    await expect.poll(() => page.locator('.system-checks').textContent()).toContain('each commit waits for the disk');
    // Only the process of `holdfast ui` knows the machine.
    expect(await page.locator('.system-checks').textContent()).toMatch(/disk.* are left/);
    expect(await page.locator('main').textContent()).toContain('doctor --deep');
    await expect.poll(() => page.locator('.facts').textContent()).toContain('better-sqlite3');
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
  });
});
