import { describe, expect, test } from 'vitest';
import { axeViolations, launchBrowser, useBrowser } from './browser.ts';

describe('the browser of these tests', () => {
  const open = useBrowser();

  test('finds what is not accessible', async () => {
    const { page } = await open();
    await page.setContent('<html lang="en"><title>t</title><main><h1>t</h1><img src="data:,"></main></html>');
    expect(await axeViolations(page)).toEqual([expect.stringContaining('image-alt')]);
  });

  test('keeps the errors of a page', async () => {
    const open1 = await open();
    await open1.page.setContent('<p id="p">');
    await open1.page.evaluate(() =>
      setTimeout(() => {
        throw new Error('broken');
      }),
    );
    await expect.poll(() => open1.errors).toEqual(['Error: broken']);
  });

  test('fails by name where there is no Chromium', async () => {
    process.env.HOLDFAST_TEST_CHROMIUM = '/nowhere/chromium';
    try {
      await expect(launchBrowser()).rejects.toThrow('/nowhere/chromium does not exist. Run `apt-get install chromium`');
    } finally {
      delete process.env.HOLDFAST_TEST_CHROMIUM;
    }
  });
});
