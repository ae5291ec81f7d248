import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fillStore, HOSTILE } from './a-day.ts';
import { axeViolations, useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-pages-'));
const store = join(folder, 'day.db');
let dashboard: RunningDashboard;
let readOnly: RunningDashboard;

beforeAll(async () => {
  await fillStore(store);
  [dashboard, readOnly] = await Promise.all([startDashboard(store), startDashboard(store, '--read-only')]);
});

afterAll(async () => {
  await Promise.all([dashboard?.stop(), readOnly?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const openPage = useBrowser();

async function open(path: string, { at = dashboard, width = 1_280, theme = 'light' as 'light' | 'dark' } = {}) {
  const { page, errors } = await openPage({ ...at.options, viewport: { width, height: 900 }, colorScheme: theme });
  await page.goto(`${at.url}${path}`);
  await ready(page);
  return { page, errors };
}

/** Waits until everything that a page asked for is there. */
async function ready(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await page.locator('.loading').first().waitFor({ state: 'detached' });
}

/** The page after a click on the first link of its list. */
async function openFirst(page: Page): Promise<void> {
  await page.locator('tbody a').first().click();
  await page.locator('.back').waitFor();
  await ready(page);
}

describe('the tasks', () => {
  test('are found by the filter of the command line, which is in the address', async () => {
    const { page } = await open('');
    await page.keyboard.press('/');
    await page.keyboard.type('state:dead type:payout.send');
    await page.keyboard.press('Enter');
    await page.locator('tbody tr').first().waitFor();
    expect(new URL(page.url()).searchParams.get('filter')).toBe('state:dead type:payout.send');
    await expect.poll(() => page.locator('tbody .sign').allTextContents()).toEqual(Array(6).fill('dead'));
    await page.goBack();
    await expect.poll(() => page.locator('h1').textContent()).toBe('Overview');
  });

  test('are found by a filter that is completed with names of the store, by the keyboard', async () => {
    const { page } = await open('');
    await page.keyboard.press('/');
    await page.keyboard.type('state:dead type:pay');
    await expect.poll(() => page.getByRole('option').allTextContents()).toEqual(['state:dead type:payout.send']);
    for (const key of ['ArrowDown', 'Enter', 'Enter']) await page.keyboard.press(key);
    await expect.poll(() => new URL(page.url()).searchParams.get('filter')).toBe('state:dead type:payout.send');
    await expect.poll(() => page.locator('tbody tr').count()).toBe(6);
  });

  test('say what is wrong with a filter', async () => {
    const { page } = await open('tasks?filter=state%3Abroken');
    await expect.poll(() => page.locator('[role=alert]').textContent()).toContain('unknown state "broken"');
  });

  test('are marked and held by the keyboard alone', async () => {
    const { page } = await open('tasks?filter=state:scheduled%20type:report.render');
    await page.locator('tbody tr').first().waitFor();
    for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
    expect(await page.locator('tr.marked').count()).toBe(2);
    await page.getByRole('button', { name: 'Hold', exact: true }).focus();
    await page.keyboard.press('Enter');
    await page.getByRole('dialog').waitFor();
    expect(await page.getByRole('dialog').textContent()).toContain('Hold: 2 tasks');
    await page.keyboard.type('not before the new template');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('status').textContent()).toBe('2 tasks were held.');
    const { page: second } = await open('tasks?filter=state:held');
    await expect.poll(() => second.locator('tbody tr').count()).toBe(3);
  });

  test('that match are acted on as they were when the dialog opened', async () => {
    const { page } = await open('tasks?filter=state:dead%20type:payout.send');
    await page.locator('tbody tr').first().waitFor();
    await page.getByRole('button', { name: 'Retry now' }).click();
    await page.getByRole('dialog').waitFor();
    expect(await page.getByRole('dialog').textContent()).toContain('all 6 that match now');
    await page.getByRole('dialog').getByRole('button', { name: 'Retry now' }).click();
    await expect.poll(() => page.getByRole('status').textContent()).toBe('6 tasks were made due.');
    await expect.poll(() => page.locator('.empty').textContent()).toContain('No task matches.');
  });

  test('are cards on a narrow screen, and nothing is wider than it', async () => {
    for (const path of ['', 'tasks', 'failures', 'inbox']) {
      const { page } = await open(path, { width: 360 });
      expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth'), path).toBeLessThanOrEqual(0);
    }
  });
});

describe('a task', () => {
  test('shows why, its executions on a line of time, and each decision', async () => {
    const { page, errors } = await open('tasks?filter=state:dead%20type:report.render');
    await openFirst(page);
    await expect.poll(() => page.locator('.headline').textContent()).toContain('attempt 4 of 4 failed');
    await expect
      .poll(() => page.locator('figure svg[role=img]').getAttribute('aria-label'))
      .toContain('4 failed, 4 of them charged');
    expect(await page.locator('.history').textContent()).toContain('Attempts 1 to 3');
    await page.getByRole('button', { name: 'Show as table: Executions' }).click();
    expect(await page.locator('figure tbody tr').count()).toBe(4);
    expect(errors).toEqual([]);
  });

  test('answers what other options would have decided, at an address of its own', async () => {
    const { page } = await open('tasks?filter=state:dead%20type:report.render');
    await openFirst(page);
    await page.getByLabel('With other policy options').fill('maxAttempts: 9');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.text pre').last().textContent()).toContain('4 of 9');
    expect(new URL(page.url()).searchParams.get('if')).toBe('maxAttempts: 9');
  });

  test('is held with a note, which stands in its history with who did it', async () => {
    const { page } = await open('tasks?filter=state:scheduled%20type:report.render');
    await openFirst(page);
    await page.getByRole('button', { name: 'Hold' }).click();
    await page.getByLabel('Why (optional)').fill('wait for Anna');
    await page.getByRole('dialog').getByRole('button', { name: 'Hold' }).click();
    await expect.poll(() => page.locator('.history').textContent()).toContain('wait for Anna');
    expect(await page.locator('h1 .sign').textContent()).toBe('held');
  });

  test('does not show its input where inputs are hidden', async () => {
    const hiding = await startDashboard(store, '--hide-inputs');
    try {
      const { page, errors } = await open('tasks?filter=type:payout.send', { at: hiding });
      await openFirst(page);
      await expect.poll(() => page.getByRole('region', { name: 'Input' }).textContent()).toContain('Hidden');
      expect(await page.getByRole('region', { name: 'Input' }).textContent()).not.toContain('iban');
      expect(errors).toEqual([]);
    } finally {
      await hiding.stop();
    }
  });

  test('that does not exist is said to be not there', async () => {
    const { page } = await open('tasks/999999');
    await expect.poll(() => page.locator('[role=alert]').textContent()).toContain('999999');
  });
});

describe('the inbox', () => {
  test('asks one question after the other, answered by the keyboard', async () => {
    const { page } = await open('inbox');
    await page.locator('.questions li').first().waitFor();
    const first = await page.locator('.question h2').textContent();
    expect(await page.locator('.questions li').count()).toBe(3);
    await page.keyboard.press('1');
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => page.getByRole('status').textContent()).toContain('it happened.');
    await expect.poll(() => page.locator('.questions li').count()).toBe(2);
    expect(await page.locator('.question h2').textContent()).not.toBe(first);
    await page.keyboard.press('j');
    await page.keyboard.press('3');
    await page.keyboard.press('Control+Enter');
    await expect.poll(() => page.locator('.questions li').count()).toBe(1);
  });
});

describe('failures', () => {
  test('are groups that say whether a retry helps, and what was said of them', async () => {
    const { page } = await open('failures?sort=-count');
    await page.locator('tbody tr').first().waitFor();
    await page.getByRole('link', { name: 'Request failed with status code 503' }).click();
    await expect.poll(() => page.locator('h1').textContent()).toContain('503');
    expect(await page.locator('.figures').textContent()).toMatch(/\d+ % \(\d+ to \d+ %\)/);
    await page.getByRole('button', { name: 'Resolve' }).click();
    await page.getByLabel('Why (optional)').fill('the proxy was restarted');
    await page.getByRole('dialog').getByRole('button', { name: 'Resolve' }).click();
    await expect.poll(() => page.locator('h1 .sign').textContent()).toBe('resolved');
    expect(await page.locator('main').textContent()).toContain('the proxy was restarted');
    const { page: list } = await open('failures?state=resolved');
    await expect.poll(() => list.locator('tbody tr').count()).toBe(1);
  });

  test('are muted for a time, and carry notes for others', async () => {
    const { page } = await open('failures?sort=-count');
    await page.getByRole('link', { name: 'Cannot read properties' }).first().click();
    await page.getByRole('button', { name: 'Note' }).click();
    await page.getByLabel('Why (required)').fill('ticket 7');
    await page.getByRole('dialog').getByRole('button', { name: 'Note' }).click();
    await expect.poll(() => page.locator('main').textContent()).toContain('ticket 7');
    await page.getByRole('button', { name: 'Mute' }).click();
    await page.getByLabel('How long').selectOption('24h');
    await page.getByLabel('Why (required)').fill('the vendor knows');
    expect(await axeViolations(page)).toEqual([]);
    await page.getByRole('dialog').getByRole('button', { name: 'Mute' }).click();
    await expect.poll(() => page.locator('h1 .sign').textContent()).toBe('muted');
    expect(await page.locator('.history').last().textContent()).toMatch(/mute until .* by/);
  });
});

describe('an open page', () => {
  test('hears of changes through one stream for each browser, which another page takes over', async () => {
    const { page } = await open('tasks?filter=state:scheduled');
    const first = Number((await page.locator('tbody .mono').first().textContent())?.slice(1));
    const streams: string[] = [];
    page.context().on('request', (request) => {
      if (request.url().endsWith('/events')) streams.push(request.url());
    });
    const second = await page.context().newPage();
    await second.goto(`${dashboard.url}tasks/${first}`);
    await expect.poll(() => second.locator('.live-words').textContent()).toBe('Live');
    expect(streams).toEqual([]);
    await dashboard.post(`tasks/${first}/hold`, {});
    await expect.poll(() => second.locator('h1 .sign').textContent()).toBe('held');
    await page.close();
    await expect.poll(() => streams.length).toBe(1);
    await expect.poll(() => second.locator('.live-words').textContent()).toBe('Live');
  });

  test('stands still while it is paused, and says what it missed', async () => {
    const { page } = await open('tasks?filter=state:held');
    const count = await page.locator('tbody tr').count();
    const held = Number((await page.locator('tbody .mono').first().textContent())?.slice(1));
    await page.keyboard.press('p');
    await dashboard.post(`tasks/${held}/release`, {});
    await expect.poll(() => page.locator('.newer').textContent()).toContain('while paused: show');
    expect(await page.locator('tbody tr').count()).toBe(count);
    await page.locator('.newer').click();
    await expect.poll(() => page.locator('tbody tr').count()).toBe(count - 1);
  });
});

describe('every page', () => {
  const lists = ['', 'tasks?filter=type:refund.create', 'failures', 'inbox', 'nowhere'];
  const opened = ['tasks?filter=state:dead', 'tasks?filter=type:refund.create', 'failures?sort=-count'];

  test.for([...lists, ...opened.map((path) => `the first of ${path}`)])(
    'has nothing that axe finds: /%s',
    async (path) => {
      const { page, errors } = await open(path.replace('the first of ', ''));
      if (path.startsWith('the first of ')) await openFirst(page);
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await axeViolations(page), colorScheme).toEqual([]);
      }
      expect(errors).toEqual([]);
    },
  );

  test('shows scripts, marks that turn the writing round and long texts as text', async () => {
    const { page, errors } = await open(
      `tasks?filter=${encodeURIComponent(`type:"${HOSTILE.type.replaceAll('"', '\\"')}"`)}`,
    );
    await expect.poll(() => page.locator('tbody tr').count()).toBe(2);
    expect(await page.locator('tbody').textContent()).toContain(HOSTILE.type);
    await page.locator('tbody a.task-link').last().click();
    await expect.poll(() => page.locator('.history pre').first().textContent()).toContain('onerror=');
    expect(await page.locator('main').textContent()).toContain('\\u202e');
    expect(await page.locator('main').textContent()).not.toContain('\u202e');
    await page.goBack();
    await page.locator('tbody a.task-link').first().click();
    await page.locator('.history pre').first().waitFor();
    expect((await page.locator('main').textContent())?.length).toBeLessThan(20_000);
    for (const path of ['failures', 'inbox', '']) await page.goto(`${dashboard.url}${path}`);
    expect(await page.title()).not.toContain('broken');
    expect(errors).toEqual([]);
  });

  test('has a way past the navigation, help, and keys that go to the others', async () => {
    const { page } = await open('');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    expect(await page.evaluate('document.activeElement.id')).toBe('main');
    await page.keyboard.press('?');
    expect(await page.getByRole('dialog').textContent()).toContain('Go to');
    await page.keyboard.press('Escape');
    await page.keyboard.press('g');
    await page.keyboard.press('f');
    await expect.poll(() => page.locator('h1').textContent()).toBe('Failures');
  });

  test('keeps the theme that was chosen, from the first frame', async () => {
    const { page } = await open('');
    await page.keyboard.press('t');
    await page.keyboard.press('t');
    await page.reload({ waitUntil: 'commit' });
    await page.locator('h1').waitFor();
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
  });

  test('changes nothing where the dashboard is read-only, and says why', async () => {
    const { page } = await open('tasks?filter=state:scheduled', { at: readOnly });
    await openFirst(page);
    // It can be reached, for its reason to be read, and does nothing.
    await page.getByRole('button', { name: 'Cancel' }).click({ force: true });
    expect(await page.getByRole('status').textContent()).toBe('This dashboard is read-only.');
    expect(await page.getByRole('dialog').count()).toBe(0);
  });
});
