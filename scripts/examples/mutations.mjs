// @ts-check
// Edits of the examples, each of which must turn their tests red. They prove that the tests can fail.
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';
import { runTests } from './tests.mjs';

/**
 * @typedef {object} Mutation
 * @property {string} what a sentence: what the example would do wrong
 * @property {string} file in the folder of the example
 * @property {string} find must be there exactly once
 * @property {string} put stands there instead
 * @property {string} tests the name of the file of tests that must turn red, without `.test.ts`
 */

const MEMBERS = ['what', 'file', 'find', 'put', 'tests'];

/** An example whose list is shorter proves too little. */
const FEWEST = 12;

/** Longer than the tests of an example take on a busy machine. */
const LONGEST_MS = 600_000;

/**
 * The mutations of an example. Nothing is run.
 * @param {string} example
 * @param {string} root
 * @returns {{ mutations: readonly Mutation[], problems: readonly string[] }}
 */
export function readMutations(example, root) {
  const path = `examples/${example}/mutations.yaml`;
  if (!existsSync(join(root, path))) return { mutations: [], problems: [`${path} is missing.`] };
  const entries = parse(readFileSync(join(root, path), 'utf8'));
  if (!Array.isArray(entries) || entries.length < FEWEST) {
    return { mutations: [], problems: [`${path} must be a list of at least ${FEWEST} mutations.`] };
  }
  const problems = entries.flatMap((entry, index) => {
    const problem = problemOf(entry, join(root, 'examples', example));
    return problem === undefined ? [] : [`${path}, entry ${index + 1}: ${problem}`];
  });
  return { mutations: entries, problems };
}

/**
 * @param {unknown} entry
 * @param {string} folder of the example
 */
export function problemOf(entry, folder) {
  const given = Object(entry);
  const wrong = MEMBERS.find((name) => typeof given[name] !== 'string');
  if (wrong !== undefined) return `\`${wrong}\` must be a text.`;
  const unknown = Object.keys(given).find((name) => !MEMBERS.includes(name));
  if (unknown !== undefined) return `'${unknown}' is none of ${MEMBERS.join(', ')}.`;
  const { file, find, put, tests } = /** @type {Mutation} */ (given);
  if (find === put) return '`put` must differ from `find`.';
  if (!existsSync(join(folder, 'test', `${tests}.test.ts`))) return `there is no test/${tests}.test.ts.`;
  if (!existsSync(join(folder, file))) return `there is no file ${file}.`;
  const times = readFileSync(join(folder, file), 'utf8').split(find).length - 1;
  return times === 1
    ? undefined
    : `${JSON.stringify(find)} must be in ${file} exactly once, and is there ${times} times.`;
}

/**
 * Runs the tests of an example on a copy, first as it is, then with each of its mutations.
 * @param {string} example
 * @param {readonly Mutation[]} mutations
 * @param {string} root
 * @returns {readonly string[]} what went wrong
 */
export function runMutations(example, mutations, root) {
  const copy = copyOf(root);
  try {
    const folder = join(copy, 'examples', example);
    const files = [...new Set(mutations.map(({ tests }) => tests))];
    const unchanged = verdictOf(files, folder, copy);
    if (unchanged.verdict !== 'green')
      return [`${example}: its tests are ${unchanged.verdict} without any mutation: ${unchanged.why}`];
    return mutations.flatMap((mutation) => {
      const { verdict, why } = verdictOf([mutation.tests], folder, copy, mutation);
      console.log(`${verdict.padEnd(8)} ${example}: ${mutation.what}${why && ` (${why})`}`);
      return verdict === 'red'
        ? []
        : [`${example}: its tests are ${verdict} although ${mutation.what} (${mutation.file})`];
    });
  } finally {
    rmSync(copy, { recursive: true });
  }
}

/** @param {{ readonly status: string }} result */
function isFailed({ status }) {
  return status === 'failed';
}

/** @param {string} [text] a message and a stack; where a test ran into its time limit, Vitest gives a stack alone */
function reasonOf(text = '') {
  const [first = ''] = text.split('\n');
  return first.includes('STACK_TRACE_ERROR') ? 'it took too long' : first;
}

/**
 * The examples are copied; what they use of the project is linked.
 * @param {string} root
 */
function copyOf(root) {
  const copy = mkdtempSync(join(tmpdir(), 'holdfast-mutations-'));
  for (const name of readdirSync(root)) {
    if (name === 'examples' || name === 'package.json') cpSync(join(root, name), join(copy, name), { recursive: true });
    else if (!name.startsWith('.')) symlinkSync(join(root, name), join(copy, name));
  }
  return copy;
}

/**
 * `red`: a test failed. `broken`: no test failed, but not all of them ran, so nothing is proven.
 * @param {readonly string[]} tests
 * @param {string} folder
 * @param {string} copy
 * @param {Mutation} [mutation]
 * @returns {{ verdict: 'green' | 'red' | 'broken', why: string }}
 */
function verdictOf(tests, folder, copy, mutation) {
  const path = join(folder, mutation?.file ?? 'README.md');
  const before = readFileSync(path, 'utf8');
  if (mutation)
    writeFileSync(
      path,
      before.replace(mutation.find, () => mutation.put),
    );
  try {
    const files = tests.map((name) => join(folder, 'test', `${name}.test.ts`));
    const flags = ['--config', 'examples/vitest.config.mjs', '--bail=1'];
    const run = runTests([...flags, ...files], copy, { quietly: true, longestMs: LONGEST_MS });
    const failed = run.files.flatMap(({ assertionResults }) => assertionResults).find(isFailed);
    if (failed) return { verdict: 'red', why: `${failed.title}: ${reasonOf(failed.failureMessages?.[0])}` };
    const passed = run.broken === undefined && run.files.every(({ status }) => status === 'passed');
    return passed ? { verdict: 'green', why: '' } : { verdict: 'broken', why: run.broken ?? '' };
  } finally {
    writeFileSync(path, before);
  }
}
