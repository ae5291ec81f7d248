// graphile-worker on the same server, with what its page on performance sets for the most jobs a second: 500 jobs fetched at
// once, and completed in batches.
//   node graphile-worker.mjs NAME '{"url": …, "n": …}'
import pg from 'pg';
import { ask, atDatabase } from './databases.mjs';
import { enqueuing, inBulk, WAYS } from './enqueueing.mjs';
import { expectEqual, rateOf } from './measuring.mjs';
import { ACROSS, startsAcrossProcesses, startsInProcess, workUntilLeft } from './starts.mjs';

// Read when the package is loaded: a line for each job would be what is measured.
process.env.NO_LOG_SUCCESS = '1';
const { Logger, makeWorkerUtils, run: work } = await import('graphile-worker');

const logger = new Logger(() => () => {});
const POOL = { maxPoolSize: 25 };
const FAST = { ...POOL, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
/** By default each job is fetched and completed by itself. */
const { isDefault } = JSON.parse(process.argv[3]);

const programs = {
  ...Object.fromEntries(WAYS.map((way) => [way, (options) => enqueue(way, options)])),
  ...Object.fromEntries([1, 10, 100].map((concurrency) => [`drain ${concurrency}`, (o) => drain(o, concurrency)])),
  fail,
  'idle in process': idleInProcess,
  ...Object.fromEntries(ACROSS.map((scenario) => [scenario, (options) => acrossProcesses(scenario, options)])),
  'idle worker': ({ address }) => workUntilLeft((onStart) => working(address, onStart)),
};

function enqueue(way, { url, n }) {
  return inQueue(url, async ({ one, many }, address) => {
    const figures = await enqueuing(way, n, { one, many });
    expectEqual(await jobsAt(address), figures.n, 'jobs');
    return { scenario: way, ...figures };
  });
}

function drain({ url, n }, concurrency) {
  return inQueue(url, async (queue, address) => {
    await inBulk(n, queue);
    const rate = await rateOfAll(address, n, concurrency, () => {});
    expectEqual(await jobsAt(address), 0, 'jobs left');
    return { scenario: 'drain', concurrency, ...rate };
  });
}

/**
 * Two of three executions fail, as everywhere. But each is of another job, which has one attempt: how long a failed job waits cannot
 * be set.
 */
function fail({ url, n }) {
  return inQueue(url, async ({ many }, address) => {
    await inBulk(n, { many: (inputs) => many(inputs, { maxAttempts: 1 }) });
    const concurrency = 100;
    const rate = await rateOfAll(address, n, concurrency, (input) => {
      if (input.n % 3 > 0) throw new Error('asked to fail');
    });
    expectEqual(await jobsAt(address), n - Math.ceil(n / 3), 'jobs left');
    return { scenario: 'fail', concurrency, ...rate };
  });
}

/** It is over when the last batch is completed, which it is when the worker has stopped. */
async function rateOfAll(address, n, concurrency, run) {
  let ran = 0;
  const rate = await rateOf(n, async () => {
    const runner = await new Promise((resolve) => {
      const running = start(address, concurrency, (input) => {
        if (++ran === n) resolve(running);
        run(input);
      });
    });
    await runner.stop();
  });
  expectEqual(ran, n, 'executions');
  return rate;
}

function idleInProcess({ url }) {
  return inQueue(url, async ({ one }, address) => {
    const figures = await startsInProcess(one, (onStart) => working(address, onStart));
    return { scenario: 'idle in process', ...figures };
  });
}

function acrossProcesses(scenario, { url }) {
  return inQueue(url, async ({ one }, address) => {
    return { scenario, ...(await startsAcrossProcesses(scenario, one, 'graphile-worker', { address })) };
  });
}

async function working(address, onStart) {
  const runner = await start(address, 1, onStart);
  return () => runner.stop();
}

/** A new queue for as long as it is used, and the address of its database. */
function inQueue(url, use) {
  return atDatabase({ url }, async (address) => {
    const pgPool = new pg.Pool({ connectionString: address, max: POOL.maxPoolSize });
    const utils = await makeWorkerUtils({ pgPool, logger });
    try {
      await utils.migrate();
      const queue = {
        one: (input) => utils.addJob('noop', input),
        many: (inputs, options) =>
          utils.addJobs(inputs.map((input) => ({ identifier: 'noop', payload: input, ...options }))),
      };
      return [
        {
          system: isDefault ? 'graphile-worker (default)' : 'graphile-worker',
          durability: 'full',
          ...(await use(queue, address)),
        },
      ];
    } finally {
      await utils.release();
      await pgPool.end();
    }
  });
}

function start(address, concurrentJobs, noop) {
  return work({
    preset: { worker: { ...(isDefault ? POOL : FAST), concurrentJobs, connectionString: address } },
    logger,
    taskList: { noop },
    parsedCronItems: [],
    noHandleSignals: true,
  });
}

async function jobsAt(address) {
  const { rows } = await ask(address, 'SELECT count(*)::int AS jobs FROM graphile_worker.jobs');
  return rows[0].jobs;
}

const [name, options] = process.argv.slice(2);
for (const result of (await programs[name](JSON.parse(options))) ?? []) console.log(JSON.stringify(result));
