import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { axeViolations, useBrowser } from './browser.ts';
import { CLI, type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-output-'));
let dashboard: RunningDashboard;

beforeAll(async () => {
  const store = join(folder, 'tasks.db');
  const script = 'echo copied 7 files; echo "<b>disk</b> \\033[31mfull" >&2; yes line | head -n 3000; echo the-end';
  execFileSync(process.execPath, [CLI, '--store', store, 'run', '--', 'sh', '-c', script], { stdio: 'ignore' });
  dashboard = await startDashboard(store);
});

afterAll(async () => {
  await dashboard?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openPage = useBrowser();

test('the page of a command shows what it printed, as text: of a long output the end, and more on demand', async () => {
  const { page, errors } = await openPage({ ...dashboard.options, viewport: { width: 360, height: 800 } });
  await page.goto(`${dashboard.url}tasks/1`);
  const output = page.getByRole('region', { name: 'Output' });
  await output.locator('pre').first().waitFor();
  expect(await output.locator('h3').allTextContents()).toEqual(['stderr', 'stdout']);
  expect(await output.locator('pre').first().textContent()).toContain('<b>disk</b> full');
  const stdout = output.locator('pre').last();
  expect(await stdout.textContent()).toMatch(/line\nthe-end\n$/);
  expect(await stdout.textContent()).not.toContain('copied 7 files');
  await output.getByRole('button', { name: 'Show more' }).click();
  expect(await stdout.textContent()).toMatch(/^copied 7 files/);
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    expect(await axeViolations(page), colorScheme).toEqual([]);
  }
  expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBe(0);
  expect(errors).toEqual([]);
});
