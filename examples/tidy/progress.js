// @ts-check
// What a run says while it works, and what a dry run says instead.

/**
 * @typedef {import('holdfast').WorkerEvent} WorkerEvent
 * @typedef {import('./tidy.js').Foreseen} Foreseen
 */

/** @type {Readonly<Record<string, string>>} */
const MARKS = { succeeded: '✓', scheduled: '↻', needs_manual: '!', dead: '✗' };

/**
 * A line for each move that was tried; where it failed, what the system said, and what was decided.
 *
 * @param {(line: string) => void} print
 * @returns {(event: WorkerEvent) => void}
 */
export function reportTo(print) {
  return (event) => {
    if (event.kind !== 'settled') return;
    const { task, outcome, decision, state } = event;
    const { from, to } = JSON.parse(task.payload);
    print(`${MARKS[state] ?? '·'} ${from} → ${to}`);
    if (outcome.kind === 'failure') print(`  ${outcome.failure.message}`);
    if (state !== 'succeeded') print(`  ${decision.because.text}`);
  };
}

/** @param {readonly Foreseen[]} foreseen */
export function foreseenText(foreseen) {
  const lines = foreseen.map((one) => `${one.move.from} → ${one.move.to}\n  ${sentenceFor(one)}`);
  return ['DRY RUN: nothing is moved, and nothing is recorded.', '', ...lines].join('\n');
}

/** @param {Foreseen} foreseen */
function sentenceFor({ next, task }) {
  switch (next) {
    case 'moves':
      return 'would be moved';
    case 'collides':
      return 'the destination exists: would need a person, and nothing would be overwritten';
    case 'absent':
      return task?.state === 'succeeded' ? 'was moved already' : 'there is no such file: nothing to do';
    case 'stands':
      return standing(task);
  }
}

/** @param {Foreseen['task']} task */
function standing(task) {
  const { id, state, reason = 'unknown', dueAt } = /** @type {import('holdfast').Task} */ (task);
  switch (state) {
    case 'scheduled':
      return `#${id} waits until ${dueAt?.toISOString()}, after ${reason}`;
    case 'needs_manual':
      return `#${id} needs a person: ${reason}`;
    case 'dead':
      return `#${id} was given up: ${reason}`;
    default:
      return `#${id} is ${state}`;
  }
}
