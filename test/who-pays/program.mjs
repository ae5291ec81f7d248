// A worker process for the tests of who pays, on the built package: node program.mjs KIND WHERE [OPTIONS as JSON]
// Each line that it prints is a JSON value. SIGUSR2 ends the handlers that wait for it; SIGTERM stops the worker.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { argv, stdout } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { defineTask, NeedsManual, openHoldfast, PermanentFailure, RetryLater } from '../../dist/index.js';
import { postgres } from '../../dist/store/postgres/index.js';
import { sqlite } from '../../dist/store/sqlite/index.js';

const [kind, where, json = '{}'] = argv.slice(2);
const { name, worker: options = {}, task: definition = {}, types = ['work'], grace, lives } = JSON.parse(json);

/** The test has read what was said before this process dies: a pipe is written to at once. */
const say = (what) => stdout.write(`${JSON.stringify(what)}\n`);

const told = new Promise((resolve) => process.once('SIGUSR2', resolve));

const aborted = (signal) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));

/** What a handler does: its input names it, for all executions or for each in turn. */
const DEEDS = {
  succeed: () => name,
  fail() {
    throw new Error('It does not work.');
  },
  throw({ error: { message, ...fields } }) {
    throw Object.assign(new Error(message), fields);
  },
  later({ ms }) {
    throw new RetryLater(`${ms}ms`);
  },
  permanent() {
    throw new PermanentFailure('It cannot work.');
  },
  person() {
    throw new NeedsManual('Somebody has to look.');
  },
  work: ({ ms }, { signal }) => delay(ms, undefined, { signal }),
  async command({ ms }, { signal }) {
    const [code] = await once(spawn('sleep', [String(ms / 1_000)], { signal }), 'exit');
    if (code !== 0) throw new Error(`The command ended with ${code}.`);
  },
  untilTold: (_, { signal }) => Promise.race([told, aborted(signal)]),
  untilAborted: (_, { signal }) => aborted(signal),
  async tellAborted(_, { id, signal }) {
    await aborted(signal).catch(({ name: reason }) => say({ aborted: id, reason }));
    throw signal.reason;
  },
  deaf: () => new Promise(() => {}),
  /** Says that it was told to end, and goes on. */
  stubborn(_, { id, signal }) {
    signal.addEventListener('abort', () => say({ aborted: id }));
    return new Promise(() => {});
  },
  block({ ms }) {
    for (const end = performance.now() + ms; performance.now() < end; );
  },
  die() {
    process.kill(process.pid, 'SIGKILL');
    return new Promise(() => {});
  },
  /** Leaves a promise behind that rejects after the handler has ended. */
  leaveRejection({ ms = 0 }) {
    void delay(ms).then(() => {
      throw new Error('Nobody awaited this.');
    });
  },
  throwLater({ ms }) {
    setTimeout(() => {
      throw new Error('Nobody catches this.');
    }, ms);
  },
};

const tasks = types.map((type) =>
  defineTask(type, {
    retry: { backoff: { kind: 'immediate' }, jitter: { kind: 'none' } },
    ...definition,
    run(input, task) {
      const deed = Array.isArray(input.does) ? (input.does[task.execution - 1] ?? input.does.at(-1)) : input.does;
      say({ running: task.id, execution: task.execution });
      return DEEDS[deed](input, task);
    },
  }),
);

const log = {
  debug() {},
  info() {},
  warn: (fields, message) => say({ warned: message, ...fields, err: fields.err?.message }),
  error: (fields, message) => say({ warned: message, ...fields, err: fields.err?.message }),
};

const store = kind === 'sqlite' ? sqlite(where) : postgres(where);
const holdfast = await openHoldfast({ store, tasks, log, workerName: name });
const settings = {
  leaseFor: '1s',
  pollInterval: '20ms',
  ...options,
  onEvent(event) {
    const { task, execution } = event.task.lease;
    if (event.kind !== 'started') say({ [event.kind]: task, execution, state: event.state });
  },
};
// One that lives for a moment runs a task, or drains the queue, and ends.
const worker = lives === undefined ? holdfast.work(settings) : holdfast.worker(settings);
if (lives !== undefined) {
  await worker[lives]();
  await holdfast.close();
  process.exit(0);
}
process.once('SIGTERM', () => {
  say('told to stop');
  void worker.stop(grace === undefined ? {} : { grace });
});
say('working');
await worker.finished;
await holdfast.close();
say('closed');
