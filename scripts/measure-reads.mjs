// Measures what people look at in a large store (`npm run large-store`): in this process, and as a command from its start to its end.
//   npm run measure:reads -- FILE.db|postgres://… [--runs 7]
// Prints milliseconds: the fastest of the runs, and the processor time of a run, which other programs of the machine change less. Each
// command runs in turn with a Node that does nothing, whose time is part of that of the command. Fails if something takes longer than it may.
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { parseFilter } from '../dist/filter.js';
import { openHoldfast } from '../dist/index.js';
import { postgres } from '../dist/store/postgres/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';

const COMMAND = fileURLToPath(new URL('../dist/cli/main.js', import.meta.url));
const MAY_TAKE = 150;
const VERSION_MAY_TAKE = 60;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { runs: { type: 'string', default: '7' } },
});
const [address] = positionals;
const runs = Number(values.runs);
if (address === undefined) throw new Error('usage: npm run measure:reads -- FILE.db|postgres://… [--runs 7]');

/** Filters: of many tasks, of few, of none. */
const FILTERS = [
  'state:dead',
  'state:ready',
  'state:succeeded',
  'state:dead reason:http.*',
  'state:dead since:2h',
  'type:mail.send',
  'source:http:api-7.example',
  'source:nothing.example',
  'reason:never.seen',
  'error:"nothing like this"',
  'fingerprint:0000000000000000',
  'state:dead type:never',
];

const COMMANDS = {
  version: ['--version'],
  help: ['--help'],
  status: ['status'],
  'status --json': ['status', '--json'],
  stats: ['stats'],
  failures: ['failures'],
  inbox: ['inbox'],
  sources: ['sources'],
  queues: ['queues'],
  workers: ['workers'],
  list: ['list'],
  'list --json': ['list', '--json'],
  ...Object.fromEntries(FILTERS.map((filter) => [`list ${filter}`, ['list', filter]])),
};

const holdfast = await openHoldfast({ store: address.startsWith('postgres') ? postgres(address) : sqlite(address) });
const { administration } = holdfast;
const IN_PROCESS = {
  stats: () => holdfast.stats(),
  failures: () => holdfast.failures.list(),
  sources: () => administration.countsBy('source', 50),
  queues: () => administration.countsBy('queue', 10_000),
  workers: () => holdfast.workers(),
  list: () => holdfast.list({ limit: 51 }),
  ...Object.fromEntries(
    FILTERS.map((filter) => [
      `list ${filter}`,
      () => administration.search(parseFilter(filter, new Date()), { limit: 50, most: 100_000 }),
    ]),
  ),
  counts: () => holdfast.counts(),
  'oldest ready': () => administration.oldestReady(),
  'oldest running': () => administration.oldestRunning(),
  'without worker': () => administration.withoutWorker(1_000),
  'sources in trouble': () => administration.sourcesInTrouble(21),
  'select of the inbox': () => administration.select({ states: ['needs_manual'] }),
};

const slow = [];
const heads = ['in process', 'processor', 'command', 'processor', 'empty Node']
  .map((head) => head.padStart(12))
  .join('');
console.log(`${'milliseconds'.padEnd(36)}${heads}`);
for (const name of new Set([...Object.keys(COMMANDS), ...Object.keys(IN_PROCESS)])) {
  const inside = IN_PROCESS[name] && (await timed(IN_PROCESS[name], ownProcessorTime));
  const command = COMMANDS[name] && (await timed(() => runCommand(COMMANDS[name]), processorTimeOfChildren, runEmpty));
  const most = name === 'version' ? VERSION_MAY_TAKE : MAY_TAKE;
  const isSlow = (inside?.fastest ?? 0) > MAY_TAKE || (command?.fastest ?? 0) > most;
  if (isSlow) slow.push(name);
  const times = [inside?.fastest, inside?.processor, command?.fastest, command?.processor, command?.fastestOther];
  const shown = times.map((time) => (time?.toFixed(1) ?? '').padStart(12)).join('');
  console.log(`${name.padEnd(36)}${shown}${isSlow ? '  slow' : ''}`);
}
await holdfast.close();
if (slow.length > 0) {
  console.log(`Slower than ${MAY_TAKE} ms (--version: ${VERSION_MAY_TAKE} ms): ${slow.join(', ')}`);
  process.exitCode = 1;
}

/** `other` is measured in turn with it. */
async function timed(measured, processorTime, other) {
  let [fastest, fastestOther, processor] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0];
  for (let run = 0; run < runs; run += 1) {
    if (other) fastestOther = Math.min(fastestOther, await millisecondsOf(other));
    const before = processorTime();
    fastest = Math.min(fastest, await millisecondsOf(measured));
    processor += processorTime() - before;
  }
  return { fastest, ...(other && { fastestOther }), ...(!Number.isNaN(processor) && { processor: processor / runs }) };
}

async function millisecondsOf(measured) {
  const from = performance.now();
  await measured();
  return performance.now() - from;
}

function ownProcessorTime() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

/** Of the children that have ended. Linux counts it in hundredths of a second. */
function processorTimeOfChildren() {
  if (process.platform !== 'linux') return Number.NaN;
  const [user, system] = readFileSync('/proc/self/stat', 'utf8').split(') ')[1].split(' ').slice(13, 15).map(Number);
  return (user + system) * 10;
}

function runEmpty() {
  spawnSync(process.execPath, ['-e', '0']);
}

function runCommand(args) {
  const store = args[0].startsWith('-') ? [] : ['--store', address];
  const { status, stderr } = spawnSync(process.execPath, [COMMAND, ...args, ...store], { encoding: 'utf8' });
  if (status !== 0) throw new Error(`holdfast ${args.join(' ')} ended with ${status}: ${stderr}`);
}
