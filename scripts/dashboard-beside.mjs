// How fast a worker drains a store while ten pages of the dashboard are open, beside how fast it is while they are closed:
//   npm run --silent build && node scripts/dashboard-beside.mjs [TASKS] [PAIRS]
// Short drains with the pages open and closed follow each other in the same run, in the order open, closed, closed, open: what other programs of
// the machine do meanwhile hits both. The ratio is the median of the pairs.
// With two processors or more, this program and the dashboard's server have the first, and the browser the second: as if somebody looked
// from another machine. What the pages cost the worker is then what they ask of the server and the store. It starts itself again
// pinned to the first one. HOLDFAST_UNPINNED=1 lets the system place everything.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { withDashboard } from './dashboard/views.mjs';

const TASKS = Number(process.argv[2] ?? 20_000);
const PAIRS = Number(process.argv[3] ?? 10);
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
const pinned = process.env.HOLDFAST_PINNED === '1';
const canPin =
  process.platform === 'linux' && availableParallelism() > 1 && process.env.HOLDFAST_UNPINNED === undefined;
if (!pinned && canPin) {
  const env = { ...process.env, HOLDFAST_PINNED: '1' };
  const { status } = spawnSync('taskset', ['-c', '0', process.execPath, ...process.argv.slice(1)], {
    stdio: 'inherit',
    env,
  });
  process.exit(status ?? 1);
}

const dist = new URL('../dist/', import.meta.url);
const folder = mkdtempSync(join(tmpdir(), 'holdfast-beside-'));
const store = join(folder, 'tasks.db');
const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);
const quick = defineTask('quick', { run: async () => 'done' });
const holdfast = await openHoldfast({ store: sqlite(store), tasks: [quick] });

/** Tasks a second, and the processor time of this program and of the server meanwhile, in milliseconds. */
async function drained(server) {
  for (let n = 0; n < TASKS; n += 1_000) {
    await Promise.all(Array.from({ length: Math.min(1_000, TASKS - n) }, (_, i) => holdfast.enqueue(quick, n + i)));
  }
  const [start, before, served] = [performance.now(), process.cpuUsage(), processorTimeOf(server)];
  await holdfast.worker({ concurrency: 50 }).drain();
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - start) / 1_000;
  return { rate: TASKS / seconds, cpuMs: (user + system) / 1_000, serverMs: processorTimeOf(server) - served };
}

/** Linux counts it in hundredths of a second. */
function processorTimeOf(pid) {
  if (pid === undefined || process.platform !== 'linux') return 0;
  const [user, system] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ').slice(11, 13).map(Number);
  return (user + system) * 10;
}

/** Opens all pages, or closes them: an empty page asks for nothing. */
async function show(pages, url) {
  await Promise.all(
    pages.map(async (page, i) => {
      await page.goto(url === undefined ? 'about:blank' : `${url}${PAGES[i]}`);
      if (url !== undefined) await page.getByText('you are').waitFor();
    }),
  );
}

/** Waits until the server has answered what the pages asked when they were opened. */
async function atRest(server) {
  for (let last = -1; last !== processorTimeOf(server); await delay(300)) last = processorTimeOf(server);
}

const [open, closed] = [[], []];
try {
  // The first drain of a process is slower.
  await drained();
  await withDashboard(
    store,
    async ({ url, pid, context }) => {
      const browser = await context();
      const pages = [];
      for (const _ of PAGES) pages.push(await browser.newPage());
      for (let pair = 0; pair < PAIRS; pair += 1) {
        for (const isOpen of pair % 2 === 0 ? [true, false] : [false, true]) {
          await show(pages, isOpen ? url : undefined);
          await atRest(pid);
          (isOpen ? open : closed).push(await drained(pid));
        }
      }
    },
    pinned ? { browserUnder: ['taskset', '-c', '1'] } : {},
  );
} finally {
  await holdfast.close();
  rmSync(folder, { recursive: true, force: true });
}
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const line = (name, runs) => {
  const [rate, worked, served] = ['rate', 'cpuMs', 'serverMs'].map((what) =>
    Math.round(median(runs.map((run) => run[what]))),
  );
  return `${name.padEnd(24)} ${rate} tasks/s, ${worked} ms of processor time of the worker, ${served} ms of the dashboard's server`;
};
const ratios = open.map(({ rate }, i) => rate / closed[i].rate);
const shares = open.map(({ cpuMs, serverMs }, i) => closed[i].cpuMs / (cpuMs + serverMs));
const range = (numbers) =>
  `${median(numbers).toFixed(2)} (${Math.min(...numbers).toFixed(2)} to ${Math.max(...numbers).toFixed(2)})`;
process.stdout.write(
  `${line('pages closed', closed)}\n${line('ten pages open', open)}\n` +
    `${'ratio of the rates'.padEnd(24)} ${range(ratios)} (${pinned ? 'the browser has a processor of its own' : 'the browser is on the same processors'}; load of the machine ${loadavg()[0].toFixed(1)})\n` +
    `${'by processor time'.padEnd(24)} ${range(shares)}: of the worker with closed pages, to the worker and the server with open ones\n`,
);
