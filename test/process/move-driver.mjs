// One execution of `move` in a process of its own: node move-driver.mjs FROM TO EXECUTION [MODULE]
// Prints what it returned or threw, as JSON. MODULE is the built handler. The file that CHECKPOINT names keeps the task's checkpoint,
// and whose execution saved it last: an earlier one has lost its lease by then.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { argv, env, stdout } from 'node:process';

const [from, to, execution, module = new URL('../../dist/handlers/move.js', import.meta.url).href] = argv.slice(2);
const { move } = await import(module);
const file = env.CHECKPOINT;
const saved = () => (file && existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { execution: 0 });
const task = {
  id: 7,
  execution: Number(execution),
  signal: new AbortController().signal,
  heartbeat() {},
  checkpoint: saved().value,
  async saveCheckpoint(value) {
    if (!file) return;
    if (saved().execution > task.execution) throw new Error('The lease was lost.');
    writeFileSync(`${file}.${execution}`, JSON.stringify({ execution: task.execution, value }));
    renameSync(`${file}.${execution}`, file);
  },
};
if (file && saved().execution < task.execution) {
  writeFileSync(file, JSON.stringify({ execution: task.execution, value: task.checkpoint }));
}

let outcome;
try {
  outcome = { result: await move({ from, to }, task) };
} catch (error) {
  const { name, message, code, syscall, path, dest } = error;
  outcome = { error: { name, message, code, syscall, path, dest, ...error[Symbol.for('holdfast.signal')] } };
}
stdout.write(`${JSON.stringify(outcome)}\n`);
