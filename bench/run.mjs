// Measures Holdfast beside the raw floor and other queues, alternated in one run; README.md here says what each scenario is.
// Every program runs in a process of its own. Their files stand in a temporary folder, and their databases on a server, that go
// when the run ends.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HERE, killAll, run } from './child.mjs';
import { combine, withRatios } from './figures.mjs';
import { PLAN, programsOf, STORES } from './plan.mjs';
import { KEPT, publish } from './publish.mjs';
import { withServer } from './server.mjs';
import { tablesOf } from './table.mjs';
import { verdicts } from './targets.mjs';

const HELP = `npm run bench -- [options]

  --store S     which store is measured: ${STORES.join(' or ')}, or both with a comma (sqlite; with --all both); for postgres a server
                is started and thrown away
  --rounds N    how often everything is measured; figures are medians (3)
  --n N         how many tasks of a scenario (100000); others than Holdfast have fewer where they are slow
  --only A,B    only the scenarios whose name contains one of these
  --all         the heavy scenarios too, which take minutes: ${namesOf(PLAN.filter(({ heavy }) => heavy))}
  --size N      what a million is in the heavy ones (1000000); a smaller one is not judged where it would show nothing
  --quick       2 rounds of 30000 tasks; the heavy scenarios once and, but for memory, at a size of 250000. With --all: 25 minutes
  --keep        keep the figures in bench/kept.json, and make the tables of docs/internals/performance.md and its plot from it
  --dir DIR     where the files stand (${tmpdir()}): the disk that is measured
  --json        one JSON object a line instead of the table

Scenarios: ${namesOf(PLAN)}.`;

const { values } = parseArgs({
  options: {
    store: { type: 'string' },
    rounds: { type: 'string' },
    n: { type: 'string' },
    only: { type: 'string' },
    all: { type: 'boolean', default: false },
    size: { type: 'string' },
    quick: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    dir: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

/** How busy the machine was with other things: what a run itself makes of it comes later. */
const [LOAD_BEFORE] = loadavg();

const EXTENT = values.quick ? { rounds: 2, n: 30_000, size: 250_000 } : { rounds: 3, n: 100_000, size: 1_000_000 };

const MEASURE = {
  async sqlite(wanted, options) {
    return runOf(await resultsOfRounds(wanted, options), { store: 'sqlite' });
  },

  postgres: (wanted, options) =>
    withServer(values.dir, async ({ url, words }) => {
      console.error(words);
      return runOf(await resultsOfRounds(wanted, { ...options, url }), { store: 'postgres', server: words });
    }),
};

if (values.help) {
  console.log(HELP);
} else {
  const wanted = PLAN.filter(isWanted).map((scenario) => ({
    ...scenario,
    size: values.size ? whole('size') : (scenario.size ?? EXTENT.size),
    isOnce: values.quick && scenario.heavy,
  }));
  if (wanted.length === 0) refuse(`No scenario is called ${values.only}. There are: ${namesOf(PLAN)}.`);
  const stores = values.store?.split(',') ?? (values.all ? STORES : ['sqlite']);
  for (const store of stores) {
    if (!STORES.includes(store)) refuse(`--store must be ${STORES.join(' or ')}, got ${store}.`);
  }
  await measure(stores, wanted, { rounds: whole('rounds'), n: whole('n') });
}

/** Heavy scenarios are measured where they are named or everything is asked for. */
function isWanted({ name, heavy }) {
  return values.only ? values.only.split(',').some((part) => name.includes(part.trim())) : values.all || !heavy;
}

async function measure(stores, wanted, options) {
  install();
  const dir = mkdtempSync(join(values.dir, 'holdfast-bench-'));
  const leave = () => {
    killAll();
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => {
      leave();
      process.exit(1);
    });
  }
  try {
    const runs = [];
    for (const store of stores) {
      const run = await MEASURE[store](wanted, { ...options, dir, store });
      print(run);
      runs.push(run);
    }
    if (values.keep) keep(runs);
  } finally {
    leave();
  }
}

async function resultsOfRounds(wanted, { rounds, ...options }) {
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const inThisRound = wanted.filter(({ isOnce }) => round === 0 || !isOnce);
    const programs = programsOf(inThisRound, { ...options, round }).filter(canRun);
    // A B C, then C B A: whoever runs later finds the disk as somebody else left it.
    for (const program of round % 2 === 0 ? programs : programs.reverse()) {
      console.error(`round ${round + 1} of ${rounds}: ${program.what}`);
      results.push(...(await resultsOf(program)));
    }
  }
  return results;
}

/** Servers of others are no package of npm. */
function canRun({ what, needs }) {
  if (!needs || !spawnSync(needs, ['--version']).error) return true;
  console.error(`${what} is not measured: ${needs} is not installed (apt-get install ${needs}).`);
  return false;
}

/** What one program measured. One that fails is told of, and takes no other figure along. */
async function resultsOf({ what, file, args, adapt }) {
  try {
    return (await run(file, args)).map(adapt ?? ((result) => result)).filter(Boolean);
  } catch (error) {
    console.error(`${what} could not be measured: ${error.message}`);
    process.exitCode = 1;
    return [];
  }
}

function runOf(results, { store, server }) {
  const rows = withRatios(combine(results), `floor-${store}`);
  return { store, ...(server && { server }), rows, targets: verdicts(rows, store) };
}

function print({ server, rows, targets }) {
  if (!values.json) {
    if (server) console.log(`${server}\n`);
    return console.log(`${tablesOf(rows, targets)}\n`);
  }
  for (const row of rows) {
    const judged = targets
      .filter(
        ({ system, scenario, concurrency }) =>
          system === row.system && scenario === row.scenario && concurrency === row.concurrency,
      )
      .map(({ system, scenario, concurrency, ...target }) => target);
    console.log(JSON.stringify({ ...row, ...(server && { server }), ...(judged.length > 0 && { targets: judged }) }));
  }
}

/** The figures stand in a file, from which what is published of them is made again at any time. */
function keep(runs) {
  const [{ model }, ...others] = cpus();
  const machine = `${others.length + 1} cores (${model.trim()}), Node ${process.versions.node}`;
  const load = LOAD_BEFORE.toFixed(1);
  const command = ['npm run bench --', ...process.argv.slice(2)].join(' ');
  const kept = { date: new Date().toISOString().slice(0, 10), machine, load, command, runs };
  writeFileSync(KEPT, `${JSON.stringify(kept, null, 2)}\n`);
  publish(kept);
}

/** The packages to compare with are no part of Holdfast's own. */
function install() {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
  if (Object.keys(dependencies).every((name) => existsSync(join(HERE, 'node_modules', name)))) return;
  const { status } = spawnSync('npm', ['ci', '--silent'], { cwd: HERE, stdio: ['ignore', 2, 2] });
  if (status !== 0) refuse('The packages of bench/ could not be installed: npm ci failed there.');
}

function whole(option) {
  const value = Number(values[option] ?? EXTENT[option]);
  if (!Number.isInteger(value) || value < 1)
    refuse(`--${option} must be a whole number from 1, got ${values[option]}.`);
  return value;
}

function refuse(why) {
  console.error(why);
  process.exit(2);
}

function namesOf(plan) {
  return plan.map(({ name }) => name).join(', ');
}
