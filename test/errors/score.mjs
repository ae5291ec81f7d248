// How well `classify` judges the labelled errors in cases.dev.jsonl; see README.md for what their fields mean.
//   npm run classify:score -- [--show] [--json] [path of another module that exports classify(thrown, { now })]
// kind: exact kind. kind+alt: the kind of the label or of an answer that a fair judge accepts. reason+alt: so for the reason;
// http.4NN counts as http.4xx. retry-after: within 1 s or 1 %, and absent where none is expected.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { rebuild } from './rebuild.mjs';

const { values, positionals } = parseArgs({
  options: { show: { type: 'boolean', default: false }, json: { type: 'boolean', default: false } },
  allowPositionals: true,
});
const here = fileURLToPath(new URL('.', import.meta.url));
const module = path.resolve(positionals[0] ?? path.join(here, '../../dist/index.js'));
const { classify } = await import(pathToFileURL(module));

const cases = readFileSync(path.join(here, 'cases.dev.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line));

/** Whose effect may have happened, labelled apart from the cases: no answer came, or one that does not say. */
const maybeDone = new Set(JSON.parse(readFileSync(path.join(here, 'maybe-done.json'), 'utf8')));

const results = cases.map(judge);
if (values.json) console.log(JSON.stringify(summary(results)));
else print();

function judge(each) {
  const { id, source, expect, alt = [], why, now } = each;
  let got;
  try {
    got = classify(rebuild(each.error), { now });
  } catch (error) {
    got = { kind: 'CRASH', reason: String(error) };
  }
  const all = [expect, ...alt];
  const kindAlt = all.some(({ kind }) => kind === got.kind);
  return {
    ...{ id, why, expect, got, kindAlt },
    library: source.replace(/(?<=.)@\d.*$/, '').replace(/\(.*$/, ''),
    kind: got.kind === expect.kind,
    reason: got.reason === expect.reason,
    reasonAlt: all.some(({ reason }) => reason === got.reason || widened(reason) === widened(got.reason)),
    wait: all.some(({ retryAfterMs }) => near(got.retryAfterMs, retryAfterMs)),
    waitExpected: expect.retryAfterMs !== undefined,
    lost: !kindAlt && got.kind === 'permanent',
    ambiguous: got.ambiguous === true,
    maybeDone: maybeDone.has(id),
  };
}

function widened(reason) {
  return reason?.replace(/^http\.4(?!xx)\d\d$/, 'http.4xx');
}

function near(got, wanted) {
  if (got === undefined || wanted === undefined) return got === wanted;
  return Math.abs(got - wanted) <= Math.max(1_000, 0.01 * wanted);
}

function summary(list) {
  const count = (holds) => list.filter(holds).length;
  return {
    cases: list.length,
    kind: count(({ kind }) => kind),
    kindAlt: count(({ kindAlt }) => kindAlt),
    reason: count(({ reason }) => reason),
    reasonAlt: count(({ reasonAlt }) => reasonAlt),
    waits: count(({ wait }) => wait),
    waitsExpected: count(({ waitExpected }) => waitExpected),
    waitsFound: count(({ wait, waitExpected }) => wait && waitExpected),
    wronglyPermanent: count(({ lost }) => lost),
    crashed: count(({ got }) => got.kind === 'CRASH'),
    maybeDone: count((each) => each.maybeDone),
    ambiguousFound: count((each) => each.maybeDone && each.ambiguous),
    ambiguousBesides: count((each) => !each.maybeDone && each.ambiguous),
  };
}

function print() {
  const libraries = Map.groupBy ? Map.groupBy(results, ({ library }) => library) : grouped(results);
  const rows = [...libraries].sort(([, a], [, b]) => b.length - a.length).map(([name, list]) => [name, summary(list)]);
  const row = (cells) =>
    console.log(
      `${cells[0].padEnd(28)}${cells
        .slice(1)
        .map((cell) => String(cell).padStart(12))
        .join('')}`,
    );
  row(['library', 'cases', 'kind', 'kind+alt', 'reason', 'reason+alt', 'retry-after']);
  for (const [name, s] of [...rows, ['all', summary(results)]]) {
    row([name, s.cases, s.kind, s.kindAlt, s.reason, s.reasonAlt, `${s.waitsFound}/${s.waitsExpected}`]);
  }
  const s = summary(results);
  const percent = (n) => `${((100 * n) / s.cases).toFixed(1)} %`;
  console.log(
    `\nkind+alt ${percent(s.kindAlt)}, reason+alt ${percent(s.reasonAlt)}, waits as expected ${percent(s.waits)}`,
  );
  console.log(`wrongly permanent (lost work) ${s.wronglyPermanent}, crashed ${s.crashed}`);
  console.log(
    `ambiguous: ${s.ambiguousFound} of ${s.maybeDone} whose effect may have happened, and ${s.ambiguousBesides} of the ${s.cases - s.maybeDone} others`,
  );
  const errors = cases.map(({ error, now }) => [rebuild(error), now]);
  const plain = errors.filter(([error]) => typeof error?.message === 'string');
  console.log(
    `median of a classification: ${median(errors)} µs, of the message alone ${median(plain.map(([{ message }, now]) => [new Error(message), now]))} µs`,
  );
  for (const { id, expect, got, why, kindAlt, reasonAlt, wait, maybeDone, ambiguous } of results) {
    const off = !kindAlt || !reasonAlt || !wait || maybeDone !== ambiguous;
    if (!off || !values.show) continue;
    const told = ({ kind, reason, retryAfterMs }) =>
      `${kind} ${reason}${retryAfterMs === undefined ? '' : ` ${retryAfterMs} ms`}`;
    console.log(
      `${id}: want ${told(expect)}${maybeDone ? ' ambiguous' : ''}, got ${told(got)}${ambiguous ? ' ambiguous' : ''} (${why})`,
    );
  }
}

/** The median of the times of all errors, each the best of several, so that another process disturbs it little. */
function median(errors) {
  for (let round = 0; round < 20; round++) for (const [error, now] of errors) classify(error, { now });
  const times = errors.map(([error, now]) => Math.min(...Array.from({ length: 10 }, () => timeOf(error, now))));
  return (times.sort((a, b) => a - b)[times.length >> 1] * 1_000).toFixed(1);
}

function timeOf(error, now) {
  const started = performance.now();
  for (let i = 0; i < 20; i++) classify(error, { now });
  return (performance.now() - started) / 20;
}

function grouped(list) {
  const groups = new Map();
  for (const each of list) groups.set(each.library, [...(groups.get(each.library) ?? []), each]);
  return groups;
}
