import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { useBrowser } from './browser.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-plots-'));
let dashboard: RunningDashboard;

beforeAll(async () => {
  const store = join(folder, 'tasks.db');
  await (await openHoldfast({ store: sqlite(store) })).close();
  dashboard = await startDashboard(store);
});

afterAll(async () => {
  await dashboard?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const openPage = useBrowser();

const HALF_HOUR = 1_800_000;

/** The statistics of 24 hours until then, with these counts of failures in the last spans. */
function statsUntil(end: string, ...failures: readonly number[]): object {
  const none = { dead: 0, needs_manual: 0, cancelled: 0 };
  const bins = Array.from({ length: 48 }, (_, i) => ({
    at: new Date(Date.parse(end) - (48 - i) * HALF_HOUR).toISOString(),
    successes: 0,
    failures: failures[i - 48 + failures.length] ?? 0,
    ended: none,
  }));
  const all = failures.reduce((sum, count) => sum + count, 0);
  const total = { executions: all, successes: 0, failures: all, retries: { total: 0, successful: 0 }, ended: none };
  return { schema: 'holdfast.stats/v1', since: bins[0]?.at, total: { ...total, wasted_executions: 0 }, bins };
}

// In the night to the 25th of October 2026 the clocks of Berlin went from 03:00 back to 02:00, on the 29th of March from 02:00 to 03:00.
for (const [clocks, end, spans] of [
  ['set back', '2026-10-25T12:00:00Z', 4],
  ['set forward', '2026-03-29T12:00:00Z', 0],
] as const) {
  test(`the plot of a day on which the clocks were ${clocks} has each half hour once, and fits counts of any size`, async () => {
    const { page, errors } = await openPage({ ...dashboard.options, timezoneId: 'Europe/Berlin' });
    await page.route('**/api/v1/stats?*', (route) => route.fulfill({ json: statsUntil(end, 1, 0, 10_000_000) }));
    await page.goto(dashboard.url);
    const plot = page.locator('figure.plot').first();
    await plot.locator('svg text.tick').first().waitFor();
    expect(await plot.locator('svg .tick').allTextContents()).toContain('10M');
    const left = async (selector: string) =>
      Math.min(
        ...(await plot.locator(selector).evaluateAll((all) => all.map((one) => one.getBoundingClientRect().left))),
      );
    expect(await left('svg .tick')).toBeGreaterThanOrEqual(await left('svg[role="img"]'));

    await plot.getByRole('button', { name: /^Show as table/ }).click();
    const times = await plot.locator('tbody th').allTextContents();
    expect([times.length, new Set(times).size]).toEqual([48, 48]);
    expect(times.filter((time) => time.includes('02:'))).toHaveLength(spans);
    expect(errors).toEqual([]);
  });
}
