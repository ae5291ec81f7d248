// pg-boss on the same server, by its `fetch` and `complete` in batches of a hundred, the next fetched while the last is
// completed: its own workers pause between batches.
//   node pg-boss.mjs NAME '{"url": …, "n": …}'
import PgBoss from 'pg-boss';
import { atDatabase } from './databases.mjs';
import { enqueuing, inBulk, WAYS } from './enqueueing.mjs';
import { expectEqual, rateOf } from './measuring.mjs';

const QUEUE = 'noop';
const AT_ONCE = 100;
const FAILURES = 2;

const programs = {
  ...Object.fromEntries(WAYS.map((way) => [way, (boss, n) => enqueue(way, boss, n)])),

  async 'drain 100'(boss, n) {
    await inBulk(n, callsOf(boss));
    return { scenario: 'drain', ...(await drain(boss, n, {}, () => true)) };
  },

  async fail(boss, n) {
    const count = Math.floor(n / (FAILURES + 1));
    await inBulk(count, callsOf(boss, { retryLimit: FAILURES, retryDelay: 0 }));
    const succeeds = ({ retryCount }) => retryCount >= FAILURES;
    return {
      scenario: 'fail',
      ...(await drain(boss, count * (FAILURES + 1), { includeMetadata: true }, succeeds)),
    };
  },
};

async function enqueue(way, boss, n) {
  const figures = await enqueuing(way, n, callsOf(boss));
  expectEqual(await boss.getQueueSize(QUEUE), figures.n, 'jobs');
  return { scenario: way, ...figures };
}

function callsOf(boss, options) {
  return {
    one: (data) => boss.send(QUEUE, data),
    many: (inputs) => boss.insert(inputs.map((data) => ({ name: QUEUE, data, ...options }))),
  };
}

async function drain(boss, executions, options, succeeds) {
  let ran = 0;
  const rate = await rateOf(executions, async () => {
    let settled;
    while (ran < executions) {
      const jobs = await boss.fetch(QUEUE, { batchSize: AT_ONCE, ...options });
      ran += jobs.length;
      await settled;
      settled = settle(boss, await Promise.all(jobs.map(async (job) => ({ id: job.id, ok: succeeds(job) }))));
    }
    await settled;
  });
  expectEqual(ran, executions, 'executions');
  expectEqual(await boss.getQueueSize(QUEUE, { before: 'completed' }), 0, 'jobs left');
  return { concurrency: AT_ONCE, ...rate };
}

async function settle(boss, ended) {
  const [succeeded, failed] = [true, false].map((wanted) =>
    ended.filter(({ ok }) => ok === wanted).map(({ id }) => id),
  );
  if (succeeded.length > 0) await boss.complete(QUEUE, succeeded);
  if (failed.length > 0) await boss.fail(QUEUE, failed, new Error('asked to fail'));
}

const [name, options] = process.argv.slice(2);
const { url, n } = JSON.parse(options);
const figures = await atDatabase({ url }, async (address) => {
  const boss = new PgBoss(address);
  boss.on('error', (error) => console.error(error));
  await boss.start();
  try {
    await boss.createQueue(QUEUE);
    return await programs[name](boss, n);
  } finally {
    await boss.stop({ graceful: false });
  }
});
console.log(JSON.stringify({ system: 'pg-boss', durability: 'full', ...figures }));
