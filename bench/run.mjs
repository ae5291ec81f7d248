// Measures Holdfast beside the raw floor and other queues, alternated in one run; README.md here says what each scenario is.
// Every program runs in a process of its own. Their files stand in a temporary folder, and their databases on a server, that go
// when the run ends.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { HERE, killAll, run } from './child.mjs';
import { combine, withRatios } from './figures.mjs';
import { PLAN, programsOf, STORES } from './plan.mjs';
import { withServer } from './server.mjs';
import { printTable } from './table.mjs';
import { verdicts } from './targets.mjs';

const HELP = `npm run bench -- [options]

  --store S     which store is measured: ${STORES.join(' or ')} (sqlite); for postgres a server is started and thrown away
  --rounds N    how often everything is measured; figures are medians (3)
  --n N         how many tasks of a scenario (100000); others than Holdfast have fewer where they are slow
  --only A,B    only the scenarios whose name contains one of these
  --all         the heavy scenarios too, which take minutes: ${namesOf(PLAN.filter(({ heavy }) => heavy))}
  --size N      what a million is in the heavy ones (1000000); a smaller one is for trying out, and is not judged
  --dir DIR     where the files stand (${tmpdir()}): the disk that is measured
  --json        one JSON object a line instead of the table

Scenarios: ${namesOf(PLAN)}.`;

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    rounds: { type: 'string', default: '3' },
    n: { type: 'string', default: '100000' },
    only: { type: 'string' },
    all: { type: 'boolean', default: false },
    size: { type: 'string', default: '1000000' },
    dir: { type: 'string', default: tmpdir() },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', short: 'h', default: false },
  },
});

if (values.help) {
  console.log(HELP);
} else {
  const wanted = PLAN.filter(isWanted);
  if (wanted.length === 0) refuse(`No scenario is called ${values.only}. There are: ${namesOf(PLAN)}.`);
  if (!STORES.includes(values.store)) refuse(`--store must be ${STORES.join(' or ')}, got ${values.store}.`);
  await measure(wanted, { rounds: whole('rounds'), n: whole('n'), size: whole('size') });
}

/** Heavy scenarios are measured where they are named or everything is asked for. */
function isWanted({ name, heavy, store }) {
  if (store && store !== values.store) return false;
  return values.only ? values.only.split(',').some((part) => name.includes(part.trim())) : values.all || !heavy;
}

async function measure(wanted, options) {
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
    if (values.store === 'sqlite') report(await resultsOfRounds(wanted, { ...options, dir }));
    else {
      await withServer(values.dir, async ({ url, words }) => {
        console.error(words);
        report(await resultsOfRounds(wanted, { ...options, dir, url }), words);
      });
    }
  } finally {
    leave();
  }
}

async function resultsOfRounds(wanted, { rounds, ...options }) {
  const results = [];
  for (let round = 0; round < rounds; round++) {
    const programs = programsOf(wanted, { ...options, store: values.store, round });
    // A B C, then C B A: whoever runs later finds the disk as somebody else left it.
    for (const program of round % 2 === 0 ? programs : programs.reverse()) {
      console.error(`round ${round + 1} of ${rounds}: ${program.what}`);
      results.push(...(await resultsOf(program)));
    }
  }
  return results;
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

function report(results, server) {
  const rows = withRatios(combine(results), `floor-${values.store}`);
  const judged = verdicts(rows, values.store);
  if (!values.json) {
    if (server) console.log(`${server}\n`);
    return printTable(rows, judged);
  }
  for (const row of rows) {
    const targets = judged.filter((verdict) => verdict.row === row).map(({ row: _, ...verdict }) => verdict);
    console.log(JSON.stringify({ ...row, ...(server && { server }), ...(targets.length > 0 && { targets }) }));
  }
}

/** The packages to compare with are no part of Holdfast's own. */
function install() {
  const { dependencies } = JSON.parse(readFileSync(join(HERE, 'package.json'), 'utf8'));
  if (Object.keys(dependencies).every((name) => existsSync(join(HERE, 'node_modules', name)))) return;
  const { status } = spawnSync('npm', ['ci', '--silent'], { cwd: HERE, stdio: ['ignore', 2, 2] });
  if (status !== 0) refuse('The packages of bench/ could not be installed: npm ci failed there.');
}

function whole(option) {
  const value = Number(values[option]);
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
