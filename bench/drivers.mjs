// Measures Holdfast on both SQLite libraries side by side: better-sqlite3 on this Node, and on Node 24 better-sqlite3 and node:sqlite.
// What counts is the processor time of the whole program: unlike a rate, it hardly depends on what else the machine does.
//   npm run bench:drivers                 prints the table
//   npm run bench:drivers -- --keep       puts it into docs/internals/performance.md too
// Node 24, and better-sqlite3 compiled for it (a minute), are kept in bench/node_modules/.drivers.
import { spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    n: { type: 'string', default: '30000' },
    dir: { type: 'string', default: tmpdir() },
    keep: { type: 'boolean', default: false },
  },
});

const root = fileURLToPath(new URL('..', import.meta.url));
const cache = join(root, 'bench/node_modules/.drivers');
const [LOAD] = loadavg();

/** The scenarios of holdfast.mjs, and how many tasks each has. */
const SCENARIOS = {
  'enqueue one by one': 5_000,
  'enqueue bulk': Number(values.n),
  'drain 10': Number(values.n),
  fail: Number(values.n),
};

/** Printed at the end of a program: the processor time that it took. */
const CPU = `data:text/javascript,process.on('exit', () => {
  const { user, system } = process.cpuUsage();
  console.log(JSON.stringify({ cpuMs: (user + system) / 1000 }));
})`;

const node24 = installed();
const place = mkdtempSync(join(values.dir, 'holdfast-drivers-'));
try {
  const on24 = installationFor24();
  const setups = [
    { name: 'better-sqlite3, this Node', node: process.execPath, at: root },
    { name: 'better-sqlite3, Node 24', node: node24, at: on24, driver: 'better-sqlite3' },
    { name: 'node:sqlite, Node 24', node: node24, at: on24, driver: 'node:sqlite' },
  ];
  const least = new Map();
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [scenario, n] of Object.entries(SCENARIOS)) {
      // A B C, then C B A: whoever runs later finds the machine as somebody else left it.
      for (const setup of round % 2 === 0 ? setups : setups.slice().reverse()) {
        console.error(`round ${round + 1}: ${scenario}, ${setup.name}`);
        const key = `${setup.name}/${scenario}`;
        least.set(
          key,
          Math.min(least.get(key) ?? Number.POSITIVE_INFINITY, (1_000 * measured(setup, scenario, n)) / n),
        );
      }
    }
  }
  report(setups, least);
} finally {
  rmSync(place, { recursive: true, force: true });
}

/** Node 24 and better-sqlite3 for it. Returns its program. */
function installed() {
  const node = join(cache, 'node_modules/node24');
  const { version } = JSON.parse(readFileSync(join(root, 'node_modules/better-sqlite3/package.json'), 'utf8'));
  const built = join(cache, 'node_modules/better-sqlite3/build/Release/better_sqlite3.node');
  if (existsSync(join(node, 'bin/node')) && existsSync(built)) return join(node, 'bin/node');
  mkdirSync(cache, { recursive: true });
  writeFileSync(join(cache, 'package.json'), '{ "private": true, "allowScripts": { "better-sqlite3": true } }');
  const platform = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  npm([`node24@npm:node-${platform}@24`]);
  // Its headers come with it.
  npm([`better-sqlite3@${version}`], { PATH: `${join(node, 'bin')}:${process.env.PATH}`, npm_config_nodedir: node });
  return join(node, 'bin/node');
}

function npm(packages, env = {}) {
  const { status } = spawnSync('npm', ['install', '--no-audit', '--no-fund', ...packages], {
    cwd: cache,
    env: { ...process.env, ...env },
    stdio: ['ignore', 2, 2],
  });
  if (status !== 0) throw new Error(`npm install ${packages.join(' ')} failed.`);
}

/** This checkout again, with the better-sqlite3 that Node 24 loads. */
function installationFor24() {
  for (const part of ['dist', 'package.json']) cpSync(join(root, part), join(place, 'copy', part), { recursive: true });
  const isOwn = (path) => !path.includes('node_modules');
  cpSync(join(root, 'bench'), join(place, 'copy/bench'), {
    recursive: true,
    filter: (path) => isOwn(path.slice(root.length)),
  });
  const modules = join(place, 'copy/node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(root, 'node_modules'))) {
    if (!name.startsWith('.') && name !== 'better-sqlite3')
      symlinkSync(join(root, 'node_modules', name), join(modules, name));
  }
  symlinkSync(join(cache, 'node_modules/better-sqlite3'), join(modules, 'better-sqlite3'));
  return join(place, 'copy');
}

/** The processor time of a scenario, in milliseconds. */
function measured({ node, at, driver }, scenario, n) {
  const dir = mkdtempSync(join(place, 'store-'));
  const options = JSON.stringify({ n, dir });
  const { status, stdout, stderr } = spawnSync(node, ['--import', CPU, 'holdfast.mjs', scenario, options], {
    cwd: join(at, 'bench'),
    env: { ...process.env, ...(driver && { HOLDFAST_BENCH_DRIVER: driver }) },
    encoding: 'utf8',
  });
  rmSync(dir, { recursive: true });
  if (status !== 0) throw new Error(`${scenario} ended with ${status}.\n${stderr}`);
  return JSON.parse(stdout.trim().split('\n').at(-1)).cpuMs;
}

function report(setups, least) {
  const names = Object.keys(SCENARIOS);
  const [first] = setups;
  const cell = (setup, scenario) => {
    const [own, usual] = [setup, first].map(({ name }) => least.get(`${name}/${scenario}`));
    return `${own.toFixed(0)} µs${setup === first ? '' : ` (× ${(own / usual).toFixed(2)})`}`;
  };
  const rows = [
    ['', ...names],
    ['---', ...names.map(() => '---')],
    ...setups.map((setup) => [setup.name, ...names.map((name) => cell(setup, name))]),
  ];
  const table = rows.map((cells) => `| ${cells.join(' | ')} |`).join('\n');
  const date = new Date().toISOString().slice(0, 10);
  const command = ['npm run bench:drivers --', ...process.argv.slice(2)].join(' ');
  const words = `${date}, ${cpus().length} cores (${cpus()[0].model.trim()}), this Node is ${process.versions.node}, load average before it ${LOAD.toFixed(1)}: \`${command}\`. Processor time per task, the least of ${values.rounds} runs; the start of Node is in it.`;
  console.log(`${words}\n\n${table}`);
  if (!values.keep) return;
  const page = join(root, 'docs/internals/performance.md');
  const marked = /(<!-- DRIVERS -->\n).*?(\n<!-- END OF DRIVERS -->)/s;
  writeFileSync(
    page,
    readFileSync(page, 'utf8').replace(marked, (_, begin, end) => `${begin}\n${words}\n\n${table}\n${end}`),
  );
  spawnSync(join(root, 'node_modules/.bin/biome'), ['format', '--write', page]);
}
