// What the process tests run, on the built package: node program.mjs MODE PATH [OPTIONS as JSON]
// Each line that it prints is a JSON value. It ends by itself, or the test that started it fails.
import { appendFileSync, rmSync } from 'node:fs';
import { argv, stdin, stdout } from 'node:process';

const [mode, path, json = '{}'] = argv.slice(2);
const options = JSON.parse(json);
const dist = options.dist ?? new URL('../../dist/', import.meta.url).href;
const { openHoldfast, defineTask } = await import(new URL('index.js', dist).href);
const { sqlite } = await import(new URL('store/sqlite/index.js', dist).href);

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
      case 'die':
        process.kill(process.pid, 'SIGKILL');
        return new Promise(() => {});
    }
  },
});

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

const log = {
  debug() {},
  info() {},
  warn: (fields, message) => say({ warn: message }),
  error: (fields, message) => say({ log: message, code: fields.err?.code }),
};

try {
  const holdfast = await openHoldfast({
    store: sqlite(path),
    tasks: [work],
    log,
    workerName: options.name ?? 'worker',
  });
  if ((await modes[mode](holdfast)) !== 'left open') await holdfast.close();
  say('closed');
} catch (error) {
  say(told(error));
  process.exitCode = 3;
}
stdin.unref?.();
