// Measures Holdfast beside the raw floor and plainjob, alternated in one run, and prints medians and ratios.
//   npm run bench -- [--json] [--rounds 3] [--n 60000] [--only drain,fail]
// Every figure is a ratio within one run: the machine, the disk and its noise are the same for all of them.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values } = parseArgs({
  options: {
    json: { type: 'boolean', default: false },
    rounds: { type: 'string', default: '3' },
    n: { type: 'string', default: '60000' },
    only: { type: 'string' },
  },
});
const here = fileURLToPath(new URL('.', import.meta.url));
const rounds = Number(values.rounds);
const n = Number(values.n);

/** Runs one program of this folder, and reads the results that it prints, one JSON object a line. */
function measure(file, ...args) {
  const child = spawnSync(process.execPath, [file, ...args], { cwd: here, encoding: 'utf8', maxBuffer: 1 << 26 });
  if (child.status !== 0) throw new Error(`${file} ${args.join(' ')} failed:\n${child.stderr}`);
  return child.stdout
    .trim()
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line));
}

const results = [];
const only = values.only ? ['--only', values.only] : [];
for (let round = 0; round < rounds; round++) {
  const programs = [
    ['floor.mjs', 'sqlite', '--n', String(n)],
    ['holdfast.mjs', '--n', String(n), ...only],
    ['plainjob.mjs', '--n', String(Math.min(n, 20_000)), ...only],
  ];
  // A B C, then C B A: whoever runs later finds the disk as somebody else left it.
  for (const program of round % 2 === 0 ? programs : programs.reverse()) results.push(...measure(...program));
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const groups = groupBy(results);
const rows = [...groups.values()].map((same) => ({
  ...same[0],
  rate_per_s: same[0].rate_per_s === undefined ? undefined : median(same.map((one) => one.rate_per_s)),
  p50_ms: same[0].p50_ms === undefined ? undefined : median(same.map((one) => one.p50_ms)),
  p99_ms: same[0].p99_ms === undefined ? undefined : median(same.map((one) => one.p99_ms)),
}));

if (values.json) {
  for (const row of rows) console.log(JSON.stringify(row));
} else {
  print();
}

function print() {
  const floor = new Map(
    rows.filter((row) => row.system === 'floor-sqlite').map((row) => [row.scenario, row.rate_per_s]),
  );
  const base = (scenario) =>
    floor.get(scenario.startsWith('enqueue') ? 'enqueue' : scenario.startsWith('fail') ? 'fail' : 'drain');
  const line = (cells) =>
    console.log(cells.map((cell, i) => String(cell).padEnd([14, 34, 12, 12, 10, 10, 9][i])).join(''));
  line(['system', 'scenario', 'concurrency', 'per second', 'of floor', 'p50 ms', 'p99 ms']);
  for (const row of rows) {
    const ratio = row.rate_per_s && base(row.scenario) ? (row.rate_per_s / base(row.scenario)).toFixed(2) : '–';
    line([
      row.system,
      row.scenario,
      row.concurrency ?? '–',
      row.rate_per_s ?? '–',
      ratio,
      row.p50_ms ?? '–',
      row.p99_ms ?? '–',
    ]);
  }
}

function keyOf({ system, scenario, concurrency }) {
  return `${system} ${scenario} ${concurrency}`;
}

function groupBy(all) {
  const map = new Map();
  for (const one of all) map.set(keyOf(one), [...(map.get(keyOf(one)) ?? []), one]);
  return map;
}
