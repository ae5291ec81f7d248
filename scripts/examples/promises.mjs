// @ts-check
import { parse } from 'yaml';

/**
 * A statement of a document. It is proven by a test, or left: answered otherwise or not yet, with the reason.
 * @typedef {object} Promised
 * @property {string} promise
 * @property {string} section the heading that it stands under
 * @property {string} [test] `FILE > NAME`, the name with those of its groups before it
 * @property {string} [left]
 */

const MEMBERS = ['promise', 'section', 'test', 'left'];

/**
 * Reads a promises.yaml.
 * @param {string} text
 * @param {string} path for the message
 * @returns {readonly Promised[]}
 * @throws Error naming the entry that is refused.
 */
export function readPromises(text, path) {
  const entries = parsed(text, path);
  if (!Array.isArray(entries) || entries.length === 0) throw new Error(`${path} must be a list of promises.`);
  for (const [index, entry] of entries.entries()) {
    const objection = objectionTo(entry);
    if (objection !== undefined) throw new Error(`${path}, entry ${index + 1}: ${objection}`);
  }
  return entries;
}

/**
 * @param {string} text
 * @param {string} path
 * @returns {unknown}
 */
function parsed(text, path) {
  try {
    return parse(text);
  } catch (error) {
    const [message] = String(error).split('\n');
    throw new Error(`${path} is no YAML: ${message} Put texts with a colon in quotes.`, { cause: error });
  }
}

/** @param {unknown} entry */
function objectionTo(entry) {
  const members = Object(entry);
  for (const [name, value] of Object.entries(members)) {
    if (!MEMBERS.includes(name)) return `'${name}' is none of ${MEMBERS.join(', ')}.`;
    if (typeof value !== 'string' || value.trim() === '')
      return `\`${name}\` must be a text, got ${JSON.stringify(value)}.`;
  }
  if (!('promise' in members && 'section' in members)) return 'it needs a `promise` and its `section`.';
  if ('test' in members === 'left' in members)
    return `it needs either a \`test\` or a word on why it is \`left\`: ${members.promise}`;
  if ('test' in members && !/^\S+\.test\.ts > \S/.test(members.test)) {
    return `\`test\` must be like "examples/runs/test/order.test.ts > NAME", got ${JSON.stringify(members.test)}.`;
  }
  return undefined;
}

/**
 * The file of a test, and its name there.
 * @param {string} test
 */
export function splitTest(test) {
  const [file = '', ...names] = test.split(' > ');
  return { file, name: names.join(' > ') };
}
