import type { Locator, Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { useBrowser } from './browser.ts';
import { useScene } from './scene.ts';

const LISTS = ['tasks', 'failures', 'sources', 'schedules', 'queues', 'workers', 'audit', 'policies'] as const;
const PARTS = [
  ['tasks/1', 'Tasks'],
  ['sources/imap%3AINBOX', 'Sources'],
  ['policies/order.push', 'Policies'],
  ['schedules/nightly-report', 'Schedules'],
  ['redrives/new', 'Redrives'],
] as const;

function edgesOf(part: Locator): Promise<{ readonly top: number; readonly bottom: number }> {
  return part.evaluate((element) => {
    const { top, bottom } = element.getBoundingClientRect();
    return { top, bottom };
  });
}

describe('the look of the pages', () => {
  const scene = useScene('sqlite');
  const openPage = useBrowser();

  async function pageAt(path: string, width = 1280): Promise<Page> {
    const { dashboard } = scene();
    const { page } = await openPage({ ...dashboard.options, viewport: { width, height: 800 } });
    await open(page, path);
    return page;
  }

  async function open(page: Page, path: string): Promise<void> {
    await page.goto(`${scene().dashboard.url}${path}`);
    await page.getByText('you are').waitFor();
    await expect.poll(() => page.locator('.loading').count()).toBe(0);
  }

  test('the heads of a table are on one line, and no row is cut in a window of the usual width', async () => {
    const page = await pageAt('');
    for (const path of LISTS) {
      await open(page, path);
      const places = await page.locator('thead').evaluateAll((heads) =>
        heads.map((head) => {
          const tops = [...head.querySelectorAll('th:not(.mark)')].map((cell) => {
            const text = head.ownerDocument.createRange();
            text.selectNodeContents(cell.querySelector('button') ?? cell);
            const { top, height } = text.getBoundingClientRect();
            return Math.round(top + height / 2);
          });
          return Math.max(...tops) - Math.min(...tops);
        }),
      );
      for (const apart of places) expect(apart, path).toBeLessThanOrEqual(1);
      const hidden = await page
        .locator('.table-frame')
        .evaluateAll((frames) => frames.map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth));
      for (const cut of hidden) expect(cut, path).toBeLessThanOrEqual(0);
    }
  });

  test('on a narrow screen there is no empty line between a reason and its message', async () => {
    const page = await pageAt('tasks?filter=type:invoice.send', 360);
    const cell = page.locator('td[data-title="Last failure"]').first();
    const reason = await cell.locator('a').boundingBox();
    const message = await cell.locator('.two-lines').boundingBox();
    expect((message?.y ?? 0) - ((reason?.y ?? 0) + (reason?.height ?? 0))).toBeLessThan(4);
  });

  test('every page of one thing leads back to its list in the same way', async () => {
    const page = await pageAt('');
    for (const [path, words] of PARTS) {
      await open(page, path);
      expect((await page.locator('main a.back').textContent())?.trim(), path).toBe(words);
    }
  });

  test('what can be done with all tasks is in sight, however long the list is', async () => {
    for (const width of [360, 1280]) {
      const page = await pageAt('tasks', width);
      const bar = await page.locator('.bulk').boundingBox();
      expect((bar?.y ?? 801) + (bar?.height ?? 0)).toBeLessThanOrEqual(800);
    }
  });

  test('what opens below a button fits a narrow window', async () => {
    const page = await pageAt('tasks', 360);
    for (const words of ['Views', 'Columns']) {
      await page.locator('summary', { hasText: words }).click();
      const opened = await page.locator('details[open] .drop-down-content').boundingBox();
      expect(opened?.x ?? -1, words).toBeGreaterThanOrEqual(0);
      expect((opened?.x ?? 0) + (opened?.width ?? 361), words).toBeLessThanOrEqual(360);
      await page.locator('summary', { hasText: words }).click();
    }
  });

  test('the times below a plot are those of a clock', async () => {
    const page = await pageAt('forecast');
    const times = (await page.locator('figure .tick').allTextContents()).filter((text) => text.includes(':'));
    expect(times.length).toBeGreaterThan(4);
    for (const time of times) expect(Number(time.split(':')[1]) % 5).toBe(0);
  });

  test('the sign of a page that only polls does not look like that of one that follows', async () => {
    const colour = (page: Page) =>
      page.locator('.live-dot').evaluate((dot) => dot.ownerDocument.defaultView?.getComputedStyle(dot).backgroundColor);
    const { dashboard } = scene();
    const { page } = await openPage(dashboard.options);
    await page.route('**/api/v1/events', (route) => route.abort());
    await open(page, '');
    expect(await page.locator('.live-words').textContent()).toBe('Polling');
    const polling = await colour(page);
    const other = await pageAt('');
    await expect.poll(() => other.locator('.live-words').textContent()).toBe('Live');
    expect(await colour(other)).not.toBe(polling);
  });

  test('one is not many', async () => {
    const page = await pageAt('');
    for (const path of ['', ...LISTS, 'tasks/1', 'forecast']) {
      await open(page, path);
      // biome-ignore lint/performance/useDomNodeTextContent: what is read is the text as people see it, with the gaps between its parts.
      expect(await page.locator('main').innerText(), path).not.toMatch(
        /\b1 (tasks|attempts|retries|executions|workers|failures|groups|others|need a)\b|\b([2-9]|\d\d+) needs a\b/,
      );
    }
  });

  test('in a very wide window a text has the width that it needs, buttons stand beside each other, and fields are no wider than what people write', async () => {
    const page = await pageAt('events', 2560);
    const lines = await page.locator('td[data-title="What happened"]').evaluateAll((cells) =>
      cells.map((cell) => {
        const text = cell.ownerDocument.createRange();
        text.selectNodeContents(cell);
        return new Set([...text.getClientRects()].map(({ top }) => Math.round(top))).size;
      }),
    );
    expect(lines.length).toBeGreaterThan(0);
    for (const count of lines) expect(count).toBe(1);
    await open(page, 'queues');
    const tops = await page
      .locator('tbody tr:first-child .row-acts button')
      .evaluateAll((buttons) => buttons.map((button) => button.getBoundingClientRect().top));
    expect(tops.length).toBeGreaterThan(1);
    expect(new Set(tops).size).toBe(1);
    for (const path of ['inbox', 'redrives/new', 'policies', 'policies/order.push', 'tasks/1', 'events']) {
      await open(page, path);
      const widths = await page
        .locator('main .field :is(input, textarea, select)')
        .evaluateAll((fields) => fields.map((field) => field.getBoundingClientRect().width));
      for (const width of widths) expect(width, path).toBeLessThanOrEqual(1000);
    }
  });

  test('a queue with a long name hides none of its buttons in a window of the usual width', async () => {
    const name = `orders-${'of-a-customer-'.repeat(6)}`;
    await scene().dashboard.post('tasks', {
      type: 'hello',
      input: { name: 'a long queue' },
      queue: name,
      at: '2099-01-01T00:00:00Z',
    });
    const page = await pageAt('queues');
    await page.getByText(name).waitFor();
    const frame = page.locator('.table-frame');
    expect(await frame.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBeLessThanOrEqual(0);
  });

  test('what is said after an act does not hide the actions for marked rows', async () => {
    for (const width of [360, 1280]) {
      const page = await pageAt('tasks?filter=state:succeeded', width);
      await page.keyboard.press('j');
      await page.keyboard.press('x');
      await page.keyboard.press('r');
      const [said, bar] = [page.locator('.said'), page.locator('.bulk')];
      const [{ top, bottom }, { top: barTop, bottom: barBottom }] = await Promise.all([edgesOf(said), edgesOf(bar)]);
      expect(bottom <= barTop || top >= barBottom, `at ${width} px`).toBe(true);
    }
  });

  test('the help has the focus on the button that closes it, not on the box that switches keys off', async () => {
    const page = await pageAt('');
    await page.keyboard.press('?');
    await page.keyboard.press('Space');
    await expect.poll(() => page.locator('dialog').count()).toBe(0);
    await page.keyboard.press('?');
    expect(await page.locator('dialog input[type=checkbox]').isChecked()).toBe(true);
  });
});
