// BullMQ on a new Redis server. Jobs that succeeded are kept, as its default is.
//   node bullmq.mjs NAME '{"dir": …, "n": …}'
import { Queue, Worker } from 'bullmq';
import { enqueuing, inBulk, WAYS } from './enqueueing.mjs';
import { expectEqual, rateOf } from './measuring.mjs';
import { atNewRedis } from './redis.mjs';
import { ACROSS, startsAcrossProcesses, startsInProcess, workUntilLeft } from './starts.mjs';

const NAME = 'noop';
const FAILURES = 2;

const programs = {
  ...Object.fromEntries(WAYS.map((way) => [way, (options) => enqueue(way, options)])),
  ...Object.fromEntries([1, 10, 100].map((concurrency) => [`drain ${concurrency}`, (o) => drain(o, concurrency)])),
  fail,
  'idle in process': idleInProcess,
  ...Object.fromEntries(ACROSS.map((scenario) => [scenario, (options) => acrossProcesses(scenario, options)])),
  'idle worker': ({ port }) => workUntilLeft((onStart) => working(port, onStart)),
};

function enqueue(way, { n, ...options }) {
  return inQueue(options, async (queue) => {
    const figures = await enqueuing(way, n, callsOf(queue));
    expectEqual(await queue.getWaitingCount(), figures.n, 'jobs');
    return { scenario: way, ...figures };
  });
}

function callsOf(queue, options) {
  return {
    one: (data) => queue.add(NAME, data),
    many: (inputs) => queue.addBulk(inputs.map((data) => ({ name: NAME, data, opts: options }))),
  };
}

function drain({ n, ...options }, concurrency) {
  return inQueue(options, async (queue, port) => {
    await inBulk(n, callsOf(queue));
    const rate = await rateOfAll(port, { jobs: n, executions: n, concurrency }, () => {});
    expectEqual(await queue.getCompletedCount(), n, 'completed jobs');
    return { scenario: 'drain', concurrency, ...rate };
  });
}

/** A failed job is tried again at once. It keeps the stacks of its failures, and no other history. */
function fail({ n, ...options }) {
  return inQueue(options, async (queue, port) => {
    const jobs = Math.floor(n / (FAILURES + 1));
    await inBulk(jobs, callsOf(queue, { attempts: FAILURES + 1 }));
    const run = ({ attemptsMade }) => {
      if (attemptsMade < FAILURES) throw new Error('asked to fail');
    };
    const concurrency = 100;
    const rate = await rateOfAll(port, { jobs, executions: jobs * (FAILURES + 1), concurrency }, run);
    expectEqual(await queue.getCompletedCount(), jobs, 'completed jobs');
    return { scenario: 'fail', concurrency, ...rate };
  });
}

/** It is over when so many jobs have been reported as completed. */
async function rateOfAll(port, { jobs, executions, concurrency }, run) {
  let ran = 0;
  let completed = 0;
  const worker = workerAt(port, concurrency, async (job) => {
    ran += 1;
    run(job);
  });
  const rate = await rateOf(executions, () => {
    return new Promise((resolve) => {
      worker.on('completed', () => {
        if (++completed === jobs) resolve();
      });
      void worker.run();
    });
  });
  await worker.close();
  expectEqual(ran, executions, 'executions');
  return rate;
}

function idleInProcess(options) {
  return inQueue(options, async (queue, port) => {
    const figures = await startsInProcess(callsOf(queue).one, (onStart) => working(port, onStart));
    return { scenario: 'idle in process', ...figures };
  });
}

function acrossProcesses(scenario, options) {
  return inQueue(options, async (queue, port) => {
    return { scenario, ...(await startsAcrossProcesses(scenario, callsOf(queue).one, 'bullmq', { port })) };
  });
}

async function working(port, onStart) {
  const worker = workerAt(port, 1, async () => onStart());
  await worker.waitUntilReady();
  void worker.run();
  return () => worker.close();
}

function workerAt(port, concurrency, run) {
  return new Worker(NAME, run, { connection: { port, maxRetriesPerRequest: null }, concurrency, autorun: false });
}

/** A new queue for as long as it is used, and the port of its server. */
function inQueue(options, use) {
  return atNewRedis(options, async (port) => {
    const queue = new Queue(NAME, { connection: { port } });
    try {
      return [{ system: 'BullMQ', durability: 'one second', ...(await use(queue, port)) }];
    } finally {
      await queue.close();
    }
  });
}

const [name, options] = process.argv.slice(2);
for (const result of (await programs[name](JSON.parse(options))) ?? []) console.log(JSON.stringify(result));
