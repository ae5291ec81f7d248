// @ts-check
import { relative } from 'node:path';

/**
 * What Vitest reports of a file, as far as it is read here.
 * @typedef {{ name: string, status: string, message?: string, assertionResults: readonly { ancestorTitles: readonly string[], title: string, status: string, failureMessages?: readonly string[] }[] }} FileResult
 */

/**
 * How each test ended, by `FILE > NAME`. Where several have one name, all of them must have passed.
 * @param {readonly FileResult[]} files
 * @param {string} root
 * @returns {ReadonlyMap<string, string>}
 */
export function resultsByTest(files, root) {
  /** @type {Map<string, string>} */
  const results = new Map();
  for (const { name: file, assertionResults } of files) {
    for (const { ancestorTitles, title, status } of assertionResults) {
      const test = [relative(root, file), ...ancestorTitles, title].join(' > ');
      if ((results.get(test) ?? 'passed') === 'passed') results.set(test, status);
    }
  }
  return results;
}

/**
 * What went wrong that no single test stands for: a file that could not be loaded, or in which there is no test.
 * @param {readonly FileResult[]} files
 * @param {string} root
 */
export function brokenFiles(files, root) {
  return files
    .filter(
      ({ status, assertionResults }) =>
        status !== 'passed' && assertionResults.every((test) => test.status !== 'failed'),
    )
    .map(
      ({ name, message }) => `${relative(root, name)}: ${message?.split('\n')[0] || 'it broke outside of its tests'}`,
    );
}

/**
 * Why a promise is not proven; undefined where it is.
 * @param {string} test
 * @param {ReadonlyMap<string, string>} results
 */
export function whyNotProven(test, results) {
  const status = results.get(test);
  if (status === 'passed') return undefined;
  if (status === undefined) return 'there is no test of that name';
  return status === 'failed' ? 'its test failed' : `its test did not run (${status})`;
}

/**
 * The promises whose test is missing or did not run, a line each. A test that failed speaks for itself.
 * @param {readonly import('./promises.mjs').Promised[]} promises
 * @param {ReadonlyMap<string, string>} results
 */
export function unfounded(promises, results) {
  return promises.flatMap(({ promise, test }) => {
    const why = test === undefined ? undefined : whyNotProven(test, results);
    return why === undefined || results.get(test ?? '') === 'failed' ? [] : [`${why}: ${test} (${promise})`];
  });
}
