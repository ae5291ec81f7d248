// A witness outside of the database: one file to which all processes append, a line for each thing that happened. The lines stand
// in the order in which things happened, and what was noted as lasting is on the disk when `note` returns.
import { fdatasyncSync, openSync, readFileSync, writeSync } from 'node:fs';

/** What has been promised or done by then: an acknowledged task, the end of a handler. */
const LASTING = new Set(['acknowledged', 'end']);

/** Appends a line: what happened, to which task, in which execution, in which process, and how. */
export function openWitness(path) {
  const file = openSync(path, 'a');
  return (what, { task = 0, execution = 0, process = '-', how = '-' }) => {
    writeSync(file, `${what} ${task} ${execution} ${process} ${how}\n`);
    if (LASTING.has(what)) fdatasyncSync(file);
  };
}

export function readWitness(path) {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1);
  return lines.map((line) => {
    const [what, task, execution, process, how] = line.split(' ');
    return { what, task: Number(task), execution: Number(execution), process, how };
  });
}
