// @ts-check
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { defineTask, Failed } from 'holdfast';

/**
 * What is analysed, and what comes of it.
 * @typedef {{ position: string }} Input
 * @typedef {{ quantity: number, entry: number, price: number }} Position
 * @typedef {{ value: number, profit: number }} Analysis
 */

/**
 * Analyses a position, a JSON file in a folder. A position that is missing or broken fails with the code ERR_VALIDATION, and is
 * retried like every other failure: how often and when stands in holdfast.yaml.
 * @param {string} folder
 * @returns {import('holdfast').TaskDefinition<Input, Analysis>}
 */
export function analysisTask(folder) {
  return defineTask('analysis', {
    async run({ position }) {
      const { quantity, entry, price } = await read(folder, position);
      return { value: quantity * price, profit: quantity * (price - entry) };
    },
  });
}

/**
 * @param {string} folder
 * @param {string} name
 * @returns {Promise<Position>}
 */
async function read(folder, name) {
  const text = await readFile(join(folder, `${name}.json`), 'utf8').catch((cause) => {
    throw cause.code === 'ENOENT' ? invalid(`Position ${name} does not exist.`, cause) : cause;
  });
  const position = JSON.parse(text);
  for (const field of ['quantity', 'entry', 'price']) {
    if (!Number.isFinite(position[field])) throw invalid(`Position ${name} has no number \`${field}\`.`);
  }
  return position;
}

/**
 * @param {string} message
 * @param {unknown} [cause]
 */
function invalid(message, cause) {
  return new Failed(message, { kind: 'permanent', reason: 'validation', code: 'ERR_VALIDATION', cause });
}
