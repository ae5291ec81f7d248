// How fast a worker drains a store while ten pages of the dashboard are open, beside how fast it is while they are closed:
//   npm run --silent build && node scripts/dashboard-beside.mjs [TASKS] [PAIRS]
// Short drains with the pages open and closed follow each other in the same run, in the order open, closed, closed, open: what other programs of
// the machine do meanwhile hits both. The ratio is the median of the pairs.
// With two processors or more, the worker and the dashboard's server have the first, and the browser with this program, which drives it, the
// second: as if somebody looked from another machine. What the pages cost the worker is then what they ask of the server and the store.
// HOLDFAST_UNPINNED=1 lets the system place everything.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
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
/** Set in the process of the worker. */
const STORE = process.env.HOLDFAST_BESIDE_STORE;

if (STORE === undefined) await compare();
else await work(STORE);

/** The worker: enqueues tasks and drains them whenever it is asked. */
async function work(store) {
  const dist = new URL('../dist/', import.meta.url);
  const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
  const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);
  const quick = defineTask('quick', { run: async () => 'done' });
  const holdfast = await openHoldfast({ store: sqlite(store), tasks: [quick] });
  process.on('message', async (server) => {
    for (let n = 0; n < TASKS; n += 1_000) {
      await Promise.all(Array.from({ length: Math.min(1_000, TASKS - n) }, (_, i) => holdfast.enqueue(quick, n + i)));
    }
    const [start, before, served] = [performance.now(), process.cpuUsage(), processorTimeOf(server)];
    await holdfast.worker({ concurrency: 50 }).drain();
    const { user, system } = process.cpuUsage(before);
    const rate = TASKS / ((performance.now() - start) / 1_000);
    process.send({ rate, cpuMs: (user + system) / 1_000, serverMs: processorTimeOf(server) - served });
  });
  process.on('disconnect', () => holdfast.close());
  process.send('ready');
}

async function compare() {
  const isPinned =
    process.platform === 'linux' && availableParallelism() > 1 && process.env.HOLDFAST_UNPINNED === undefined;
  const on = (processor) => (isPinned ? ['taskset', '-c', processor] : []);
  if (isPinned) spawnSync('taskset', ['-cp', '1', String(process.pid)]);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-beside-'));
  const store = join(folder, 'tasks.db');
  const [program, ...args] = [...on('0'), process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const env = { ...process.env, HOLDFAST_BESIDE_STORE: store };
  const worker = spawn(program, args, { env, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] });
  const [open, closed] = [[], []];
  try {
    await once(worker, 'message');
    /** Tasks a second, and the processor time of the worker and of the server meanwhile, in milliseconds. */
    const drained = async (server) => {
      worker.send(server ?? 0);
      return (await once(worker, 'message'))[0];
    };
    // The first drains of a process are slower.
    for (let i = 0; i < 4; i += 1) await drained();
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
      { under: on('0'), browserUnder: on('1') },
    );
  } finally {
    if (worker.connected) worker.disconnect();
    if (worker.exitCode === null) await once(worker, 'exit');
    rmSync(folder, { recursive: true, force: true });
  }
  print(open, closed, isPinned);
}

/** Linux counts it in hundredths of a second. */
function processorTimeOf(pid) {
  if (!pid || process.platform !== 'linux') return 0;
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

function print(open, closed, isPinned) {
  const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
  const line = (name, runs) => {
    const of = (what) => Math.round(median(runs.map((run) => run[what])));
    return `${name.padEnd(24)} ${of('rate')} tasks/s, ${of('cpuMs')} ms of processor time of the worker, ${of('serverMs')} ms of the dashboard's server`;
  };
  const range = (numbers) =>
    `${median(numbers).toFixed(2)} (${Math.min(...numbers).toFixed(2)} to ${Math.max(...numbers).toFixed(2)})`;
  const ratios = open.map(({ rate }, i) => rate / closed[i].rate);
  const shares = open.map(({ cpuMs, serverMs }, i) => closed[i].cpuMs / (cpuMs + serverMs));
  const where = isPinned ? 'the browser has a processor of its own' : 'the browser is on the same processors';
  process.stdout.write(
    `${line('pages closed', closed)}\n${line('ten pages open', open)}\n` +
      `${'ratio of the rates'.padEnd(24)} ${range(ratios)} (${where}; load of the machine ${loadavg()[0].toFixed(1)})\n` +
      `${'by processor time'.padEnd(24)} ${range(shares)}: of the worker with closed pages, to the worker and the server with open ones\n`,
  );
}
