// @ts-check
// The analysis queue. What it keeps is a file, or with `--store postgres --url postgres://…` a server:
//   node examples/analysis/main.js validate [--config FILE]                    shows that the schedule is kept
//   node examples/analysis/main.js submit POSITION… --url analysis.db
//   node examples/analysis/main.js work --url analysis.db --positions FOLDER   until Ctrl+C
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { openHoldfast } from 'holdfast';
import { loadConfig } from 'holdfast/config';
import { openTestHoldfast } from 'holdfast/testing';
import { analysisTask } from './analysis.js';
import { storeCalled } from './store.js';
import { validate } from './validate.js';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    store: { type: 'string', default: 'sqlite' },
    url: { type: 'string' },
    config: { type: 'string', default: fileURLToPath(new URL('holdfast.yaml', import.meta.url)) },
    positions: { type: 'string', default: fileURLToPath(new URL('positions', import.meta.url)) },
  },
});
const [command = 'validate', ...positions] = positionals;
if (['submit', 'work'].includes(command) && values.url === undefined) {
  throw new Error(`${command} takes --url, for what it keeps must outlive it: --url analysis.db.`);
}
const task = analysisTask(values.positions);
const store = storeCalled(values.store, values.url);
const options = { store, tasks: [task], config: await loadConfig(values.config) };

switch (command) {
  case 'validate':
    await showValidation();
    break;
  case 'submit':
    await submit();
    break;
  case 'work':
    await work();
    break;
  default:
    console.error(`There is no command '${command}'. There are: validate, submit, work.`);
    process.exitCode = 2;
}

async function showValidation() {
  const kit = await openTestHoldfast(options);
  try {
    const { rows, error, ok } = await validate(kit, task);
    const { kind, where } = kit.holdfast.describe();
    console.log(`On ${kind} at ${where}, by ${values.config}:\n`);
    for (const { attempt, state, attempts, delay, verdict } of rows) {
      const wait = delay === undefined ? 'none' : `${delay} s`;
      const cells = [
        `attempt ${attempt}`,
        state.padEnd(9),
        `attempts ${attempts}`,
        `delay ${wait}`.padEnd(12),
        verdict,
      ];
      console.log(cells.join('   '));
    }
    console.log(`\nThe last failure was ${error}`);
    console.log(ok ? 'The schedule is kept.' : 'The schedule is NOT kept.');
    process.exitCode = ok ? 0 : 1;
  } finally {
    await kit.close();
  }
}

async function submit() {
  const holdfast = await openHoldfast(options);
  const receipts = await holdfast.enqueueAll(
    task,
    positions.map((position) => ({ position })),
  );
  for (const [index, { id }] of receipts.entries()) console.log(`${positions[index]} is task #${id}`);
  await holdfast.close();
}

async function work() {
  const holdfast = await openHoldfast(options);
  const worker = holdfast.work({
    onEvent(event) {
      const { task, execution } = event.task.lease;
      if (event.kind === 'settled') console.log(`#${task}, execution ${execution}: ${event.decision.because.text}`);
    },
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => void worker.stop());
  await worker.finished;
  await holdfast.close();
}
