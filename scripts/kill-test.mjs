// Kills workers with SIGKILL at random moments while they execute and settle, and checks what a witness file, written by the
// handlers outside the database, says against what the database says.
//   npm run kill-test -- [--kills 200] [--seed N]
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { defineTask, fixed, openHoldfast } from '../dist/index.js';
import { sqlite } from '../dist/store/sqlite/index.js';
import { dice } from './kill-test/dice.mjs';
import { ENDED, noteAnswers, openWitness, readWitness, startedAgain } from './kill-test/witness.mjs';
import { startWorker } from './kill-test/worker-process.mjs';

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    worker: { type: 'string' },
    witness: { type: 'string' },
  },
});

/** Tasks that stand ready before each worker starts, so that it has something to be killed at. */
const BACKLOG = 30;

function types(note) {
  const retry = { maxAttempts: 3, backoff: fixed('1ms'), jitter: { kind: 'none' } };
  return [
    defineTask('work', {
      retry,
      async run({ ms, failures }, task) {
        note('start', task.id, task.execution);
        await new Promise((resolve) => setTimeout(resolve, ms));
        note('end', task.id, task.execution);
        if (task.attempt <= failures) throw new Error('asked to fail');
        return { ms };
      },
    }),
    defineTask('poison', {
      retry,
      run: () => {
        process.kill(process.pid, 'SIGKILL');
        return new Promise(() => {});
      },
    }),
  ];
}

/** A worker process: works until nothing is left that could run, then exits by itself. */
async function work(path, witness) {
  const note = openWitness(witness);
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: types(note) });
  const worker = holdfast.work({ concurrency: 4, pollInterval: '20ms', onEvent: noteAnswers(note) });
  process.stdout.write('working\n');
  for (;;) {
    await worker.drain();
    const { scheduled, ready, running } = (await holdfast.counts()).byState;
    if (scheduled + ready + running === 0) break;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await holdfast.close();
}

const start = (path, witness) => startWorker(fileURLToPath(import.meta.url), ['--worker', path, '--witness', witness]);

async function killMany(kills, random) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-kill-'));
  const [path, witness] = [join(folder, 'tasks.db'), join(folder, 'witness.log')];
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: types(openWitness(witness)) });
  const acknowledged = [];
  let killed = 0;
  for (let round = 0; killed < kills && round < kills * 3; round++) {
    const { ready, scheduled } = (await holdfast.counts()).byState;
    for (let n = ready + scheduled; n < BACKLOG; n++) {
      const input = { ms: Math.floor(random() * 15), failures: random() < 0.2 ? Math.floor(random() * 4) : 0 };
      acknowledged.push((await holdfast.enqueue('work', input)).id);
    }
    const { child, exited, working } = start(path, witness);
    await working;
    await new Promise((resolve) => setTimeout(resolve, random() * 60));
    child.kill('SIGKILL');
    if ((await exited).signal === 'SIGKILL') killed += 1;
  }
  const { exited } = start(path, witness);
  const { code } = await exited;
  const violations = code === 0 ? [] : [`The last worker, which nobody killed, ended with ${code}.`];
  violations.push(...(await holdfast.store.upkeep.verify()));
  const tasks = new Map();
  for (const id of acknowledged) tasks.set(id, await holdfast.find(id));
  for (const [id, task] of tasks) {
    if (!task) violations.push(`#${id} was acknowledged, and is lost.`);
    else if (!ENDED.includes(task.state) && !(task.state === 'needs_manual' && task.reason === 'worker.crash_loop')) {
      violations.push(`#${id} is ${task.state} (${task.reason}), which is neither an end nor a crash loop.`);
    }
  }
  const lines = readWitness(witness);
  violations.push(...startedAgain(lines));
  const seen = (wanted) => lines.filter(({ what }) => what === wanted);
  const ended = new Set(seen('end').map(({ task }) => task));
  for (const [id, task] of tasks) {
    if (task?.state === 'succeeded' && !ended.has(id))
      violations.push(`#${id} succeeded, and its handler never ended.`);
  }
  const byState = (await holdfast.counts()).byState;
  await holdfast.close();
  rmSync(folder, { recursive: true });
  const answered = new Set(seen('answered').map(({ task }) => task)).size;
  return { killed, tasks: tasks.size, starts: seen('start').length, answered, byState, violations };
}

async function poison() {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-poison-'));
  const [path, witness] = [join(folder, 'tasks.db'), join(folder, 'witness.log')];
  const holdfast = await openHoldfast({ store: sqlite(path), tasks: types(openWitness(witness)) });
  const bad = (await holdfast.enqueue('poison', {})).id;
  const healthy = [];
  for (let i = 0; i < 50; i++) healthy.push((await holdfast.enqueue('work', { ms: 2, failures: 0 })).id);
  let deaths = 0;
  for (let lives = 0; lives < 60; lives++) {
    const { exited } = start(path, witness);
    if ((await exited).code === 0) break;
    deaths += 1;
  }
  const violations = await holdfast.store.upkeep.verify();
  const task = await holdfast.get(bad);
  if (task.state !== 'needs_manual' || task.reason !== 'worker.crash_loop') {
    violations.push(`The poison task is ${task.state} (${task.reason}).`);
  }
  let succeeded = 0;
  for (const id of healthy) {
    const { state } = await holdfast.get(id);
    if (state === 'succeeded') succeeded += 1;
    else violations.push(`The healthy task #${id} is ${state}.`);
  }
  await holdfast.close();
  rmSync(folder, { recursive: true });
  return { deaths, executions: task.executions, succeeded, violations };
}

if (values.worker) {
  await work(values.worker, values.witness);
} else {
  const kills = Number(values.kills);
  const from = performance.now();
  const many = await killMany(kills, dice(Number(values.seed)));
  console.log(
    `${many.killed} kills (seed ${values.seed}): ${many.tasks} tasks, ${many.starts} starts, ${many.answered} answered; ` +
      `${many.byState.succeeded} succeeded, ${many.byState.dead} dead, ${many.byState.needs_manual} need a person for worker.crash_loop`,
  );
  const one = await poison();
  console.log(
    `poison: killed ${one.deaths} workers in ${one.executions} executions; ${one.succeeded} of 50 beside it succeeded`,
  );
  const violations = [...many.violations, ...one.violations];
  if (many.killed < kills) violations.push(`Only ${many.killed} of ${kills} kills hit a living worker.`);
  for (const violation of violations) console.error(`VIOLATION ${violation}`);
  console.log(`${violations.length} violations in ${((performance.now() - from) / 1_000).toFixed(1)} s`);
  process.exitCode = violations.length > 0 ? 1 : 0;
}
