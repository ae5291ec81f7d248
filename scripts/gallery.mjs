// Takes pictures of every page of the dashboard, in both themes and at three widths, on a store that a real worker has filled:
//   npm run gallery -- FOLDER       all of them, to look at
//   npm run gallery -- --docs       the few that docs/guides/dashboard.md and the README show, into docs/images
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const TOKEN = 'a-token-of-the-gallery';
const [argument = '--docs'] = process.argv.slice(2);

const PAGES = [
  ['overview', ''],
  ['tasks', 'tasks'],
  ['task', 'tasks/TASK'],
  ['failures', 'failures'],
  ['group', 'failures/GROUP'],
  ['inbox', 'inbox'],
  ['sources', 'sources'],
  ['source', 'sources/http%3Aapi.acme.example'],
  ['forecast', 'forecast'],
  ['redrives', 'redrives'],
  ['new-redrive', 'redrives/new?filter=type:invoice.send'],
  ['policies', 'policies'],
  ['policy', 'policies/order.push'],
  ['schedules', 'schedules'],
  ['schedule', 'schedules/nightly-report'],
  ['queues', 'queues'],
  ['workers', 'workers'],
  ['audit', 'audit'],
];
const WIDTHS = [360, 1280, 2560];
const THEMES = ['light', 'dark'];

/** What the documentation shows. */
const SHOWN = [
  ['overview', 1280, 'light'],
  ['task', 1280, 'light'],
  ['sources', 1280, 'dark'],
  ['new-redrive', 1280, 'light'],
  ['inbox', 1280, 'light'],
  ['tasks', 360, 'dark'],
];

const temporary = mkdtempSync(join(tmpdir(), 'holdfast-gallery-'));
// As it stands in the pictures.
const store = 'tasks.db';
const children = [];
// The pages name the program of a worker by its path.
const program = join(temporary, 'worker.mjs');
symlinkSync(join(root, 'test/browser/program.mjs'), program);
try {
  await started([program, store], 'filled');
  const address = await started(
    [join(root, 'dist/cli/main.js'), '--quiet', '--store', store, 'ui', '--port', '0'],
    /http:\S+/,
  );
  await takeAll(address.split('?')[0]);
} finally {
  for (const child of children) child.kill('SIGTERM');
  await Promise.all(children.map((child) => child.exitCode ?? once(child, 'exit')));
  rmSync(temporary, { recursive: true, force: true });
}

/** Starts a program, and resolves with what it printed when it has printed this. */
async function started(args, wanted) {
  const env = { ...process.env, HOLDFAST_UI_TOKEN: TOKEN };
  const child = spawn(process.execPath, args, {
    cwd: temporary,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  let said = '';
  for await (const chunk of child.stdout) {
    said += chunk;
    if (typeof wanted === 'string' ? said.includes(wanted) : wanted.test(said)) break;
  }
  return typeof wanted === 'string' ? said : said.match(wanted)[0];
}

async function takeAll(url) {
  const browser = await chromium.launch({
    executablePath: process.env.HOLDFAST_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args: process.getuid?.() === 0 ? ['--no-sandbox'] : [],
  });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const ask = async (path) => (await fetch(`${url}api/v1/${path}`, { headers })).json();
  const task = (await ask('tasks?filter=source:"imap:INBOX"')).items[0].id;
  const group = (await ask('failures')).items.find(({ type }) => type === 'invoice.send').id;
  const folder = argument === '--docs' ? join(root, 'docs/images') : argument;
  mkdirSync(folder, { recursive: true });
  const wanted =
    argument === '--docs'
      ? SHOWN
      : PAGES.flatMap(([name]) => WIDTHS.flatMap((width) => THEMES.map((theme) => [name, width, theme])));
  for (const [name, width, theme] of wanted) {
    const path = PAGES.find(([each]) => each === name)[1]
      .replace('TASK', task)
      .replace('GROUP', group);
    const context = await browser.newContext({
      viewport: { width, height: width === 360 ? 740 : 900 },
      colorScheme: theme,
      reducedMotion: 'reduce',
      extraHTTPHeaders: headers,
      locale: 'en-GB',
    });
    const page = await context.newPage();
    const asked = new Set();
    page.on('request', (request) => /\/api\/v1\/(?!events)/.test(request.url()) && asked.add(request));
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => asked.delete(request));
    await page.goto(`${url}${path}`);
    await page.getByText('you are').waitFor();
    await page.locator('.loading').first().waitFor({ state: 'detached' });
    await page.locator('button.live').waitFor({ state: 'attached' });
    // What a part of the page asks for when it is there.
    while (asked.size > 0) await page.waitForEvent('requestfinished');
    await page.evaluate(() => document.fonts.ready);
    const file = join(folder, argument === '--docs' ? `dashboard-${name}.jpg` : `${name}-${width}-${theme}.jpg`);
    await page.screenshot({
      path: file,
      type: 'jpeg',
      quality: argument === '--docs' ? 72 : 60,
      fullPage: argument !== '--docs',
    });
    await context.close();
  }
  await browser.close();
}
