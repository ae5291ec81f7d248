// @ts-check
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { runNode } from './commands.mjs';

const VITEST = fileURLToPath(new URL('vitest.mjs', import.meta.resolve('vitest/package.json')));

/**
 * Runs tests with Vitest and reads its report. No report is no result: then only the error is answered.
 * @param {readonly string[]} args such as a configuration or files
 * @param {string} root
 * @param {import('./commands.mjs').Running} [running]
 * @returns {{ files: readonly import('./results.mjs').FileResult[], broken?: string }}
 */
export function runTests(args, root, running) {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-examples-'));
  const report = join(folder, 'report.json');
  try {
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
    const failed = runNode([VITEST, 'run', ...args, ...reporters], root, running);
    const { testResults, success } = JSON.parse(readFileSync(report, 'utf8'));
    // Vitest also fails for what happens outside of any test, such as an unhandled rejection.
    return { files: testResults, ...(failed && success && { broken: failed }) };
  } catch (error) {
    return { files: [], broken: `Vitest left no report: ${error instanceof Error ? error.message : error}` };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
