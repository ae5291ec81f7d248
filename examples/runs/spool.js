// @ts-check
import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';

/** How many runs one look takes: they are enqueued in one transaction. */
const MOST_AT_ONCE = 1_000;

/**
 * Discovers the runs in a folder, a JSON file each. Whoever submits one writes it under another name first (`r-1.tmp`) and renames
 * it, so that nobody reads half of it.
 */
export class Spool {
  /** Files that were looked at, with the time of their last change: one that was mended is looked at again. */
  #seen = new Set();

  /**
   * @param {string} folder
   * @param {(line: string) => void} say
   */
  constructor(folder, say) {
    this.folder = folder;
    this.say = say;
  }

  /**
   * Enqueues every run that is not known yet, and answers their ids. A run's id is its task's key, so that it is one task however
   * often it is found, by this daemon or by the next one.
   * @param {import('holdfast').Holdfast} holdfast
   * @param {import('holdfast').TaskDefinition<import('./replay.js').Run, unknown>} task
   */
  async discover(holdfast, task) {
    const runs = await this.#unseen();
    const receipts = await enqueueRuns(holdfast, task, runs);
    const discovered = runs.filter((_, index) => receipts[index]?.created).map(({ id }) => id);
    for (const id of discovered) this.say(`${id}: discovered`);
    return discovered;
  }

  async #unseen() {
    const names = (await readdir(this.folder)).filter((name) => name.endsWith('.json'));
    const runs = [];
    for (const name of names.toSorted()) {
      const path = join(this.folder, name);
      const version = `${name} ${(await stat(path)).mtimeMs}`;
      if (this.#seen.has(version)) continue;
      this.#seen.add(version);
      try {
        runs.push(readRun(await readFile(path, 'utf8')));
      } catch (error) {
        this.say(`${name}: refused: ${error instanceof Error ? error.message : error}`);
      }
      if (runs.length === MOST_AT_ONCE) break;
    }
    return runs;
  }
}

/**
 * One task for each run. The queue is worked by the date of their submission, whenever they were found.
 * @param {import('holdfast').Holdfast} holdfast
 * @param {import('holdfast').TaskDefinition<import('./replay.js').Run, unknown>} task
 * @param {readonly import('./replay.js').Run[]} runs
 */
export function enqueueRuns(holdfast, task, runs) {
  return holdfast.enqueueAll(task, runs, ({ id, submitted, category }) => ({
    key: id,
    submittedAt: new Date(submitted),
    category,
  }));
}

/**
 * @param {string} text
 * @returns {import('./replay.js').Run}
 * @throws Error saying what is wrong with it.
 */
function readRun(text) {
  const run = JSON.parse(text);
  for (const field of ['id', 'submitted', 'category']) {
    if (typeof run?.[field] === 'string' && run[field] !== '' && run[field].length <= 255) continue;
    throw new Error(`\`${field}\` must be a text of 1 to 255 characters.`);
  }
  if (Number.isNaN(Date.parse(run.submitted)))
    throw new Error('`submitted` must be a date such as 2026-01-31T12:00:00Z.');
  if (!Array.isArray(run.steps)) throw new Error('`steps` must be a list.');
  return run;
}
