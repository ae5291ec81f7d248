// Makes a large store quickly: the engine itself works off a sample of tasks, whose rows are then copied many times with SQL.
//   npm run large-store -- FILE.db|postgres://… [--tasks 1000000] [--sources 100000]
// Of 100 tasks, about 83 have succeeded, half of them after failures, 13 are dead, and each of the other states has one or less.
// The store must have no tasks yet. There are three times as many rows of history. `--sources`: this many ready tasks more, each of a source of its own.
import { parseArgs } from 'node:util';
import { copyInPostgres } from './large-store/postgres.mjs';
import { drainSample, enqueueOfSources } from './large-store/sample.mjs';
import { copyInSqlite } from './large-store/sqlite.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tasks: { type: 'string', default: '1000000' },
    sources: { type: 'string', default: '0' },
    // How many tasks the engine works off. Fewer take less time, and repeat themselves more often.
    sample: { type: 'string', default: '10000' },
  },
});
const [address] = positionals;
const [tasks, sources, sample] = [values.tasks, values.sources, values.sample].map(Number);
if (address === undefined || !(tasks >= 1) || !(sources >= 0) || !(sample >= 100)) {
  throw new Error('usage: npm run large-store -- FILE.db|postgres://… [--tasks 1000000] [--sources 100000]');
}
const isPostgres = address.startsWith('postgres');

/** Over how long the tasks were enqueued, up to now. */
const DAYS = 7;

const copies = Math.max(1, Math.round(tasks / sample));
const period = Math.floor((DAYS * 86_400_000) / copies);
const { began, ended } = await said(`${sample} tasks worked off`, () => drainSample(address, sample));
const plan = {
  sample,
  copies,
  /** A sample begins and ends so much later than the one before. */
  period,
  /** All times of the sample are stretched to such a period. */
  from: began,
  stretch: period / (ended - began),
  start: ended - DAYS * 86_400_000,
};
const counted = await said(`${copies * sample} tasks`, () =>
  (isPostgres ? copyInPostgres : copyInSqlite)(address, plan),
);
if (sources > 0) await said(`${sources} sources`, () => enqueueOfSources(address, sources));
console.log(
  Object.entries(counted)
    .map(([name, count]) => `${name} ${count}`)
    .join(', '),
);

async function said(what, step) {
  const before = performance.now();
  const result = await step();
  console.log(`${what}: ${((performance.now() - before) / 1_000).toFixed(1)} s`);
  return result;
}
