import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll } from 'vitest';

const CHROMIUM = '/usr/bin/chromium';
const AXE = fileURLToPath(import.meta.resolve('axe-core/axe.min.js'));

export interface OpenPage {
  readonly page: Page;
  /** What was thrown in the page or printed as an error: also what its content security policy has refused. */
  readonly errors: readonly string[];
}

/** One Chromium for the tests of a file. Each page has its own cookies and storage, and is closed after its test. */
export function useBrowser(): (options?: BrowserContextOptions) => Promise<OpenPage> {
  let browser: Browser;
  const opened: Page[] = [];
  beforeAll(async () => {
    browser = await launchBrowser();
  });
  afterEach(async () => {
    for (const page of opened.splice(0)) await page.context().close();
  });
  afterAll(() => browser?.close());
  return async (options) => {
    const open = await openPage(browser, options);
    opened.push(open.page);
    return open;
  };
}

/** @throws If there is no Chromium: a test of the dashboard without a browser has tested nothing. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = process.env.HOLDFAST_TEST_CHROMIUM ?? CHROMIUM;
  if (!existsSync(executablePath)) {
    throw new Error(
      `The tests of the dashboard need Chromium, and ${executablePath} does not exist. Run \`apt-get install chromium\`, or set HOLDFAST_TEST_CHROMIUM.`,
    );
  }
  // Chromium's sandbox cannot be made by root. The pages are ours.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args: [...args, '--disable-gpu', '--disable-dev-shm-usage'] });
}

async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
    locale: 'en-GB',
    timezoneId: 'UTC',
    ...options,
  });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error)));
  page.on('console', (message) => {
    if (message.type() === 'error') errors.push(message.text());
  });
  return { page, errors };
}

/** What axe finds on a page, with the element. */
export async function axeViolations(page: Page): Promise<string[]> {
  // Not as a script element: the page's content security policy forbids those, rightly.
  await page.evaluate(readFileSync(AXE, 'utf8'));
  return page.evaluate(async () => {
    // biome-ignore lint/suspicious/noExplicitAny: axe is a global of the page here
    const { violations } = await (globalThis as any).axe.run({
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
    });
    return violations.flatMap(({ id, nodes }: { id: string; nodes: { html: string; failureSummary: string }[] }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`),
    );
  });
}
