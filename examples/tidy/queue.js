// @ts-check
// The queue: one SQLite file that all runs share, and the type of task that moves a file.
import { defineTask, openHoldfast, presets } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { moveFile } from './move-file.js';

/** @typedef {{ readonly smart?: boolean }} PolicyChoice */

export const FILE_MOVE = 'file_move';

/** As many as one transaction takes. */
export const AT_ONCE = 10_000;

/**
 * The policy is a preset: `fileMove` answers each reason by its own rule, `fileMovePlain` (`smart: false`) all of them alike.
 *
 * @param {PolicyChoice} [choice]
 */
export function policyOf({ smart = true } = {}) {
  return smart ? presets.fileMove : presets.fileMovePlain;
}

/**
 * What moves a file.
 *
 * @param {PolicyChoice} [choice]
 */
export function fileMove(choice) {
  return defineTask(FILE_MOVE, { retry: policyOf(choice), run: moveFile });
}

/**
 * Opens the queue in a file, which is made where it does not exist. Any number of processes may have it open.
 *
 * @param {string} file
 * @param {PolicyChoice} [choice]
 */
export function openQueue(file, choice) {
  return openHoldfast({ store: sqlite(file), tasks: [fileMove(choice)], workerName: `tidy-${process.pid}` });
}
