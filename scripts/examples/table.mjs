// @ts-check
import { whyNotProven } from './results.mjs';

/**
 * What became of each promise, with its test, then a line for each system.
 * @param {readonly import('./page.mjs').Covered[]} systems
 * @param {ReadonlyMap<string, string>} results
 */
export function report(systems, results) {
  const details = systems.flatMap(({ title, promises }) => [
    '',
    title,
    ...promises.map((promised) => line(promised, results)),
  ]);
  const counts = systems.map(({ title, promises, later }) =>
    later === undefined ? [title, ...countsOf(promises, results)] : [title, 'later', '', '', ''],
  );
  const head = ['system', 'promises', 'proven', 'left, with the reason', 'not proven'];
  return [...details, '', ...table([head, ...counts]), ''].join('\n');
}

/**
 * @param {import('./promises.mjs').Promised} promised
 * @param {ReadonlyMap<string, string>} results
 */
function line({ promise, test, left }, results) {
  if (test === undefined) return `  left    ${promise}\n          ${left}`;
  const why = whyNotProven(test, results);
  return why === undefined
    ? `  proven  ${promise}\n          ${test}`
    : `  FAILED  ${promise}\n          ${why}: ${test}`;
}

/**
 * @param {readonly import('./promises.mjs').Promised[]} promises
 * @param {ReadonlyMap<string, string>} results
 */
function countsOf(promises, results) {
  const tested = promises.flatMap(({ test }) => test ?? []);
  const unproven = tested.filter((test) => whyNotProven(test, results) !== undefined).length;
  const counts = [promises.length, tested.length - unproven, promises.length - tested.length, unproven];
  return counts.map(String);
}

/** @param {readonly (readonly string[])[]} rows */
function table(rows) {
  const widths = rows[0]?.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0))) ?? [];
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('   ')
      .trimEnd(),
  );
}
