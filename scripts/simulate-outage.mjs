// Simulates an outage of a source: for an hour a server fails every call while 20 tasks a second arrive, and afterwards it serves 50
// calls a second. Prints what each policy does to the server and to the tasks. Everything but the server and the clock is real: worker,
// store and `decide`.
//   npm run simulate:outage -- [--policy holdfast,sidekiq] [--store sqlite|postgres] [--minutes 60] [--scale 1] [--seed 1] [--workers 1] [--json] [--plot FILE]
// `--minutes` is the length of the outage, `--scale 0.1` makes arrivals and capacity ten times smaller. `--json` prints one array.
// SQLite is in memory. An hour takes some minutes for each policy; for Holdfast on PostgreSQL about ten.
import { writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { HOUR_OUTAGE, simulateOutage } from '../dist/simulator/outage.js';
import { plotOutages } from '../dist/simulator/plot.js';
import { POLICIES } from '../dist/simulator/policies.js';
import { openStores } from './simulate-outage/stores.mjs';
import { tableOf } from './simulate-outage/table.mjs';

const { values } = parseArgs({
  options: {
    policy: { type: 'string' },
    store: { type: 'string', default: 'sqlite' },
    minutes: { type: 'string', default: '60' },
    scale: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
    plot: { type: 'string' },
  },
});

const policies = chosen(values.policy);
const minutes = positive(values.minutes, '--minutes');
const scale = positive(values.scale, '--scale');
const seed = positive(values.seed, '--seed');
const workers = positive(values.workers, '--workers');
const scenario = {
  ...HOUR_OUTAGE,
  outage: minutes * 60_000,
  arrivals: HOUR_OUTAGE.arrivals * scale,
  capacity: Math.max(1, Math.round(HOUR_OUTAGE.capacity * scale)),
};
if (scenario.capacity <= scenario.arrivals) throw new Error(`--scale ${scale} leaves no capacity above the arrivals.`);

const stores = await openStores(values.store);
const results = [];
const plotted = [];
try {
  for (const policy of policies) {
    const begun = performance.now();
    const { result, samples } = await simulateOutage({ policy, scenario, store: await stores.next(), seed, workers });
    results.push({ policy: policy.name, ...result });
    plotted.push({ policy: policy.name, samples });
    const seconds = ((performance.now() - begun) / 1_000).toFixed(0);
    process.stderr.write(`${policy.name}: simulated in ${seconds} s\n`);
  }
} finally {
  await stores.close();
}

if (values.plot !== undefined) writeFileSync(values.plot, plotOutages(scenario.outage, plotted));
const { arrivals, capacity } = scenario;
const about = `An outage of ${minutes} min, ${arrivals} tasks/s arrive, the server serves ${capacity} calls/s. Store: ${values.store}, seed ${seed}.`;
console.log(values.json ? JSON.stringify(results, null, 2) : `${about}\n\n${tableOf(results, policies)}`);

function chosen(names) {
  if (names === undefined) return POLICIES;
  return names.split(',').map((name) => {
    const policy = POLICIES.find((each) => each.name === name);
    if (policy) return policy;
    throw new Error(`There is no policy ${name}. There are: ${POLICIES.map((each) => each.name).join(', ')}.`);
  });
}

function positive(text, what) {
  const number = Number(text);
  if (Number.isFinite(number) && number > 0) return number;
  throw new Error(`${what} must be a number above 0, got ${text}.`);
}
