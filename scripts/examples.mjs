// @ts-check
// Builds, checks and runs all examples, and holds what they prove against the promises of each document.
//   node scripts/examples.mjs           ends with a table and the line `N passed, N failed`; writes docs/internals/systems.md if all is proven
//   node scripts/examples.mjs --check   runs nothing; fails if docs/internals/systems.md is not what would be written, or a mutation fits nowhere
//   node scripts/examples.mjs --mutate [EXAMPLE]…   makes each mutation of an example on a copy, and fails if its tests stay green
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { commandIn, runNode } from './examples/commands.mjs';
import { readMutations, runMutations } from './examples/mutations.mjs';
import { systemsPage } from './examples/page.mjs';
import { readPromises, splitTest } from './examples/promises.mjs';
import { brokenFiles, resultsByTest, unfounded } from './examples/results.mjs';
import { SYSTEMS } from './examples/systems.mjs';
import { report } from './examples/table.mjs';
import { runTests } from './examples/tests.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const page = join(root, 'docs/internals/systems.md');
const tsc = fileURLToPath(new URL('bin/tsc', import.meta.resolve('typescript/package.json')));

/** What went wrong, a line each. @type {string[]} */
const failures = [];
let passed = 0;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { check: { type: 'boolean', default: false }, mutate: { type: 'boolean', default: false } },
});
const systems = SYSTEMS.map(covered);
if (values.check) checkAll();
else if (values.mutate) mutate(positionals);
else runAll();
for (const failure of failures) console.log(`failed: ${failure}`);
console.log(`${passed} passed, ${failures.length} failed`);
process.exitCode = failures.length > 0 ? 1 : 0;

/** @param {import('./examples/systems.mjs').System} system */
function covered(system) {
  const path = `examples/${system.example}/promises.yaml`;
  try {
    const promises = system.example === undefined ? [] : readPromises(readFileSync(join(root, path), 'utf8'), path);
    return { ...system, promises };
  } catch (error) {
    failures.push(error instanceof Error ? error.message : String(error));
    return { ...system, promises: [] };
  }
}

function checkAll() {
  checkPage();
  for (const example of examples()) {
    const { problems } = readMutations(example, root);
    failures.push(...problems);
    if (problems.length === 0) passed += 1;
  }
}

/** @param {readonly string[]} asked none for all */
function mutate(asked) {
  if (!step(['scripts/build.mjs'])) return;
  for (const example of examples().filter((name) => asked.length === 0 || asked.includes(name))) {
    const { mutations, problems } = readMutations(example, root);
    const wrong = problems.length > 0 ? problems : runMutations(example, mutations, root);
    failures.push(...wrong);
    passed += mutations.length - wrong.length;
  }
}

function examples() {
  return systems.flatMap(({ example }) => example ?? []);
}

function checkPage() {
  const current = existsSync(page) ? readFileSync(page, 'utf8') : '';
  if (current === systemsPage(systems)) passed += 1;
  else
    failures.push(
      'docs/internals/systems.md is not what the promises of the examples say. Run: node scripts/examples.mjs',
    );
}

function runAll() {
  // The examples run what is built, and nothing that was built before proves anything.
  if (!step(['scripts/build.mjs'])) return;
  step([tsc, '-p', 'examples/tsconfig.json']);
  const results = testAll();
  for (const { example } of systems) if (example !== undefined) start(example);
  console.log(report(systems, results));
  failures.push(...systems.flatMap(({ promises }) => unfounded(promises, results)));
  // The page says that all of it is proven.
  if (failures.length === 0) writeFileSync(page, systemsPage(systems));
}

/** @param {readonly string[]} args */
function step(args) {
  const failed = runNode(args, root);
  if (failed === undefined) passed += 1;
  else failures.push(failed);
  return failed === undefined;
}

/** The tests of all examples, and those elsewhere that a promise names. */
function testAll() {
  const named = systems.flatMap(({ promises }) => promises.flatMap(({ test }) => (test ? [splitTest(test).file] : [])));
  const elsewhere = [...new Set(named)].filter((file) => !file.startsWith('examples/'));
  const runs = [runTests(['--config', 'examples/vitest.config.mjs'], root)];
  if (elsewhere.length > 0) runs.push(runTests(elsewhere, root));
  const files = runs.flatMap((run) => run.files);
  const results = resultsByTest(files, root);
  passed += [...results.values()].filter((status) => status === 'passed').length;
  const failed = [...results].filter(([, status]) => status === 'failed');
  failures.push(...failed.map(([test]) => test), ...brokenFiles(files, root));
  failures.push(...runs.flatMap(({ broken }) => broken ?? []));
  return results;
}

/**
 * Runs the command that the example's README begins with.
 * @param {string} example
 */
function start(example) {
  const readme = join(root, 'examples', example, 'README.md');
  const command = existsSync(readme) ? commandIn(readFileSync(readme, 'utf8')) : undefined;
  if (command) step(command);
  else failures.push(`examples/${example}/README.md names no command such as \`node examples/${example}/main.js\`.`);
}
