// @ts-check
// One run: records the plan, then moves whatever is due, of this plan and of earlier ones.
import { lstatSync } from 'node:fs';
import { keyOf } from './plan.js';
import { AT_ONCE, FILE_MOVE } from './queue.js';

/**
 * @typedef {import('holdfast').Holdfast} Holdfast
 * @typedef {import('holdfast').WorkerEvent} WorkerEvent
 * @typedef {import('holdfast').Task} Task
 * @typedef {import('./plan.js').Move} Move
 * @typedef {NonNullable<import('holdfast').WorkerOptions['retention']>} Retention
 * @typedef {{ readonly move: Move, readonly task: Task | undefined, readonly next: 'moves' | 'stands' | 'collides' | 'absent' }} Foreseen
 */

/**
 * How long moves are kept that have ended. One that needs a person is kept until somebody answers.
 *
 * @type {Retention}
 */
export const RETENTION = { succeeded: '30d', dead: '30d', cancelled: '30d', needs_manual: 'never' };

/**
 * Records a plan and works off what is due. Runs may overlap: each move is one task, and one run at a time has its lease. What
 * a run that died had begun is taken over at once. Then it removes what is older than its `retention` says.
 *
 * @param {Holdfast} queue
 * @param {readonly Move[]} moves
 * @param {{ readonly onEvent?: (event: WorkerEvent) => void, readonly retention?: Retention }} [options]
 * @returns {Promise<{ readonly succeeded: number, readonly removed: number, readonly missing: readonly Move[] }>} how many moves
 * succeeded in this run, how many old ones it removed from the queue, and the moves whose file is missing.
 */
export async function tidy(queue, moves, { onEvent = () => {}, retention = RETENTION } = {}) {
  let [succeeded, removed] = [0, 0];
  const worker = queue.worker({
    concurrency: 4,
    retention,
    onRemoved(old) {
      removed += old.length;
    },
    onEvent(event) {
      if (event.kind === 'settled' && event.state === 'succeeded') succeeded += 1;
      onEvent(event);
    },
  });
  const missing = await record(queue, moves);
  await worker.drain();
  await worker.stop();
  // A worker removes what is old by itself, but one that ends so soon does not get far.
  removed += await queue.prune(retention);
  return { succeeded, removed, missing };
}

/**
 * What a run would do with each move. Changes nothing; without a queue nothing was recorded yet.
 *
 * @param {Holdfast | undefined} queue
 * @param {readonly Move[]} moves
 * @returns {Promise<readonly Foreseen[]>}
 */
export async function foresee(queue, moves) {
  /** @type {Foreseen[]} */
  const foreseen = [];
  for (const move of moves) {
    const task = await queue?.find(keyOf(move));
    foreseen.push({ move, task, next: nextOf(move, task) });
  }
  return foreseen;
}

/**
 * @param {Move} move
 * @param {Task | undefined} task
 * @returns {Foreseen['next']}
 */
function nextOf({ from, to }, task) {
  if (!isThere(from)) return 'absent';
  if (task !== undefined && task.state !== 'succeeded' && !isDue(task)) return 'stands';
  return isThere(to) ? 'collides' : 'moves';
}

/** @param {Task} task */
function isDue({ state, dueAt }) {
  return state === 'ready' || (state === 'scheduled' && dueAt !== undefined && dueAt <= new Date());
}

/**
 * One task for each move whose file is there. A move that is recorded already stays as it is: it waits for its time or for a
 * person, or it was given up. Only one that succeeded starts anew, since the file that is there now must be another one.
 *
 * @param {Holdfast} queue
 * @param {readonly Move[]} moves
 * @returns {Promise<readonly Move[]>} those whose file is not there, although no run has moved it.
 */
async function record(queue, moves) {
  const present = moves.filter(({ from }) => isThere(from));
  for (let start = 0; start < present.length; start += AT_ONCE) {
    const some = present.slice(start, start + AT_ONCE);
    const receipts = await queue.enqueueAll(FILE_MOVE, some, (move) => ({ key: keyOf(move) }));
    const known = receipts.filter(({ created }) => !created);
    for (const { id } of known) await startAnewIfMoved(queue, id);
  }
  const missing = [];
  for (const move of moves.filter(({ from }) => !isThere(from))) {
    if ((await queue.find(keyOf(move))) === undefined) missing.push(move);
  }
  return missing;
}

/**
 * @param {Holdfast} queue
 * @param {number} id
 */
async function startAnewIfMoved(queue, id) {
  const { state, input } = await queue.get(id);
  // Looked at again: another run may have moved the file since.
  if (state !== 'succeeded' || !isThere(Object(input).from)) return;
  try {
    await queue.retry(id, { actor: 'tidy', note: 'There is a new file of this name.' });
  } catch (error) {
    // Another run was quicker.
    if (Object(error).code !== 'state_conflict') throw error;
  }
}

/**
 * What nobody can look at now may be there when it is moved.
 *
 * @param {string} path
 */
function isThere(path) {
  try {
    return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
}
