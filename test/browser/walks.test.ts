import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useBrowser } from './browser.ts';
import { type StoreKind, useScene } from './scene.ts';

/** When the page knows who looks, and what they may do. */
async function isReady(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await page.getByText('you are').waitFor();
}

/** Long enough for a probe, a retry or a redrive of a real worker. */
const WORKING = { timeout: 45_000 };

describe.each<StoreKind>(['sqlite', 'postgres'])('somebody at 3 a.m., on %s', (kind) => {
  const scene = useScene(kind, { only: ['hello', 'invoice.send', 'refund.create', 'order.push'] });
  const openPage = useBrowser();

  async function open(path: string): Promise<Page> {
    const { dashboard } = scene();
    const { page } = await openPage(dashboard.options);
    await page.goto(`${dashboard.url}${path}`);
    await isReady(page);
    return page;
  }

  const title = (page: Page) => expect.poll(() => page.locator('h1').textContent(), WORKING);
  const says = (page: Page) => expect.poll(() => page.getByRole('status').first().textContent(), WORKING);

  test('sees what failed, finds out why, answers, mends it, and puts the dead tasks back', async () => {
    // Fail: the overview says what needs somebody.
    const page = await open('');
    const attention = page.locator('.attention');
    await expect.poll(() => attention.textContent(), WORKING).toContain('invoice.invalid_iban');
    expect(await attention.textContent()).toContain('http:api.acme.example');

    // Group: seven tasks failed alike.
    await page.getByRole('link', { name: 'Failures' }).first().click();
    await page.getByRole('link', { name: /invalid IBAN/ }).click();
    await title(page).toContain('invalid IBAN');
    await expect.poll(() => page.locator('main').textContent()).toContain('7');

    // Explain: one of them.
    const task = await open('tasks?filter=state:dead%20type:invoice.send');
    await task.locator('tbody a.task-link').first().click();
    await expect.poll(() => task.locator('.headline').textContent()).toContain('dead');
    expect(await task.locator('main').textContent()).toContain('permanent');

    // Resolve: whether the refunds happened, by the keyboard.
    const inbox = await open('inbox');
    for (const left of [1, 0]) {
      await inbox.locator('.question h2').waitFor();
      await inbox.keyboard.press('1');
      await inbox.getByRole('button', { name: 'Decide' }).click();
      await expect.poll(() => inbox.locator('.questions li').count(), WORKING).toBe(left);
    }

    // The cause is mended: somebody says so, the source is tested, and its tasks follow.
    const source = await open('sources/http%3Aapi.acme.example');
    await source
      .getByRole('button', { name: /Probe now|Release/ })
      .first()
      .click();
    await source.getByLabel('Why (optional)').fill('the load balancer is mended');
    await source.getByRole('dialog').locator('button[type=submit]').click();
    await says(source).toMatch(/is tested|is released/);
    await expect.poll(() => source.locator('main').textContent(), WORKING).toContain('the load balancer is mended');

    scene().fix();

    // Redrive: one, then five, then the last one.
    const redrive = await open('redrives/new?filter=reason:invoice.invalid_iban');
    await redrive.getByLabel(/^Why/).fill('the bank sent the numbers again');
    await redrive.getByRole('button', { name: 'Start the redrive of 7 tasks' }).click();
    await title(redrive).toContain('Redrive #1');
    await expect.poll(() => redrive.locator('h1 .sign').textContent(), WORKING).toBe('done');
    expect(await redrive.locator('.progress').first().textContent()).toContain('7 succeeded');

    // Green.
    await page.getByRole('link', { name: 'Overview' }).first().click();
    await expect.poll(() => page.locator('main').textContent(), WORKING).toContain('All clear');
  }, 120_000);
});

describe('by the keyboard alone', () => {
  const scene = useScene('sqlite', { only: ['hello', 'invoice.send', 'mailbox.sync'] });
  const openPage = useBrowser();

  /** How the element with the focus is called. */
  const FOCUSED = `(({ ariaLabel, textContent, labels }) => [ariaLabel, textContent, labels?.[0]?.textContent].join(' '))(document.activeElement)`;

  /** Presses Tab until this has the focus. */
  async function tabTo(page: Page, name: RegExp): Promise<void> {
    for (let presses = 0; presses < 120; presses += 1) {
      await page.keyboard.press('Tab');
      const focused = await page.evaluate<string>(FOCUSED);
      if (name.test(focused)) return;
    }
    throw new Error(`Tab never reached ${name}.`);
  }

  test('tasks are filtered, marked, retried, and put back by a redrive', async () => {
    const { dashboard, fix } = scene();
    const { page } = await openPage(dashboard.options);
    await page.goto(dashboard.url);
    await isReady(page);
    await page.keyboard.press('/');
    await page.keyboard.type('type:mailbox.sync');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count(), WORKING).toBe(3);
    for (const key of ['j', 'x', 'j', 'x']) await page.keyboard.press(key);
    expect(await page.locator('tr.marked').count()).toBe(2);
    await page.keyboard.press('r');
    await page.getByRole('dialog').waitFor();
    await page.keyboard.type('the server answers again');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.getByRole('status').first().textContent(), WORKING).toMatch(/made due/);

    fix();
    await page.keyboard.press('/');
    await page.keyboard.press('Control+A');
    await page.keyboard.type('state:dead type:invoice.send');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('tbody tr').count(), WORKING).toBe(7);
    await tabTo(page, /Redrive …/);
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1').textContent()).toBe('New redrive');
    await page.getByRole('button', { name: 'Start the redrive of 7 tasks' }).waitFor();
    await tabTo(page, /^\s*Why/);
    await page.keyboard.type('the bank sent the numbers again');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('h1 .sign').textContent(), WORKING).toBe('done');
  });
});
