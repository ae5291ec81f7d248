// How fast a worker drains a store while ten pages of the dashboard are open, beside how fast it is alone, in turn:
//   npm run --silent build && node scripts/dashboard-beside.mjs [TASKS] [ROUNDS]
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const TASKS = Number(process.argv[2] ?? 20_000);
const ROUNDS = Number(process.argv[3] ?? 3);
const PAGES = [
  '',
  'tasks',
  'tasks?filter=state:dead',
  'failures',
  'inbox',
  'sources',
  'queues',
  'workers',
  'forecast',
  'audit',
];
const TOKEN = 'a-token-of-this-measurement';
const dist = new URL('../dist/', import.meta.url);

const folder = mkdtempSync(join(tmpdir(), 'holdfast-beside-'));
const store = join(folder, 'tasks.db');
const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);
const quick = defineTask('quick', { run: async () => 'done' });
const holdfast = await openHoldfast({ store: sqlite(store), tasks: [quick] });

/** Tasks a second. */
async function drained() {
  for (let n = 0; n < TASKS; n += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, TASKS - n) }, (_, i) => holdfast.enqueue(quick, n + i)));
  }
  const [start, before] = [performance.now(), process.cpuUsage()];
  await holdfast.worker({ concurrency: 50 }).drain();
  const { user, system } = process.cpuUsage(before);
  return { rate: TASKS / ((performance.now() - start) / 1_000), cpuMs: (user + system) / 1_000 };
}

async function withPages(measure) {
  const cli = fileURLToPath(new URL('cli/main.js', dist));
  const env = { ...process.env, HOLDFAST_UI_TOKEN: TOKEN };
  const server = spawn(process.execPath, [cli, '--store', store, 'ui', '--port', '0'], {
    env,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [said] = await once(server.stdout, 'data');
  const url = String(said).match(/http:\/\/[\d.]+:\d+\//)[0];
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({
    executablePath: process.env.HOLDFAST_TEST_CHROMIUM ?? '/usr/bin/chromium',
    args,
  });
  const context = await browser.newContext({ extraHTTPHeaders: { authorization: `Bearer ${TOKEN}` } });
  for (const path of PAGES) {
    const page = await context.newPage();
    await page.goto(`${url}${path}`);
    await page.getByText('you are').waitFor();
  }
  try {
    return await measure();
  } finally {
    await browser.close();
    server.kill('SIGTERM');
    await once(server, 'exit');
  }
}

const alone = [];
const beside = [];
try {
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await drained());
    beside.push(await withPages(drained));
  }
} finally {
  await holdfast.close();
  rmSync(folder, { recursive: true, force: true });
}
const best = (runs) => Math.max(...runs.map(({ rate }) => rate));
const cpu = (runs) => Math.min(...runs.map(({ cpuMs }) => cpuMs));
const line = (name, runs) =>
  `${name.padEnd(24)} ${Math.round(best(runs))} tasks/s, ${Math.round(cpu(runs))} ms of processor time`;
process.stdout.write(
  `${line('alone', alone)}\n${line('beside ten open pages', beside)}\nratio of the rates        ${(best(beside) / best(alone)).toFixed(2)}\n`,
);
