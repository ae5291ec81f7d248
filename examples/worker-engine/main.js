// @ts-check
// Shows each part of the engine: node examples/worker-engine/main.js [NAME]…
import { backoff } from './demos/backoff.js';
import { capabilities } from './demos/capabilities.js';
import { complete } from './demos/complete.js';
import { deadLetters } from './demos/dead-letters.js';
import { fail } from './demos/fail.js';
import { gracefulStop } from './demos/graceful-stop.js';
import { maxIterations } from './demos/max-iterations.js';
import { renew } from './demos/renew.js';
import { strategies } from './demos/strategies.js';

const DEMOS = new Map(
  Object.entries({
    complete,
    fail,
    backoff,
    renew,
    capabilities,
    strategies,
    'max-iterations': maxIterations,
    'graceful-stop': gracefulStop,
    'dead-letters': deadLetters,
  }),
);

const asked = process.argv.slice(2);
const unknown = asked.find((name) => !DEMOS.has(name));
if (unknown !== undefined) {
  console.error(`There is no demo '${unknown}'. There are: ${[...DEMOS.keys()].join(', ')}.`);
  process.exitCode = 2;
} else {
  for (const name of asked.length > 0 ? asked : DEMOS.keys()) {
    console.log(`\n── ${name}\n`);
    await DEMOS.get(name)?.((line) => console.log(line));
  }
}
