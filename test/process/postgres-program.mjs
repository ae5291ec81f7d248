// A worker on PostgreSQL for the process tests, on the built package: node postgres-program.mjs URL [OPTIONS as JSON]
// Each line that it prints is a JSON value. SIGUSR2 lets the handlers end that wait for it; SIGTERM ends the worker.
import { once } from 'node:events';
import { argv, stdout } from 'node:process';
import { defineTask, openHoldfast } from '../../dist/index.js';
import { postgres } from '../../dist/store/postgres/index.js';

const [url, json = '{}'] = argv.slice(2);
const { name, worker: options } = JSON.parse(json);

const say = (what) => stdout.write(`${JSON.stringify(what)}\n`);

const told = once(process, 'SIGUSR2');

const work = defineTask('work', {
  async run({ how }, task) {
    say({ running: task.id, execution: task.execution, startedAt: performance.timeOrigin + performance.now() });
    if (how === 'quick') return name;
    task.signal.addEventListener('abort', () => say({ aborted: task.id, reason: task.signal.reason.name }));
    await told;
    say({ ended: task.id });
    return name;
  },
});

async function main() {
  const holdfast = await openHoldfast({ store: postgres(url), tasks: [work], workerName: name });
  const worker = holdfast.work({
    ...options,
    onEvent(event) {
      const { task, execution } = event.task.lease;
      if (event.kind !== 'started') say({ [event.kind]: task, execution, state: event.state });
    },
  });
  process.once('SIGTERM', () => void worker.stop());
  say('working');
  await worker.finished;
  await holdfast.close();
  say('closed');
}

try {
  await main();
} catch (error) {
  say({ error: error.code });
  process.exitCode = 3;
}
