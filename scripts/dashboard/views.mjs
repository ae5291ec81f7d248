// The dashboard as a process (`holdfast ui`) and a real browser, for scripts that measure them.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const TOKEN = 'a-token-of-this-measurement';

/**
 * Starts both, and ends them after `use`, which is called with the address of the dashboard and a function that makes a new browser
 * context that may see it. `under`: a command that each is started by, such as `['taskset', '-c', '0']`.
 */
export async function withDashboard(store, use, { under = [], browserUnder = [] } = {}) {
  const [program, ...args] = [...under, process.execPath, COMMAND, '--store', store, 'ui', '--port', '0'];
  const env = { ...process.env, HOLDFAST_UI_TOKEN: TOKEN };
  const server = spawn(program, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    const [said] = await once(server.stdout, 'data');
    const [url] = String(said).match(/http:\/\/[\d.]+:\d+\//);
    const browser = await launch(browserUnder);
    try {
      const headers = { extraHTTPHeaders: { authorization: `Bearer ${TOKEN}` } };
      return await use({ url, pid: server.pid, context: () => browser.newContext(headers) });
    } finally {
      await browser.close();
    }
  } finally {
    if (server.exitCode === null) {
      server.kill('SIGTERM');
      await once(server, 'exit');
    }
  }
}

async function launch(under) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const executable = process.env.HOLDFAST_TEST_CHROMIUM ?? '/usr/bin/chromium';
  if (under.length === 0) return chromium.launch({ executablePath: executable, args });
  // Playwright starts one program, without others before it.
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-browser-'));
  const executablePath = join(folder, 'browser');
  writeFileSync(executablePath, `#!/bin/sh\nexec ${under.join(' ')} ${executable} "$@"\n`, { mode: 0o755 });
  try {
    return await chromium.launch({ executablePath, args });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * Opens the overview so many times, each time with an empty cache. Says how many milliseconds after the start of the navigation it shows
 * what needs attention, and the figures of the day.
 */
export function firstViews(store, times) {
  return withDashboard(store, async ({ url, context }) => {
    const views = [];
    for (let i = 0; i < times; i += 1) {
      const fresh = await context();
      const page = await fresh.newPage();
      await page.addInitScript(watch);
      await page.goto(url);
      const seen = await page.waitForFunction(() => {
        const { status, figures } = globalThis.seenAt ?? {};
        return status !== undefined && figures !== undefined && { status, figures };
      });
      views.push(await seen.jsonValue());
      await fresh.close();
    }
    return views;
  });
}

/** Runs in the page: notes when it shows what. */
function watch() {
  const { document, requestAnimationFrame, performance } = globalThis;
  const seenAt = {};
  globalThis.seenAt = seenAt;
  const look = () => {
    const isShown = (selector) => document.querySelector(selector) !== null;
    if (isShown('.attention, .all-clear')) seenAt.status ??= performance.now();
    if (isShown('.figures')) seenAt.figures ??= performance.now();
    if (seenAt.figures === undefined || seenAt.status === undefined) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
