// The scenarios of Holdfast on SQLite, full durability, all promises on. Prints one JSON object a line.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { defineTask, fixed, openHoldfast } from '../dist/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';

const { values } = parseArgs({
  options: { n: { type: 'string', default: '60000' }, only: { type: 'string' }, listen: { type: 'string' } },
});
const n = Number(values.n);
const only = values.only?.split(',');

const payload = (i) => ({
  n: i,
  to: `user${i}@example.com`,
  subject: 'welcome',
  ref: 'abcdefghijklmnopqrstuvwxyz0123456789',
});
const noop = defineTask('noop', { run() {} });
const flaky = defineTask('flaky', {
  retry: { maxAttempts: 5, backoff: fixed(0), jitter: { kind: 'none' } },
  run(_, task) {
    if (task.attempt <= 2) throw new Error('asked to fail');
  },
});

const scenarios = {
  async 'enqueue one by one'() {
    const count = Math.min(n, 3_000);
    return inStore(async ({ holdfast }) =>
      rate(count, 1, async () => {
        for (let i = 0; i < count; i++) await holdfast.enqueue(noop, payload(i));
      }),
    );
  },
  async 'enqueue concurrent'() {
    return inStore(async ({ holdfast }) => rate(n, 100, () => fill(holdfast, noop, n)));
  },
  async 'drain 1'() {
    return drain(Math.min(n, 10_000), 1);
  },
  async 'drain 10'() {
    return drain(n, 10);
  },
  async 'drain 100'() {
    return drain(n, 100);
  },
  async 'fail 100'() {
    return inStore(async ({ holdfast }) => {
      const count = Math.floor(n / 3);
      await fill(holdfast, flaky, count);
      return rate(count * 3, 100, () => holdfast.worker({ concurrency: 100, types: ['flaky'] }).drain());
    });
  },
  async 'idle latency in process'() {
    return inStore(async ({ holdfast }) => {
      let started = () => {};
      const probe = defineTask('probe', { run: () => started() });
      const own = await openHoldfast({ store: sqlite(holdfast.describe().where), tasks: [probe] });
      own.work();
      const waits = [];
      for (let i = 0; i < 200; i++) {
        const start = new Promise((resolve) => {
          started = resolve;
        });
        const from = performance.now();
        await own.enqueue(probe, {});
        await start;
        waits.push(performance.now() - from);
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      await own.close();
      return latency(waits);
    });
  },
  async 'idle latency across processes'() {
    return inStore(async ({ holdfast, path }) => {
      const child = fork(fileURLToPath(import.meta.url), ['--listen', path]);
      const next = () => new Promise((resolve) => child.once('message', resolve));
      await next();
      const waits = [];
      for (let i = 0; i < 100; i++) {
        const start = next();
        await holdfast.enqueue('probe', { at: performance.timeOrigin + performance.now() });
        waits.push(await start);
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      child.kill();
      return latency(waits);
    });
  },
};

async function drain(count, concurrency) {
  return inStore(async ({ holdfast }) => {
    await fill(holdfast, noop, count);
    return rate(count, concurrency, () => holdfast.worker({ concurrency, types: ['noop'] }).drain());
  });
}

async function inStore(measure) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-bench-'));
  const path = join(folder, 'tasks.db');
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: [noop, flaky] });
  try {
    return await measure({ holdfast, path });
  } finally {
    await holdfast.close();
    rmSync(folder, { recursive: true });
  }
}

async function fill(holdfast, task, count) {
  for (let i = 0; i < count; i += 100) {
    await Promise.all(
      Array.from({ length: Math.min(100, count - i) }, (_, j) => holdfast.enqueue(task, payload(i + j))),
    );
  }
}

async function rate(count, concurrency, work) {
  const from = performance.now();
  await work();
  return { concurrency, rate_per_s: Math.round(count / ((performance.now() - from) / 1_000)) };
}

function latency(waits) {
  const sorted = waits.toSorted((a, b) => a - b);
  const at = (part) => Number(sorted[Math.floor(sorted.length * part)].toFixed(2));
  return { concurrency: 1, p50_ms: at(0.5), p99_ms: at(0.99) };
}

if (values.listen) {
  const probe = defineTask('probe', {
    run: ({ at }) => process.send(performance.timeOrigin + performance.now() - at),
  });
  const holdfast = await openHoldfast({ store: sqlite(values.listen), tasks: [probe] });
  holdfast.work();
  process.send('ready');
} else {
  for (const [scenario, run] of Object.entries(scenarios)) {
    if (only && !only.some((part) => scenario.includes(part))) continue;
    console.log(JSON.stringify({ system: 'holdfast', scenario, durability: 'full', ...(await run()) }));
  }
}
