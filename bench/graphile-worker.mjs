// graphile-worker on the same server, with what its page on performance sets for the most jobs a second: 500 jobs fetched at
// once, and completed in batches.
//   node graphile-worker.mjs NAME '{"url": …, "n": …}'
import { talkTo } from './child.mjs';
import { ask, atDatabase } from './databases.mjs';
import { enqueuing, inBulk, WAYS } from './enqueueing.mjs';
import { alternate, expectEqual, moment, RARELY, rateOf, SHORTLY } from './measuring.mjs';
import { payload } from './payload.mjs';

// Read when the package is loaded: a line for each job would be what is measured.
process.env.NO_LOG_SUCCESS = '1';
const { Logger, makeWorkerUtils, run: work } = await import('graphile-worker');

const logger = new Logger(() => () => {});
const FAST = { maxPoolSize: 25, localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };

const programs = {
  ...Object.fromEntries(WAYS.map((way) => [way, (options) => enqueue(way, options)])),
  ...Object.fromEntries([1, 10, 100].map((concurrency) => [`drain ${concurrency}`, (o) => drain(o, concurrency)])),
  'idle in process': idleInProcess,
  'idle across processes': (options) => acrossProcesses('idle across processes', options, RARELY),
  'trickle across processes': (options) => acrossProcesses('trickle across processes', options, SHORTLY),
  'idle worker': idleWorker,
};

function enqueue(way, { url, n }) {
  return inQueue(url, async ({ one, many }, address) => {
    const figures = await enqueuing(way, n, { one, many });
    expectEqual(await jobsAt(address), figures.n, 'jobs');
    return { scenario: way, ...figures };
  });
}

/** It is over when the last batch is completed, which it is when the worker has stopped. */
function drain({ url, n }, concurrency) {
  return inQueue(url, async (queue, address) => {
    await inBulk(n, queue);
    let ran = 0;
    const rate = await rateOf(n, async () => {
      const runner = await new Promise((resolve) => {
        const running = start(address, concurrency, () => {
          if (++ran === n) resolve(running);
        });
      });
      await runner.stop();
    });
    expectEqual(ran, n, 'executions');
    expectEqual(await jobsAt(address), 0, 'jobs left');
    return { scenario: 'drain', concurrency, ...rate };
  });
}

function idleInProcess({ url }) {
  return inQueue(url, async ({ one }, address) => {
    let started;
    const runner = await start(address, 1, () => started(moment()));
    const figures = await startsAfter(one, () => {
      return new Promise((resolve) => {
        started = resolve;
      });
    });
    await runner.stop();
    return { scenario: 'idle in process', ...figures };
  });
}

function acrossProcesses(scenario, { url }, how) {
  return inQueue(url, async ({ one }, address) => {
    const worker = talkTo('graphile-worker', 'idle worker', { address });
    await worker.next();
    try {
      return { scenario, ...(await startsAfter(one, () => worker.next(), how)) };
    } finally {
      await worker.end();
    }
  });
}

async function idleWorker({ address }) {
  const told = new Promise((resolve) => process.once('disconnect', resolve));
  const runner = await start(address, 1, () => process.send(moment()));
  process.send('working');
  await told;
  await runner.stop();
}

async function startsAfter(one, nextStart, how) {
  const wait = async () => {
    const start = nextStart();
    const from = moment();
    await one(payload(0));
    return (await start) - from;
  };
  const [figures] = await alternate([wait], how);
  return figures;
}

/** A new queue for as long as it is used, and the address of its database. */
function inQueue(url, use) {
  return atDatabase({ url }, async (address) => {
    const utils = await makeWorkerUtils({ connectionString: address, logger, maxPoolSize: FAST.maxPoolSize });
    try {
      await utils.migrate();
      const queue = {
        one: (input) => utils.addJob('noop', input),
        many: (inputs) => utils.addJobs(inputs.map((input) => ({ identifier: 'noop', payload: input }))),
      };
      return [{ system: 'graphile-worker', durability: 'full', ...(await use(queue, address)) }];
    } finally {
      await utils.release();
    }
  });
}

function start(address, concurrentJobs, noop) {
  return work({
    preset: { worker: { ...FAST, concurrentJobs, connectionString: address } },
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
