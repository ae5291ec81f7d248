// A witness outside of the database: one file to which all processes append, a line for each thing that happened. What was
// appended outlives the process that did, and the lines stand in the order in which things happened.
import { openSync, readFileSync, writeSync } from 'node:fs';

export const ENDED = ['succeeded', 'dead', 'cancelled'];

/** Appends a line, made of what it is given: what happened, to which task, in which execution, and more. */
export function openWitness(path) {
  const file = openSync(path, 'a');
  return (...words) => writeSync(file, `${words.join(' ')}\n`);
}

/** For `onEvent` of a worker: notes what the store answered to it. */
export function noteAnswers(note) {
  return (event) => {
    if (event.kind === 'started') return;
    const { task, execution } = event.task.lease;
    if (event.kind === 'settled') note('answered', task, execution, event.state);
    else note('stale', task, execution);
  };
}

/** The lines of a witness, each as `{ what, task, execution, more }`. */
export function readWitness(path) {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const [what, task, execution, more] = line.split(' ');
    return { what, task: Number(task), execution: Number(execution), more };
  });
}

/** Nothing may start that was answered before: not the same execution again, and no execution after a final answer. */
export function startedAgain(lines) {
  const violations = [];
  const answered = new Map();
  for (const { what, task, execution, more } of lines) {
    const before = answered.get(task);
    // An answer may be noted late, when another process has noted a later one.
    if (what === 'answered' && !(before?.execution > execution)) answered.set(task, { execution, state: more });
    if (what !== 'start' || !before) continue;
    if (ENDED.includes(before.state)) violations.push(`#${task} started again after it was ${before.state}.`);
    if (execution <= before.execution) violations.push(`#${task} ran execution ${execution} twice.`);
  }
  return violations;
}
