// @ts-check
// The same failures under both policies, on a clock that is moved: how many retries were wasted, and when a person heard of it.
import { defineTask } from 'holdfast';
import { openTestHoldfast } from 'holdfast/testing';
import { FILE_MOVE, policyOf } from './queue.js';

/**
 * A failure as the system reports it, and how long it lasts: `forever` where only a person ends it.
 *
 * @typedef {{ readonly what: string, readonly code: string, readonly minutes: number }} Trouble
 * @typedef {{ readonly tries: number, readonly wasted: number, readonly state: string, readonly minutes: number }} Course
 * @typedef {{ readonly trouble: Trouble, readonly smart: Course, readonly plain: Course }} Row
 */

const FOREVER = Number.POSITIVE_INFINITY;

/** @type {readonly Trouble[]} */
export const TROUBLES = [
  { what: 'destination exists', code: 'EEXIST', minutes: FOREVER },
  { what: 'no permission', code: 'EACCES', minutes: FOREVER },
  { what: 'file vanished', code: 'ENOENT', minutes: FOREVER },
  { what: 'disk error', code: 'EIO', minutes: FOREVER },
  { what: 'locked for 40 min', code: 'EBUSY', minutes: 40 },
  { what: 'locked for a day', code: 'EBUSY', minutes: 24 * 60 },
  { what: 'locked for good', code: 'EBUSY', minutes: FOREVER },
];

/**
 * Runs every trouble through both policies, by the same engine that moves files.
 *
 * @param {readonly Trouble[]} [troubles]
 * @returns {Promise<readonly Row[]>}
 */
export async function compare(troubles = TROUBLES) {
  const [smart, plain] = [await coursesOf(troubles, true), await coursesOf(troubles, false)];
  return troubles.map((trouble, index) => ({
    trouble,
    smart: /** @type {Course} */ (smart[index]),
    plain: /** @type {Course} */ (plain[index]),
  }));
}

/**
 * @param {readonly Trouble[]} troubles
 * @param {boolean} smart
 * @returns {Promise<Course[]>}
 */
async function coursesOf(troubles, smart) {
  const fails = defineTask(FILE_MOVE, {
    retry: policyOf({ smart }),
    /** @param {{ index: number }} input */
    run({ index }) {
      const { code, minutes } = /** @type {Trouble} */ (troubles[index]);
      if (sinceStart() >= minutes) return;
      throw Object.assign(new Error(`${code}: as the system says it`), { code, syscall: 'link' });
    },
  });
  const kit = await openTestHoldfast({ tasks: [fails] });
  const start = kit.clock.now();
  const sinceStart = () => (kit.clock.now() - start) / 60_000;
  try {
    const receipts = await kit.holdfast.enqueueAll(
      fails,
      troubles.map((_, index) => ({ index })),
    );
    await kit.advance('30d');
    return await Promise.all(receipts.map(({ id }) => courseOf(kit.holdfast, id, start)));
  } finally {
    await kit.close();
  }
}

/**
 * @param {import('holdfast').Holdfast} queue
 * @param {number} id
 * @param {number} start
 * @returns {Promise<Course>}
 */
async function courseOf(queue, id, start) {
  const { state, executions } = await queue.get(id);
  const tries = (await queue.history(id)).filter((entry) => entry.kind === 'execution');
  const failed = tries.filter(({ failure }) => failure !== undefined).length;
  const ended = tries.at(-1)?.endedAt ?? start;
  // The first try had to be made to know.
  return { tries: executions, wasted: Math.max(0, failed - 1), state, minutes: (ended - start) / 60_000 };
}

/**
 * @param {readonly Row[]} rows
 */
export function comparisonText(rows) {
  const table = rows.map(({ trouble, smart, plain }) => [
    `${trouble.what} (${trouble.code})`,
    ...cellsOf(smart),
    ...cellsOf(plain),
    `${plain.wasted - smart.wasted} (${shareFewer(plain.wasted, smart.wasted)} %)`,
  ]);
  const head = [
    'failure',
    'smart: tries',
    'wasted',
    'end',
    'after',
    'plain: tries',
    'wasted',
    'end',
    'after',
    'avoided',
  ];
  const [smart, plain] = [wastedIn(rows, 'smart'), wastedIn(rows, 'plain')];
  const share = shareFewer(plain, smart);
  return [
    ...aligned([head, ...table]),
    '',
    `Wasted retries over all rows: ${plain} with one plain policy, ${smart} with one rule for each reason: ${share} % fewer.`,
    'Wasted is a try after the first that failed too. A person hears of a move when it has ended so.',
  ].join('\n');
}

/**
 * @param {number} plain
 * @param {number} smart
 */
function shareFewer(plain, smart) {
  return plain === 0 ? 0 : Math.round((100 * (plain - smart)) / plain);
}

/**
 * @param {readonly Row[]} rows
 * @param {'smart' | 'plain'} policy
 */
function wastedIn(rows, policy) {
  return rows.reduce((sum, row) => sum + row[policy].wasted, 0);
}

/** @param {Course} course */
function cellsOf({ tries, wasted, state, minutes }) {
  const after = minutes < 60 ? `${minutes} min` : `${Math.round(minutes / 6) / 10} h`;
  return [String(tries), String(wasted), state, after];
}

/** @param {readonly (readonly string[])[]} rows */
function aligned(rows) {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}
