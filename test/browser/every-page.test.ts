import type { Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { axeViolations, useBrowser } from './browser.ts';
import { type StoreKind, useScene } from './scene.ts';

const SECRET = 'planted-Zx81-secret';
const SCRIPT = '<script>globalThis.attacked = 1</script><img src=x onerror="globalThis.attacked = 1">';

beforeAll(() => {
  process.env.PLANTED_SECRET = SECRET;
});
afterAll(() => {
  delete process.env.PLANTED_SECRET;
});

/** Every page of the dashboard; of those that show one thing, each sort of it. */
const PAGES = [
  '',
  'tasks',
  'tasks?filter=type:hostile.input',
  'tasks/1',
  'failures',
  'inbox',
  'sources',
  'sources/http%3Aapi.acme.example?days=7',
  `sources/${encodeURIComponent(SCRIPT)}`,
  'forecast',
  'redrives',
  'redrives/new?filter=type:invoice.send',
  'redrives/1',
  'policies',
  'policies/order.push',
  `policies/${encodeURIComponent(SCRIPT)}`,
  'schedules',
  'schedules/nightly-report',
  'queues',
  'workers',
  'audit',
  'events',
  'system',
] as const;

/** When all that a page asked for is there. */
async function isReady(page: Page): Promise<void> {
  await page.locator('h1').waitFor();
  await page.getByText('you are').waitFor();
  await expect.poll(() => page.locator('.loading').count(), { timeout: 20_000 }).toBe(0);
}

describe.each<StoreKind>(['sqlite', 'postgres'])('every page, on %s', (kind) => {
  const scene = useScene(kind, { hostile: true });
  const openPage = useBrowser();

  beforeAll(async () => {
    await scene().dashboard.post('redrives', { filter: 'type:invoice.send', note: SCRIPT, rate: '1/h' });
  });

  async function pagesOf(kindOfPage: string): Promise<string[]> {
    const { dashboard } = scene();
    const { page } = await openPage(dashboard.options);
    await page.goto(`${dashboard.url}${kindOfPage}`);
    await isReady(page);
    return page
      .locator('tbody a.task-link')
      .evaluateAll((links) => links.map((link) => link.getAttribute('href') ?? ''));
  }

  test('shows what attacks it as text, asks for no file of others, and has no secret', async () => {
    const { dashboard } = scene();
    const attacked = await pagesOf('tasks?filter=type:hostile.input');
    const groups = await pagesOf('failures');
    expect(attacked).toHaveLength(4);
    const { page, errors } = await openPage(dashboard.options);
    const answers: Promise<string>[] = [];
    const foreign: string[] = [];
    page.on('response', (response) => {
      if (!response.url().startsWith(dashboard.url)) foreign.push(response.url());
      else if (response.url().includes('/api/') && !response.url().endsWith('/events')) {
        answers.push(response.text().catch(() => ''));
      }
    });
    for (const path of [...PAGES, ...attacked, ...groups]) {
      await page.goto(`${dashboard.url}${path}`);
      await isReady(page);
      const html = await page.content();
      expect([path, html.includes(SECRET), html.length < 3_000_000]).toEqual([path, false, true]);
      expect([path, await page.evaluate('globalThis.attacked')]).toEqual([path, undefined]);
    }
    const texts = await Promise.all(answers);
    expect(texts.filter((text) => text.includes(SECRET))).toEqual([]);
    expect(Math.max(...texts.map((text) => text.length))).toBeLessThan(1_000_000);
    expect(foreign).toEqual([]);
    expect(errors).toEqual([]);
  }, 120_000);

  if (kind === 'sqlite') {
    test.for(['light', 'dark'] as const)(
      'has nothing that axe finds, in the %s theme',
      { timeout: 120_000 },
      async (colorScheme) => {
        const { dashboard } = scene();
        const { page } = await openPage({ ...dashboard.options, colorScheme });
        for (const path of PAGES) {
          await page.goto(`${dashboard.url}${path}`);
          await isReady(page);
          expect([path, await axeViolations(page)]).toEqual([path, []]);
        }
      },
    );

    test('fits a narrow screen', { timeout: 60_000 }, async () => {
      const { dashboard } = scene();
      const { page } = await openPage({ ...dashboard.options, viewport: { width: 360, height: 800 } });
      for (const path of PAGES) {
        await page.goto(`${dashboard.url}${path}`);
        await isReady(page);
        const over = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
        expect([path, over]).toEqual([path, 0]);
      }
    });
  }
});
