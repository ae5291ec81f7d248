// A sweep over moves: source missing × destination taken × what came of earlier executions × killed before every changing system
// call, on one device and across two. Then bugs are planted in copies of the package, and each must be found.
//   npm run move-sweep [-- --full] [--seconds 20] [--seed N] [--at-once 2]
import { parseArgs } from 'node:util';
import { dice } from '../dist/testing/dice.js';
import { PLANTS } from './move-sweep/plants.mjs';
import { allScenarios, nameOf, play } from './move-sweep/scenario.mjs';
import { distWith } from './planted-dist.mjs';

const SHOWN = 8;

/** So many of the scenarios that can show a planted bug are played, at most. */
const TRIES = 12;

const { values } = parseArgs({
  options: {
    full: { type: 'boolean', default: false },
    seconds: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    'at-once': { type: 'string', default: '2' },
  },
});
const atOnce = Number(values['at-once']);
const random = dice(Number(values.seed));

function shuffled(list) {
  const left = [...list];
  return Array.from(list, () => left.splice(Math.floor(random() * left.length), 1)[0]);
}

/** Plays them, a few at once, until the time is over or `enough` says so. Answers those that went wrong, and how many were played. */
async function playAll(dist, scenarios, until, enough = () => false) {
  const wrong = [];
  let played = 0;
  const waiting = scenarios.values();
  const next = async () => {
    for (const scenario of waiting) {
      if (Date.now() > until || enough(wrong)) return;
      const found = await play(dist, scenario);
      played += 1;
      if (found.length > 0) wrong.push({ scenario, found });
    }
  };
  await Promise.all(Array.from({ length: atOnce }, next));
  return { wrong, played };
}

const began = Date.now();
const { dist } = distWith();
const all = shuffled(await allScenarios(dist, atOnce));
const until = values.full ? Number.POSITIVE_INFINITY : Date.now() + Number(values.seconds) * 1_000;
const { wrong, played } = await playAll(dist, all, until);
for (const { scenario, found } of wrong.slice(0, SHOWN))
  console.log(`FAILED: ${nameOf(scenario)}\n  ${found.join('\n  ')}`);
if (wrong.length > SHOWN) console.log(`and ${wrong.length - SHOWN} more`);

let missed = 0;
for (const [bug, { patches, where }] of Object.entries(PLANTS)) {
  const planted = distWith(patches);
  try {
    const chosen = all.filter(where).slice(0, TRIES);
    const { wrong: found } = await playAll(planted.dist, chosen, Number.POSITIVE_INFINITY, (list) => list.length > 0);
    console.log(`${found.length > 0 ? 'found' : 'MISSED'}: the planted bug '${bug}'`);
    if (found.length === 0) missed += 1;
  } finally {
    planted.remove();
  }
}
const bugs = Object.keys(PLANTS).length;
const took = Math.round((Date.now() - began) / 1_000);
console.log(
  `seed ${values.seed}: ${played} of ${all.length} scenarios, ${bugs - missed} of ${bugs} planted bugs found, in ${took} s`,
);
console.log(`${played - wrong.length + bugs - missed} passed, ${wrong.length + missed} failed`);
process.exitCode = wrong.length + missed > 0 ? 1 : 0;
