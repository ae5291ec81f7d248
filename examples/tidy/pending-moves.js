// @ts-check
// Reads the JSON queue of the system that this replaces, as tasks that go on where they were.
import { readFileSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { keyOf } from './plan.js';
import { AT_ONCE, FILE_MOVE } from './queue.js';

/**
 * @typedef {object} Item One entry of the old queue.
 * @property {string} id
 * @property {string} src
 * @property {string} dest
 * @property {string} status
 * @property {string} [reason]
 * @property {number} [attempt_count]
 * @property {string} [next_eligible_at]
 * @property {string} [last_attempt_at]
 * @property {string} [finished_at]
 * @property {string} [last_error]
 */

/** @type {Readonly<Record<string, string>>} */
const REASONS = { locked: 'fs.locked', permission: 'fs.permission', dest_exists: 'fs.dest_exists', unknown: 'unknown' };

/** @type {Readonly<Record<string, import('holdfast').ImportState>>} */
const STATES = { pending: 'ready', succeeded: 'succeeded', abandoned: 'dead', needs_manual: 'needs_manual' };

/** What stands in the way of reading an old queue. `code` stays the same. */
export class OldQueueError extends Error {
  code = 'invalid_old_queue';
}

/**
 * Brings an old queue over, from its file. If it is interrupted, it may be called again.
 *
 * @param {import('holdfast').Holdfast} queue
 * @param {string} file
 * @param {string} [workspaceRoot] what its paths are relative to. Default: the file's `workspace_root`, else the folder of the file.
 * @returns {Promise<{ readonly imported: number, readonly known: number }>}
 * @throws {OldQueueError} before anything is imported.
 */
export async function bringFrom(queue, file, workspaceRoot) {
  const content = contentOf(file);
  const tasks = tasksFrom(content, workspaceRoot ?? resolve(dirname(file), Object(content).workspace_root ?? '.'));
  let imported = 0;
  for (let start = 0; start < tasks.length; start += AT_ONCE) {
    const receipts = await queue.importTasks(tasks.slice(start, start + AT_ONCE), { actor: 'tidy' });
    imported += receipts.filter(({ created }) => created).length;
  }
  return { imported, known: tasks.length - imported };
}

/** @param {string} file */
function contentOf(file) {
  const text = readFileSync(file, 'utf8');
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new OldQueueError(`${file} is no JSON: ${Object(cause).message}`, { cause });
  }
}

/**
 * What `holdfast.importTasks` takes of an old queue: states, counts by reason and times are kept. Each has the key of its move, so that
 * a plan recognises it, and importing it twice changes nothing.
 *
 * @param {unknown} content `{ "items": [...] }`, as it was parsed.
 * @param {string} workspaceRoot what its paths are relative to.
 * @returns {readonly import('holdfast').TaskToImport[]}
 * @throws {OldQueueError} naming the first item that is refused.
 */
export function tasksFrom(content, workspaceRoot) {
  const { items } = Object(content);
  if (!Array.isArray(items)) throw new OldQueueError('An old queue is { "items": [...] }, and this has no `items`.');
  return items.map((item, index) => taskFrom(item, workspaceRoot, `items[${index}]`));
}

/**
 * @param {Item} item
 * @param {string} workspaceRoot
 * @param {string} where
 * @returns {import('holdfast').TaskToImport}
 */
function taskFrom(item, workspaceRoot, where) {
  const { id, src, dest, status, reason, attempt_count: count = 0 } = item;
  if (!src || !dest) throw new OldQueueError(`${where} needs \`src\` and \`dest\`.`);
  const state = STATES[status];
  if (state === undefined) {
    throw new OldQueueError(
      `${where} has the status ${JSON.stringify(status)}: known are ${Object.keys(STATES).join(', ')}.`,
    );
  }
  const move = { from: resolve(workspaceRoot, src), to: resolve(workspaceRoot, dest) };
  const due = state === 'ready' ? item.next_eligible_at : undefined;
  const ended = state === 'succeeded' || state === 'dead' ? (item.finished_at ?? item.last_attempt_at) : undefined;
  return {
    type: FILE_MOVE,
    key: keyOf(move),
    input: move,
    ...(due === undefined ? { state } : { at: new Date(due) }),
    ...(count > 0 && { charged: [{ reason: REASONS[reason ?? 'unknown'] ?? 'unknown', count }] }),
    ...(count > 0 && item.last_error !== undefined && { error: item.last_error }),
    ...(ended !== undefined && { endedAt: new Date(ended) }),
    note: `It was ${id ?? where} there${item.last_attempt_at ? `, last tried at ${item.last_attempt_at}` : ''}.`,
  };
}
