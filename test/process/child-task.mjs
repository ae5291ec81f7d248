// The module of a type whose handler runs in a child process.
import { spawn } from 'node:child_process';
import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

// Not the whole package: each child imports this.
const dist = (file) => import(new URL(`../../dist/${file}`, import.meta.url).href);
const { defineTask } = await dist('worker/define-task.js');
const { Failed, NeedsManual, RetryLater } = await dist('failure/signals.js');

class CodedError extends Error {
  get status() {
    return 503;
  }
}

const endings = {
  result: ({ type, attempt, submittedAt }) => ({ type, attempt, submitted: submittedAt instanceof Date }),
  'checkpoint twice': async (task) => {
    task.progress('half');
    await task.saveCheckpoint({ page: 1 });
    await task.saveCheckpoint({ page: task.checkpoint.page + 1 });
    return task.checkpoint;
  },
  'refused checkpoint': (task) => task.saveCheckpoint(1n).catch(({ code, path }) => `${code} at ${path}`),
  'own messages': () => {
    for (const message of [null, 'ready', { kind: 'ready' }]) process.send(message);
    return delay(20, 'done');
  },
  // A program that goes on when the handler has ended.
  'leave a program': () => spawn('sleep', ['60'], { stdio: 'ignore' }).pid,
  later: () => {
    throw new RetryLater('5m', 'not yet', { reason: 'mail.not_yet' });
  },
  reason: () => {
    throw new Failed('closed', { kind: 'permanent', reason: 'order.closed', code: 'E7' });
  },
  signal: () => new NeedsManual('Look at it.'),
  getter: () => {
    throw new CodedError('unavailable');
  },
  cause: () => {
    throw new Error('outer', {
      cause: Object.assign(new Error('inner'), { code: 'ECONNREFUSED', syscall: 'connect' }),
    });
  },
  'refused result': () => new Map(),
  stray: () => {
    void Promise.reject(Object.assign(new Error('left behind'), { code: 'ECONNRESET' }));
    return delay(60_000);
  },
  killed: () => process.kill(process.pid, 'SIGKILL'),
  crash: () => process.kill(process.pid, 'SIGSEGV'),
  'exit 0': () => process.exit(0),
  'closed channel': () => {
    process.disconnect();
    return delay(60_000);
  },
  memory: () => {
    const kept = [];
    for (;;) kept.push({ number: kept.length, list: new Array(100).fill(kept.length) });
  },
  block: () => {
    for (;;);
  },
  'wait for abort': (task) =>
    new Promise((_, reject) => {
      task.signal.addEventListener('abort', () => reject(task.signal.reason));
    }),
  'finish when aborted': (task) =>
    new Promise((resolve) => {
      task.signal.addEventListener('abort', () => resolve(task.signal.reason.name));
    }),
};

export const child = defineTask('child', {
  runIn: 'process',
  module: import.meta.url,
  memory: '32MB',
  // One source each: a failure of one source does not hold the others.
  source: ({ how }) => how,
  retry: { maxAttempts: 1, timeout: '1h' },
  async run({ how, witness }, task) {
    if (witness) appendFileSync(witness, `${process.pid}\n`);
    return endings[how](task);
  },
});

const options = { runIn: 'process', module: import.meta.url, idempotent: true };

export const blocking = defineTask('blocking', {
  ...options,
  retry: { maxAttempts: 1, timeout: '200ms' },
  run: () => endings.block(),
});

/** The child imports another module, which does not have it. */
export const elsewhere = defineTask('elsewhere', {
  ...options,
  module: new URL('../../dist/index.js', import.meta.url),
  run() {},
});

export const exiting = defineTask('exiting', {
  ...options,
  module: new URL('data:text/javascript,process.exit(3)'),
  run() {},
});

const address = (file) => JSON.stringify(new URL(`../../dist/${file}`, import.meta.url).href);

export const starting = defineTask('starting', {
  ...options,
  module: new URL(
    `data:text/javascript,import { defineTask, openHoldfast } from ${address('index.js')}; import { sqlite } from ${address('store/sqlite/index.js')};
    (await openHoldfast({ store: sqlite(':memory:'), tasks: [defineTask('starting', { run() {} })] })).work();`,
  ),
  run() {},
});

export const lost = defineTask('lost', { ...options, module: '/no/such/module.js', run() {} });
