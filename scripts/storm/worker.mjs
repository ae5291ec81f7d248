// A worker process of a storm: works until it is told to stop, and notes what its handlers do.
import { argv } from 'node:process';
import { setTimeout as delay } from 'node:timers/promises';
import { KILLED_ITSELF } from './crew.mjs';
import { MAX_ATTEMPTS } from './plans.mjs';
import { openPackage } from './store.mjs';
import { openWitness } from './witness.mjs';

const options = JSON.parse(argv[2]);
const { name, leaseFor } = options;
const note = openWitness(options.witness);
const { defineTask, fixed, opened, PermanentFailure, RetryLater } = await openPackage(options);

const work = defineTask('work', {
  retry: { maxAttempts: MAX_ATTEMPTS, backoff: fixed('50ms'), jitter: { kind: 'none' }, timeout: '10m' },
  idempotent: ({ plan }) => plan !== 'once',
  async run({ plan, ms, failures }, task) {
    const line = { task: task.id, execution: task.execution, process: name };
    note('start', line);
    if (plan === 'poison') die(line);
    try {
      await pass(plan, ms, task.signal);
    } catch (error) {
      note('end', { ...line, how: 'abort' });
      throw error;
    }
    const how = outcomeOf(plan, failures, task);
    note('end', { ...line, how });
    if (how === 'failure') throw new Error('It was to fail.');
    if (how === 'permanent') throw new PermanentFailure('It was to fail for good.');
    if (how === 'deferral') throw new RetryLater('1s');
    return { execution: task.execution };
  },
});

function outcomeOf(plan, failures, task) {
  if (plan === 'permanent') return 'permanent';
  if (plan === 'later' && task.execution % 2 === 1) return 'deferral';
  if (plan === 'failure' && task.attempt <= failures) return 'failure';
  return 'success';
}

async function pass(plan, ms, signal) {
  if (plan === 'block') for (const end = performance.now() + ms; performance.now() < end; );
  else await delay(ms, undefined, { signal });
}

/** In a pid namespace of its own a process is its first one, which SIGKILL does not end from inside. */
function die(line) {
  note('dies', line);
  process.kill(process.pid, 'SIGKILL');
  process.reallyExit(KILLED_ITSELF);
}

const holdfast = await opened({ tasks: [work], workerName: name });
const worker = holdfast.work({
  concurrency: 5,
  leaseFor,
  pollInterval: '50ms',
  grace: '1s',
  onEvent(event) {
    if (event.kind === 'started') return;
    const { task, execution } = event.task.lease;
    note(event.kind === 'settled' ? 'answered' : 'stale', { task, execution, process: name, how: event.state });
  },
});
process.once('SIGTERM', () => void worker.stop());
process.stdout.write('working\n');
await worker.finished;
await holdfast.close();
