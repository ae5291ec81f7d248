// What the process tests run, on the built package: node program.mjs MODE PATH [OPTIONS as JSON]
// Each line that it prints is a JSON value. It ends by itself, or the test that started it fails.
import { appendFileSync, closeSync, openSync, rmSync } from 'node:fs';
import { argv, stdout } from 'node:process';

const [mode, path, json = '{}'] = argv.slice(2);
const options = JSON.parse(json);
const dist = options.dist ?? new URL('../../dist/', import.meta.url).href;
const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);

const { child } = await import('./child-task.mjs');

const say = (what) => stdout.write(`${JSON.stringify(what)}\n`);
const told = (error) => ({ error: { name: error.name, code: error.code, message: error.message } });

/** Handlers that tell when they start, and do what their input says. */
const work = defineTask('work', {
  retry: { backoff: { kind: 'immediate' }, jitter: { kind: 'none' } },
  async run({ how, witness, blockMs }, task) {
    if (witness) appendFileSync(witness, `${task.id} ${task.execution}\n`);
    if (how === 'quick') return options.name ?? 'done';
    say({ running: task.id, execution: task.execution, recovered: task.recovered });
    const aborted = new Promise((resolve) => task.signal.addEventListener('abort', resolve));
    switch (how) {
      case 'until aborted':
        await aborted;
        say({ aborted: task.id, reason: task.signal.reason.name });
        return 'too late';
      case 'fail when aborted':
        await aborted;
        throw new Error('gave up');
      case 'deaf':
        return new Promise(() => {});
      case 'block':
        for (const end = Date.now() + blockMs; Date.now() < end; );
        return options.name;
      case 'fill the disk':
        fillUp(options.filler);
        return 'x'.repeat(400_000);
      case 'die':
        return die();
    }
  },
});

/** What was said is read by then: a pipe is written to at once. */
function die() {
  process.kill(process.pid, 'SIGKILL');
  return new Promise(() => {});
}

function fillUp(file) {
  try {
    for (;;) appendFileSync(file, Buffer.alloc(4_096));
  } catch (error) {
    if (error.code !== 'ENOSPC') throw error;
  }
}

function openAll(files) {
  try {
    for (;;) files.push(openSync('/dev/null'));
  } catch (error) {
    if (error.code !== 'EMFILE') throw error;
  }
}

const modes = {
  /** Works until it is told to end by a signal, or for `maxTasks`. */
  async worker(holdfast) {
    const worker = holdfast.work({
      ...options.worker,
      onEvent(event) {
        const { task, execution } = event.task.lease;
        if (event.kind !== 'started') say({ [event.kind]: task, execution, state: event.state });
      },
    });
    const stop = () => worker.stop(options.grace === undefined ? {} : { grace: options.grace });
    process.on('SIGTERM', stop);
    say('working');
    await worker.finished;
    process.off('SIGTERM', stop);
  },

  /** Works what is ready, then ends without another word: not even a close. */
  async drain(holdfast) {
    await holdfast.worker(options.worker).drain();
    return 'left open';
  },

  /** Enqueues one task, and works it. */
  async workOne(holdfast) {
    await holdfast.enqueue('work', options.input);
    const finished = await holdfast.worker().runOne();
    say({
      finished: finished.state,
      task: await holdfast.get(1).then(({ executions, attempts }) => ({ executions, attempts })),
    });
  },

  /** Runs one task while this process cannot open another file. */
  async workWithoutFiles(holdfast) {
    await holdfast.enqueue('child', { how: 'result' });
    const files = [];
    const onEvent = ({ kind }) => kind === 'started' && openAll(files);
    const { decision } = await holdfast.worker({ onEvent }).runOne();
    for (const file of files) closeSync(file);
    say({ reason: decision.reason, charge: decision.charge.to });
  },

  async open(holdfast) {
    say({ described: holdfast.describe(), counts: (await holdfast.counts()).byState });
  },

  async read(holdfast) {
    say({ tasks: (await holdfast.list({ limit: 1_000 })).length });
    say({ broken: await holdfast.store.upkeep.verify() });
  },

  async enqueue(holdfast) {
    for (let n = 0; n < options.tasks; n += 50) {
      const batch = Array.from({ length: Math.min(50, options.tasks - n) }, () =>
        holdfast.enqueue('work', options.input),
      );
      say({ acknowledged: (await Promise.all(batch)).map(({ id }) => id) });
    }
    if (options.die) await die();
  },

  /** Claims by hand, then dies with the claims, or completes them. */
  async claim(holdfast) {
    const claims = [];
    for (let n = 0; n < options.claims; n++) {
      const claim = await holdfast.claim(options.claim);
      if (!claim) break;
      claims.push(claim);
      say({ claimed: claim.id, execution: claim.execution, recovered: claim.recovered });
    }
    if (options.die) await die();
    for (const claim of claims) say({ settled: (await claim.complete(options.name)).state });
  },

  /** Claims through the store from each queue in turn, so many at a time, until it is told to end; settles nothing. */
  async claimBatches({ store }) {
    const worker = await store.tasks.join({ name: options.name, leaseFor: 600_000, publishes: {} });
    let ended = false;
    process.once('SIGTERM', () => {
      ended = true;
    });
    say('claiming');
    while (!ended) {
      for (const [queue, limit] of Object.entries(options.limits)) {
        const request = { worker, limit, queues: [queue], capabilities: {}, suspects: 1, alone: true, except: [] };
        const { tasks } = await store.tasks.claim(request);
        if (tasks.length > 0) say({ queue, batch: tasks.map(({ lease }) => lease.task) });
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
  },

  /** Fills the disk, then frees some of it. */
  async fill(holdfast) {
    const padding = 'x'.repeat(20_000);
    let acknowledged = 0;
    try {
      for (;;) acknowledged += (await holdfast.enqueue('work', { padding })).created ? 1 : 0;
    } catch (error) {
      say({ ...told(error), acknowledged, retryable: error.retryable });
    }
    say({ ready: (await holdfast.counts()).byState.ready, broken: await holdfast.store.upkeep.verify() });
    rmSync(options.filler);
    say({ again: (await holdfast.enqueue('work', { padding })).created });
  },
};

/** A test of somebody's own, with the kit. */
async function useKit() {
  const { openTestHoldfast } = await import(new URL('testing/index.js', dist).href);
  const kit = await openTestHoldfast({ tasks: [work], ...(path !== '' && { store: sqlite(path) }) });
  const { id } = await kit.holdfast.enqueue('work', { how: 'deaf' });
  await kit.advance('2h');
  say({ state: (await kit.holdfast.get(id)).state });
  await kit.close();
  say({ timers: process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout' || kind === 'Immediate') });
}

const log = {
  debug() {},
  info() {},
  // What becomes of tasks is told by their events.
  warn: ({ event }, message) => event === undefined && say({ warn: message }),
  error(fields, message) {
    say({ log: message, code: fields.err?.code });
    // What it had to wait for was seen, so the disk has space again.
    if (options.filler) rmSync(options.filler, { force: true });
  },
};

async function main() {
  if (mode === 'kit') return useKit();
  const holdfast = await openHoldfast({
    store: sqlite(path, options.sqlite),
    tasks: [work, child],
    log,
    workerName: options.name ?? 'worker',
  });
  if ((await modes[mode](holdfast)) !== 'left open') await holdfast.close();
  say('closed');
}

try {
  await main();
} catch (error) {
  say(told(error));
  process.exitCode = 3;
}
