// A storm over one store: eight workers, two enqueuers, an operator, the command line and pruning, while processes are killed,
// stopped and told to end by chance; then the storm ends, everything is worked off, and what a witness file outside of the
// database says is held against the records.
// With --foreign two of the workers are in a pid namespace of their own (which needs root).
//   npm run storm -- [--store sqlite|postgres] [--seconds 45] [--seed N] [--foreign] [--plant NAME | --plant all]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { dice } from '../dist/testing/dice.js';
import { distWith } from './planted-dist.mjs';
import { PLANTS } from './storm/plants.mjs';
import { runStorm } from './storm/storm.mjs';

const SHOWN = 8;

/** When the storm is over everything comes to its end within this, or is stuck; not so long where a bug is looked for. */
const CALM_MS = 90_000;
const PLANTED_CALM_MS = 20_000;

const { values } = parseArgs({
  options: {
    store: { type: 'string', default: 'sqlite' },
    seconds: { type: 'string', default: '45' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    plant: { type: 'string' },
    foreign: { type: 'boolean', default: false },
  },
});
const kind = values.store;
if (!['sqlite', 'postgres'].includes(kind)) throw new Error(`--store is sqlite or postgres, got ${kind}.`);

/** A bug that shows only when certain processes are killed is looked for in so many storms, each with a seed of its own. */
const STORMS_WITH_A_PLANT = 4;

/** Answers the promises, each with what was found against it. What a failed storm leaves is kept to be looked at. */
async function oneStorm(patches, calmMs, seed = Number(values.seed)) {
  const { dist, remove } = distWith(patches);
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-storm-'));
  let kept = false;
  try {
    const { told, checks } = await runStorm({
      ...{ dist, kind, folder, calmMs, foreign: values.foreign },
      seconds: Number(values.seconds),
      random: dice(seed),
    });
    console.log(`${kind}, seed ${seed}: ${told}`);
    kept = patches.length === 0 && checks.some(([, violations]) => violations.length > 0);
    if (kept) console.log(`The witness is kept in ${folder}.`);
    return checks;
  } finally {
    remove();
    if (!kept) rmSync(folder, { recursive: true, force: true });
  }
}

/** How many promises held and how many did not. */
async function storm() {
  const checks = await oneStorm([], CALM_MS);
  for (const [promise, violations] of checks) {
    console.log(`${violations.length === 0 ? 'passed' : 'FAILED'}: ${promise}`);
    for (const violation of violations.slice(0, SHOWN)) console.log(`  ${violation}`);
    if (violations.length > SHOWN) console.log(`  and ${violations.length - SHOWN} more`);
  }
  const failed = checks.filter(([, violations]) => violations.length > 0).length;
  return { passed: checks.length - failed, failed };
}

/** Passed is a bug that was caught. */
async function plant(name) {
  const { what, promise, patches } = PLANTS[name];
  let found = [];
  let caught = false;
  for (let storms = 0; storms < STORMS_WITH_A_PLANT && !caught; storms++) {
    const checks = await oneStorm(patches, PLANTED_CALM_MS, Number(values.seed) + storms);
    found = checks.filter(([, violations]) => violations.length > 0);
    caught = found.some(([each]) => each === promise);
  }
  console.log(`${caught ? 'caught' : 'MISSED'}: ${name}, ${what}`);
  for (const [each, [violation]] of found) console.log(`  ${each}: ${violation}`);
  return caught;
}

async function plants(names) {
  const unknown = names.find((name) => !PLANTS[name]);
  if (unknown) throw new Error(`There is no bug '${unknown}' to plant: ${Object.keys(PLANTS).join(', ')}.`);
  let passed = 0;
  for (const name of names) if (await plant(name)) passed += 1;
  return { passed, failed: names.length - passed };
}

const { passed, failed } =
  values.plant === undefined
    ? await storm()
    : await plants(values.plant === 'all' ? Object.keys(PLANTS) : [values.plant]);
console.log(`It took ${(performance.now() / 1_000).toFixed(1)} s.`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
