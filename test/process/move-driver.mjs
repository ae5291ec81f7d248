// One execution of `move` in a process of its own: node move-driver.mjs FROM TO EXECUTION [MODULE]
// Prints what it returned or threw, as JSON. MODULE is the built handler.
import { argv, stdout } from 'node:process';

const [from, to, execution, module = new URL('../../dist/handlers/move.js', import.meta.url).href] = argv.slice(2);
const { move } = await import(module);
const task = { id: 7, execution: Number(execution), signal: new AbortController().signal, heartbeat() {} };

let outcome;
try {
  outcome = { result: await move({ from, to }, task) };
} catch (error) {
  const { name, message, code, syscall, path, dest } = error;
  outcome = { error: { name, message, code, syscall, path, dest, ...error[Symbol.for('holdfast.signal')] } };
}
stdout.write(`${JSON.stringify(outcome)}\n`);
