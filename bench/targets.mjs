// What the figures should reach. A report and no test: the machine is never quiet.
import { ratioOf } from './figures.mjs';

const MILLION = 1_000_000;

/** From so many tasks on, it shows whether the others slow down a drain. */
const DEEP = 200_000;

/** For each store. `row` and `of` name a row by system, scenario and concurrency. */
const TARGETS = {
  sqlite: [
    ...targetsOfBoth('floor-sqlite', { drain: 0.8, drainOne: 0.7, fail: 0.5, concurrent: 0.75, bulk: 0.75, idle: 2 }),
    { row: ['holdfast', 'drain', 100], of: ['plainjob', 'drain', 100], atLeast: 4 },
    ...targetsOfStarts(5),
    { row: ['holdfast', 'memory', 100], figure: 'peak_mb', atMost: 140, size: MILLION },
    { row: ['holdfast', 'cli status', 1], figure: 'p50_ms', atMost: 150, size: DEEP },
  ],
  postgres: [
    ...targetsOfBoth('floor-postgres', { drain: 1, drainOne: 0.7, fail: 0.6, concurrent: 0.5, bulk: 0.6, idle: 2.5 }),
    { row: ['holdfast', 'drain', 100], of: ['graphile-worker', 'drain', 100], atLeast: 1.5 },
    { row: ['holdfast', 'drain', 1], of: ['graphile-worker', 'drain', 1], atLeast: 1 },
    { row: ['holdfast', 'fail', 100], of: ['graphile-worker', 'fail', 100], atLeast: 1 },
    ...targetsOfStarts(7),
    { row: ['holdfast', 'memory', 100], figure: 'peak_mb', atMost: 140, size: MILLION },
    { row: ['holdfast', 'cli status', 1], figure: 'p50_ms', atMost: 250, size: DEEP },
  ],
};

function targetsOfBoth(floor, wanted) {
  return [
    { row: ['holdfast', 'drain', 100], of: [floor, 'drain', 100], atLeast: wanted.drain },
    { row: ['holdfast', 'drain', 1], of: [floor, 'drain', 100], atLeast: wanted.drainOne },
    { row: ['holdfast', 'fail', 100], of: [floor, 'fail', 100], atLeast: wanted.fail },
    { row: ['holdfast', 'enqueue concurrent', 100], of: [floor, 'enqueue', 100], atLeast: wanted.concurrent },
    { row: ['holdfast', 'enqueue bulk', 1], of: [floor, 'enqueue', 100], atLeast: wanted.bulk },
    { row: ['holdfast', 'idle in process', 1], of: ['one-row commit', 'idle in process', 1], atMost: wanted.idle },
    { row: ['holdfast', 'processes', 10], figure: 'executed_once', is: true },
    { row: ['holdfast', 'processes', 10], figure: 'complaints', is: 0 },
    { row: ['holdfast', 'depth', 100], of: ['holdfast', 'depth alone', 100], atLeast: 0.95, size: DEEP },
    ...targetsOfHeld(),
    { row: ['holdfast', 'cli --version', 1], figure: 'p50_ms', atMost: 90 },
  ];
}

function targetsOfStarts(atMost) {
  return [10, 30, 100].map((rate) => ({ row: ['holdfast', `trickle ${rate}`, 1], figure: 'p50_ms', atMost }));
}

function targetsOfHeld() {
  return [1, 100].map((concurrency) => ({
    row: ['holdfast', 'held', concurrency],
    of: ['holdfast', 'held alone', concurrency],
    atLeast: 0.9,
    size: DEEP,
  }));
}

/** A verdict on every target whose figures this run has; `met` is null where the run was too small to say. */
export function verdicts(rows, store) {
  const find = (wanted) => wanted && rows.find((row) => String(nameOf(row)) === String(wanted));
  return TARGETS[store].flatMap((target) => {
    const row = find(target.row);
    const of = find(target.of);
    if (!row || (target.of && !of)) return [];
    const got = of ? ratioOf(row, of) : row[target.figure];
    const met = target.size && row.size < target.size ? null : meets(got, target);
    const { system, scenario, concurrency } = row;
    return [{ system, scenario, concurrency, what: whatOf(target), target: wordsOf(target), got, met }];
  });
}

function nameOf({ system, scenario, concurrency }) {
  return [system, scenario, concurrency];
}

function meets(got, { atLeast, atMost, is }) {
  if (atLeast !== undefined) return got >= atLeast;
  if (atMost !== undefined) return got <= atMost;
  return got === is;
}

function whatOf({ row: [, scenario, concurrency], of, figure }) {
  const name = ['drain', 'held'].includes(scenario) ? `${scenario} ${concurrency}` : scenario;
  return of ? `${name}, × ${of[0] === 'holdfast' ? of[1] : of[0]}` : `${name}, ${figure}`;
}

function wordsOf({ atLeast, atMost, is }) {
  if (atLeast !== undefined) return `≥ ${atLeast}`;
  return atMost === undefined ? `= ${is}` : `≤ ${atMost}`;
}
