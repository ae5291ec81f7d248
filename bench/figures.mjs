// From single results to figures: medians over the rounds, and ratios within the run.

/** The floor of the store that is measured. */
const FLOOR = 'floor';

/** The system that each scenario's figure is a ratio of, and the scenario in which that one has its own. */
const BASES = {
  'enqueue one by one': [FLOOR, 'enqueue one by one'],
  'enqueue concurrent': [FLOOR, 'enqueue'],
  'enqueue bulk': [FLOOR, 'enqueue'],
  drain: [FLOOR, 'drain'],
  fail: [FLOOR, 'fail'],
  processes: [FLOOR, 'drain'],
  sources: [FLOOR, 'drain'],
  'idle in process': ['one-row commit', 'idle in process'],
  'idle across processes': ['one-row commit', 'idle across processes'],
  ...Object.fromEntries([10, 30, 100].map((rate) => [`trickle ${rate}`, ['one-row commit', `trickle ${rate}`]])),
  depth: ['holdfast', 'depth alone'],
  held: ['holdfast', 'held alone'],
};

/** How the results of all rounds become one. What is not named here is the same in all of them. */
const COMBINED = {
  rate_per_s: median,
  p50_ms: median,
  p99_ms: median,
  peak_mb: (values) => Math.max(...values),
  complaints: (values) => values.reduce((sum, value) => sum + value, 0),
  executed_once: (values) => values.every(Boolean),
};

/** One row for each system, scenario and concurrency, with the fields that every row has first. */
export function combine(results) {
  const groups = new Map();
  for (const result of results) {
    const name = JSON.stringify([result.system, result.scenario, result.concurrency]);
    groups.set(name, [...(groups.get(name) ?? []), result]);
  }
  return [...groups.values()].map((same) => {
    const { system, scenario, concurrency, durability, ...rest } = same[0];
    const row = { system, scenario, concurrency, rate_per_s: null, p50_ms: null, p99_ms: null, durability, ...rest };
    for (const [field, all] of Object.entries(COMBINED)) {
      if (same[0][field] !== undefined) row[field] = all(same.map((result) => result[field]));
    }
    const rates = same.map(({ rate_per_s }) => rate_per_s).filter((rate) => rate !== undefined);
    return rates.length > 1 ? { ...row, lowest: Math.min(...rates), highest: Math.max(...rates) } : row;
  });
}

/** Each row with its ratio to what it is measured by: of rates, or of the p50 where it is a latency. */
export function withRatios(rows, floor) {
  return rows.map((row) => {
    const [system, scenario] = baseOf(row, floor);
    const bases = rows.filter((other) => other.system === system && other.scenario === scenario);
    const base = bases.find(({ concurrency }) => concurrency === row.concurrency) ?? bases[0];
    const ratio = base && base !== row ? ratioOf(row, base) : undefined;
    return ratio === undefined ? row : { ...row, ratio, of: system === row.system ? scenario : system };
  });
}

function baseOf({ scenario }, floor) {
  const [system, ...rest] = BASES[scenario] ?? [];
  return [system === FLOOR ? floor : system, ...rest];
}

/** How many times the other's figure this one's is. */
export function ratioOf(row, other) {
  const field = row.rate_per_s === null ? 'p50_ms' : 'rate_per_s';
  return row[field] && other[field] ? rounded(row[field] / other[field]) : undefined;
}

/** The figures of a number of waits. */
export function latency(waits) {
  const sorted = [...waits].sort((a, b) => a - b);
  const at = (part) => rounded(sorted[Math.floor(sorted.length * part)]);
  return { p50_ms: at(0.5), p99_ms: at(0.99), n: waits.length };
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return rounded((sorted[Math.ceil(half) - 1] + sorted[Math.floor(half)]) / 2);
}

function rounded(value) {
  return Number(value.toPrecision(4));
}
