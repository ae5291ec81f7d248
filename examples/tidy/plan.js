// @ts-check
// Reads a plan of moves: YAML or JSON, which YAML includes.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, dirname, resolve } from 'node:path';
import { parse } from 'yaml';

/** @typedef {{ readonly from: string, readonly to: string }} Move Absolute paths. */

/** What is wrong with a plan. `code` stays the same; the message says where, and what to write instead. */
export class PlanError extends Error {
  code = 'invalid_plan';
}

/**
 * Reads a plan. Paths are relative to its `root`, and that to the plan's own folder; a `to` that ends with a slash is a folder,
 * and the file keeps its name there.
 *
 * @param {string} path
 * @returns {readonly Move[]}
 * @throws {PlanError} naming the first thing that is refused.
 */
export function readPlan(path) {
  const { root = '.', moves, ...unknown } = contentOf(path);
  const [stranger] = Object.keys(unknown);
  if (stranger !== undefined)
    throw new PlanError(`${path}: a plan has \`root\` and \`moves\`, and no \`${stranger}\`.`);
  if (typeof root !== 'string') throw new PlanError(`${path}: \`root\` is a folder, such as ./inbox.`);
  if (!Array.isArray(moves)) throw new PlanError(`${path}: \`moves\` is a list of { from, to }.`);
  const base = resolve(dirname(path), root);
  return withoutNamesakes(
    path,
    moves.map((move, index) => moveFrom(move, base, `${path}: moves[${index}]`)),
  );
}

/**
 * Names a move, so that a plan that is read again finds what it enqueued before.
 *
 * @param {Move} move
 */
export function keyOf({ from, to }) {
  return `move:${createHash('sha256').update(`${from}\0${to}`).digest('hex').slice(0, 32)}`;
}

/**
 * @param {string} path
 * @returns {Record<string, unknown>}
 */
function contentOf(path) {
  const text = readFileSync(path, 'utf8');
  try {
    return Object(parse(text));
  } catch (cause) {
    throw new PlanError(`${path} is no YAML or JSON: ${Object(cause).message}`, { cause });
  }
}

/**
 * @param {unknown} given
 * @param {string} base
 * @param {string} where
 * @returns {Move}
 */
function moveFrom(given, base, where) {
  const { from, to } = Object(given);
  for (const [name, value] of Object.entries({ from, to })) {
    if (typeof value === 'string' && value !== '') continue;
    throw new PlanError(`${where} needs \`${name}\`, a path, got ${JSON.stringify(value) ?? 'nothing'}.`);
  }
  const source = resolve(base, from);
  const target = to.endsWith('/') ? resolve(base, to, basename(source)) : resolve(base, to);
  if (source === target) throw new PlanError(`${where}: '${from}' is there already.`);
  return { from: source, to: target };
}

/**
 * @param {string} path
 * @param {readonly Move[]} moves
 */
function withoutNamesakes(path, moves) {
  /** @type {Map<string, string>} */
  const sources = new Map();
  for (const { from, to } of moves) {
    const other = sources.get(to);
    if (other !== undefined) throw new PlanError(`${path}: '${other}' and '${from}' would both become '${to}'.`);
    sources.set(to, from);
  }
  return moves;
}
