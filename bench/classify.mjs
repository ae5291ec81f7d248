// How long `classify` takes: the median over the labelled errors, and the two worst cases that it promises to bound.
//   npm run build && node bench/classify.mjs [--json]
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { classify } from '../dist/index.js';
import { rebuild } from '../test/errors/rebuild.mjs';

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const ROUNDS = 7;
const CALLS = 200;

const cases = readFileSync(new URL('../test/errors/cases.dev.jsonl', import.meta.url), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line))
  .map(({ id, error, now }) => ({ id, now, thrown: rebuild(error) }));

// Everything is compiled before anything is measured.
for (let i = 0; i < 20; i++) for (const { thrown, now } of cases) classify(thrown, { now });

const each = cases
  .map(({ id, thrown, now }) => ({ id, us: quickest(ROUNDS, () => repeat(CALLS, thrown, now)) / CALLS }))
  .sort((a, b) => a.us - b.us);
const at = (share) => each[Math.min(each.length - 1, Math.floor(each.length * share))];

let deep = new Error('bottom');
for (let i = 0; i < 10_000; i++) deep = new Error(`level ${i}`, { cause: deep });
const long = new Error('rate limi'.repeat(1_200_000));

const result = {
  medianUs: round(at(0.5).us),
  p90Us: round(at(0.9).us),
  slowest: `${at(1).id} ${round(at(1).us)} µs`,
  message10MbMs: round(quickest(ROUNDS, () => classify(long, { now: 0 })) / 1_000),
  causes10kMs: round(quickest(ROUNDS, () => classify(deep, { now: 0 })) / 1_000),
};

if (values.json) console.log(JSON.stringify(result));
else {
  console.log(
    `classify, ${cases.length} labelled errors: median ${result.medianUs} µs (limit 5), p90 ${result.p90Us} µs, slowest ${result.slowest}`,
  );
  console.log(
    `a message of 10 MB: ${result.message10MbMs} ms; a cause chain of 10,000: ${result.causes10kMs} ms (limit 5)`,
  );
}

function repeat(calls, thrown, now) {
  for (let i = 0; i < calls; i++) classify(thrown, { now });
}

/** The least of several runs, in µs: what else the machine does is not counted. */
function quickest(rounds, run) {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < rounds; i++) {
    const start = process.hrtime.bigint();
    run();
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1_000);
  }
  return best;
}

function round(value) {
  return Math.round(value * 100) / 100;
}
