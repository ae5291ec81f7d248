// @ts-check
// The queue: one SQLite file that all runs share, and the type of task that moves a file.
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { defineTask, openHoldfast, presets } from 'holdfast';
import { move } from 'holdfast/handlers';
import { sqlite } from 'holdfast/sqlite';

/** @typedef {{ readonly smart?: boolean }} PolicyChoice */

export const FILE_MOVE = 'file_move';

/** As many as one transaction takes. */
export const AT_ONCE = 10_000;

/**
 * A full disk, a failing device and too many open files are the worker's fault, which charges no task unless a rule names the very
 * reason. Here they count like any other failure.
 *
 * @type {(typeof presets.fileMove)['rules']}
 */
const COUNTED = { 'fs.no_space': {}, 'fs.io': {}, 'fs.too_many_files': {} };

/**
 * The policy is a preset: `fileMove` answers each reason by its own rule, `fileMovePlain` (`smart: false`) all of them alike.
 *
 * @param {PolicyChoice} [choice]
 */
export function policyOf({ smart = true } = {}) {
  const preset = smart ? presets.fileMove : presets.fileMovePlain;
  return { ...preset, rules: { ...preset.rules, ...COUNTED } };
}

/**
 * What moves a file or a folder. It makes the folder that it is moved to.
 *
 * @param {PolicyChoice} [choice]
 */
export function fileMove(choice) {
  return defineTask(FILE_MOVE, {
    retry: policyOf(choice),
    /** @param {import('holdfast/handlers').MoveInput} input @param {import('holdfast').RunningTask} task */
    async run(input, task) {
      await mkdir(dirname(input.to), { recursive: true });
      return move(input, task);
    },
  });
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
