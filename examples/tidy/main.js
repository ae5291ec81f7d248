// @ts-check
// The command: reads its arguments, prints, and sets the exit code.
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { compare, comparisonText } from './compare.js';
import { demo } from './demo.js';
import { bringFrom } from './pending-moves.js';
import { readPlan } from './plan.js';
import { foreseenText, reportTo } from './progress.js';
import { openQueue } from './queue.js';
import { summaryOf, summaryText } from './summary.js';
import { foresee, RETENTION, tidy } from './tidy.js';

const USAGE = `node main.js                              a demonstration in a temporary folder
node main.js run PLAN [--dry-run]         moves what is due, of this plan and of earlier ones
node main.js status                       what is in the queue, and what needs a person
node main.js import FILE [--root DIR]     imports a JSON queue of pending moves, as it stands; its paths are relative to its
                                          \`workspace_root\` unless --root says otherwise
node main.js compare                      wasted retries, with a rule for each reason and with one plain policy

--queue FILE   the queue (default: tidy.db here)
--plain        one plain policy for every failure
--keep TIME    how long moves are kept that succeeded, were abandoned or cancelled (default: 30d)`;

const OPTIONS = /** @type {const} */ ({
  queue: { type: 'string', default: 'tidy.db' },
  root: { type: 'string' },
  plain: { type: 'boolean', default: false },
  keep: { type: 'string', default: '30d' },
  'dry-run': { type: 'boolean', default: false },
});

/** @typedef {{ readonly queue: string, readonly root?: string, readonly plain: boolean, readonly keep: string, readonly 'dry-run': boolean }} Flags */

/** @param {string} text */
const print = (text) => void process.stdout.write(`${text}\n`);

/**
 * @param {string | undefined} command
 * @param {string} path
 * @param {Flags} flags
 */
async function main(command, path, flags) {
  switch (command) {
    case undefined:
      return demo(print);
    case 'run':
      return flags['dry-run'] ? dryRun(path, flags) : run(path, flags);
    case 'status':
      return withQueue(flags, async (queue) => print(summaryText(await summaryOf(queue), { file: flags.queue })));
    case 'import':
      return importFile(path, flags);
    case 'compare':
      return print(comparisonText(await compare()));
    default:
      throw new UsageError(`There is no command '${command}'.`);
  }
}

/**
 * @param {string} plan
 * @param {Flags} flags
 */
function run(plan, flags) {
  const moves = readPlan(plan);
  const keep = /** @type {import('holdfast').DurationInput} */ (flags.keep);
  return withQueue(flags, async (queue) => {
    const { succeeded, removed, missing } = await tidy(queue, moves, {
      onEvent: reportTo(print),
      retention: { ...RETENTION, succeeded: keep, dead: keep, cancelled: keep },
    });
    print(`\n${summaryText(await summaryOf(queue), { succeededNow: succeeded, file: flags.queue })}`);
    if (removed > 0) print(`\nRemoved ${keep} after their end: ${removed}`);
    if (missing.length > 0) {
      print(
        ['', 'These files do not exist, and were not moved before:', ...missing.map(({ from }) => `  ${from}`)].join(
          '\n',
        ),
      );
      process.exitCode = 1;
    }
  });
}

/**
 * @param {string} plan
 * @param {Flags} flags
 */
async function dryRun(plan, flags) {
  const moves = readPlan(plan);
  if (!existsSync(flags.queue)) return print(foreseenText(await foresee(undefined, moves)));
  await withQueue(flags, async (queue) => print(foreseenText(await foresee(queue, moves))));
}

/**
 * @param {string} file
 * @param {Flags} flags
 */
function importFile(file, flags) {
  const root = flags.root === undefined ? undefined : resolve(flags.root);
  return withQueue(flags, async (queue) => {
    const { imported, known } = await bringFrom(queue, file, root);
    print(`${imported} moves imported; ${known} were here already.\n`);
    print(summaryText(await summaryOf(queue), { file: flags.queue }));
  });
}

/**
 * @param {Flags} flags
 * @param {(queue: import('holdfast').Holdfast) => Promise<void>} work
 */
async function withQueue({ queue: file, plain }, work) {
  const queue = await openQueue(file, { smart: !plain });
  try {
    await work(queue);
  } finally {
    await queue.close();
  }
}

class UsageError extends Error {
  code = 'usage';
}

/** What the message alone explains; anything else is a bug, and its stack is of use. */
const EXPLAINED = ['usage', 'invalid_plan', 'invalid_old_queue', 'invalid_input', 'ENOENT', 'EACCES', 'EISDIR'];

try {
  const { positionals, values } = parseArgs({ options: OPTIONS, allowPositionals: true });
  const [command, path] = positionals;
  if ((command === 'run' || command === 'import') && path === undefined) {
    throw new UsageError(`'${command}' needs a file.`);
  }
  await main(command, path ?? '', values);
} catch (error) {
  const { code, message, stack } = /** @type {Error & { code?: string }} */ (error);
  const explained = EXPLAINED.includes(code ?? '') || code?.startsWith('ERR_PARSE_ARGS');
  process.stderr.write(`${explained ? message : stack}\n`);
  if (code === 'usage' || code?.startsWith('ERR_PARSE_ARGS')) process.stderr.write(`\n${USAGE}\n`);
  process.exitCode = explained ? 2 : 1;
}
