// How fast a worker drains a store while ten pages of the dashboard are open, beside how fast it is alone, in turn:
//   npm run --silent build && node scripts/dashboard-beside.mjs [TASKS] [ROUNDS]
// With two processors or more, this program and the dashboard's server have the first, and the browser the second: as if somebody looked
// from another machine. What the pages cost the worker is then what they ask of the server and the store. It starts itself again
// pinned to the first one. HOLDFAST_UNPINNED=1 lets the system place everything.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { withDashboard } from './dashboard/views.mjs';

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

const withPages = (measure) =>
  withDashboard(
    store,
    async ({ url, pid, context }) => {
      const browser = await context();
      for (const path of PAGES) {
        const page = await browser.newPage();
        await page.goto(`${url}${path}`);
        await page.getByText('you are').waitFor();
      }
      return await measure(pid);
    },
    pinned ? { browserUnder: ['taskset', '-c', '1'] } : {},
  );

const alone = [];
const beside = [];
try {
  // The first drain of a process is slower.
  await drained();
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(await drained());
    beside.push(await withPages(drained));
  }
} finally {
  await holdfast.close();
  rmSync(folder, { recursive: true, force: true });
}
const most = (runs, what) => Math.max(...runs.map((run) => run[what]));
const least = (runs, what) => Math.min(...runs.map((run) => run[what]));
const line = (name, runs) =>
  `${name.padEnd(28)} ${Math.round(most(runs, 'rate'))} tasks/s, ${Math.round(least(runs, 'cpuMs'))} ms of processor time of the worker, ${Math.round(least(runs, 'serverMs'))} ms of the dashboard's server`;
const ratio = most(beside, 'rate') / most(alone, 'rate');
const worked = least(alone, 'cpuMs');
const share = worked / (least(beside, 'cpuMs') + least(beside, 'serverMs'));
process.stdout.write(
  `${line('alone', alone)}\n${line('beside ten open pages', beside)}\n` +
    `${'ratio of the rates'.padEnd(28)} ${ratio.toFixed(2)} (${pinned ? 'the browser has a processor of its own' : 'the browser is on the same processors'}; load of the machine ${loadavg()[0].toFixed(1)})\n` +
    `${'ratio by processor time'.padEnd(28)} ${share.toFixed(2)}: of the worker alone, to the worker beside pages with their server on the same processor\n`,
);
