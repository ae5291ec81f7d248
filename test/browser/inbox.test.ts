import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { openTestHoldfast } from '../../src/testing/index.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-inbox-'));
const store = join(folder, 'questions.db');
const refund = defineTask('refund.create', {
  idempotent: false,
  // A source for each, so that none waits for another one's source.
  source: ({ order }: { order: number }) => `order:${order}`,
  run({ order }: { order: number }) {
    throw Object.assign(new Error(`socket hang up after the refund of ${order}`), {
      code: 'ECONNRESET',
      syscall: 'read',
    });
  },
});

let dashboard: RunningDashboard;
beforeAll(async () => {
  await work(0);
  dashboard = await startDashboard(store);
});
afterAll(async () => {
  await dashboard?.stop();
  rmSync(folder, { recursive: true, force: true });
});

let orders = 0;
/** The tasks that ask, the oldest first. */
let asked: number[];
beforeEach(async () => {
  asked = await work(4);
});
afterEach(async () => {
  for (const id of asked) await dashboard.post(`tasks/${id}/resolve`, { as: 'dead' }).catch(() => undefined);
});

/** Enqueues so many refunds and works until all that can run have run. */
async function work(count: number): Promise<number[]> {
  const kit = await openTestHoldfast({ store: sqlite(store), start: new Date(), tasks: [refund] });
  const ids: number[] = [];
  for (let i = 0; i < count; i += 1) {
    orders += 1;
    ids.push((await kit.holdfast.enqueue(refund, { order: orders })).id);
  }
  await kit.advance('1s');
  await kit.close();
  return ids;
}

const openPage = useBrowser();

async function open(path: string): Promise<Page> {
  const { page } = await openPage(dashboard.options);
  await page.goto(`${dashboard.url}${path}`);
  await page.locator('.decision').waitFor();
  return page;
}

/** Types keys as fast as they can come: the page has no time to paint between them. */
async function typeAtOnce(page: Page, ...keys: readonly string[]): Promise<void> {
  await page.evaluate(`(async () => {
    for (const key of ${JSON.stringify(keys)}) {
      const ctrlKey = key.startsWith('Control+');
      const event = { key: key.replace('Control+', ''), ctrlKey, bubbles: true, cancelable: true };
      document.activeElement.dispatchEvent(new KeyboardEvent('keydown', event));
      for (let i = 0; i < 20; i += 1) await undefined;
    }
  })()`);
}

const headline = (page: Page) => page.locator('.question h2 .mono').textContent();
const questions = (page: Page) => page.locator('.questions li').count();
const chosen = (page: Page) => page.locator('.decision input:checked').count();
const said = (page: Page) => page.getByRole('status').textContent();

test('keys that follow each other without a pause act on the question that is shown', async () => {
  const page = await open('inbox');
  await typeAtOnce(page, 'j', 'j', '3', 'Control+Enter');
  await expect.poll(() => said(page)).toBe(`#${asked[2]}: give up.`);
  await expect.poll(() => questions(page)).toBe(3);
  expect(await headline(page)).toBe(`#${asked[3]}`);
});

test('an answer that arrives late leaves the question that is open meanwhile, with its choice', async () => {
  const page = await open('inbox');
  let answer = () => {};
  const isLate = new Promise<void>((resolve) => {
    answer = resolve;
  });
  await page.route(`**/tasks/${asked[0]}/resolve`, async (route) => {
    await isLate;
    await route.continue();
  });
  await page.keyboard.press('1');
  await page.keyboard.press('Control+Enter');
  await page.keyboard.press('3');
  expect(await said(page)).toBe(`The answer to #${asked[0]} is being sent.`);
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.keyboard.press('2');
  answer();
  await expect.poll(() => said(page)).toBe(`#${asked[0]}: it happened.`);
  await expect.poll(() => questions(page)).toBe(3);
  expect(await headline(page)).toBe(`#${asked[2]}`);
  expect(await chosen(page)).toBe(1);
});

test('a question that somebody else answers stays on the screen, and can no longer be answered', async () => {
  const page = await open('inbox');
  await page.keyboard.press('1');
  await page.getByLabel('Why (optional, for the history)').fill('asked the bank, ticket 1');
  await dashboard.post(`tasks/${asked[0]}/resolve`, { as: 'dead' });
  await expect.poll(() => questions(page)).toBe(3);
  expect(await headline(page)).toBe(`#${asked[0]}`);
  expect(await page.locator('.inbox [role=alert]').textContent()).toContain('is answered');
  await page.keyboard.press('Control+Enter');
  expect(await said(page)).toContain('is answered');
  await page.getByRole('button', { name: 'Next question' }).click();
  expect(await headline(page)).toBe(`#${asked[1]}`);
  expect(await chosen(page)).toBe(0);
});

test('a question that is asked anew after its answer comes back', async () => {
  const page = await open('inbox');
  await page.keyboard.press('2');
  await page.keyboard.press('Control+Enter');
  await expect.poll(() => questions(page)).toBe(3);
  await work(0);
  // Paused and followed again: the page asks at once.
  await typeAtOnce(page, 'p', 'p');
  await expect.poll(() => questions(page)).toBe(4);
});

test('letters of a note whose field is gone do nothing', async () => {
  const page = await open(`tasks/${asked[0]}`);
  await page.getByLabel('Why (optional, for the history)').press('b');
  await dashboard.post(`tasks/${asked[0]}/resolve`, { as: 'dead' });
  await page.locator('.decision').waitFor({ state: 'detached' });
  await typeAtOnce(page, 'e', 'r', 'r');
  expect(await page.getByRole('dialog').count()).toBe(0);
  expect(await said(page)).toContain('is gone');
  // What is typed on purpose works again.
  await page.locator('h1').click();
  await page.keyboard.press('r');
  await page.getByRole('dialog').waitFor();
});
