// @ts-check
// What is in the queue, and what needs a person.
import { REASONS } from 'holdfast';

/**
 * @typedef {import('holdfast').Holdfast} Holdfast
 * @typedef {import('holdfast').Task} Task
 */

/**
 * @typedef {object} Summary
 * @property {number} total
 * @property {number} pending Waits for its next try, or runs in another run just now.
 * @property {number} succeeded
 * @property {number} abandoned Its policy ended: `dead`.
 * @property {number} needsManual
 * @property {number} cancelled
 * @property {number} eligible Due by now: a run would take it.
 * @property {Date | undefined} nextDueAt
 * @property {readonly { readonly reason: string, readonly count: number }[]} manualByReason
 * @property {readonly Task[]} manual The newest of those that need a person.
 */

/** How many of them are named one by one. */
const NAMED = 20;

/**
 * @param {Holdfast} queue
 * @returns {Promise<Summary>}
 */
export async function summaryOf(queue) {
  const { byState, due, nextDueAt, byReason } = await queue.counts();
  return {
    total: Object.values(byState).reduce((sum, count) => sum + count, 0),
    pending: byState.scheduled + byState.ready + byState.running + byState.held,
    succeeded: byState.succeeded,
    abandoned: byState.dead,
    needsManual: byState.needs_manual,
    cancelled: byState.cancelled,
    eligible: due,
    nextDueAt: nextDueAt === undefined ? undefined : new Date(nextDueAt),
    manualByReason: byReason.filter(({ state }) => state === 'needs_manual'),
    manual: await queue.list({ states: ['needs_manual'], limit: NAMED }),
  };
}

/**
 * @param {Summary} summary
 * @param {{ readonly succeededNow?: number, readonly file: string }} run
 */
export function summaryText(summary, { succeededNow, file }) {
  const now = succeededNow === undefined ? '' : `${succeededNow} in this run, `;
  const next = summary.nextDueAt ? ` (the next falls due ${summary.nextDueAt.toISOString()})` : '';
  const lines = [
    'PENDING MOVES QUEUE SUMMARY',
    `Total moves in queue: ${summary.total}`,
    `  Pending (awaiting retry): ${summary.pending}`,
    `  Succeeded: ${now}${summary.succeeded} in all`,
    `  Abandoned (max attempts): ${summary.abandoned}`,
    `  Needs manual (escalated): ${summary.needsManual}`,
    `  Eligible for next run: ${summary.eligible}${next}`,
  ];
  if (summary.cancelled > 0) lines.push(`  Cancelled: ${summary.cancelled}`);
  if (summary.needsManual > 0) lines.push('', ...actionRequired(summary, file));
  return lines.join('\n');
}

/** @type {Readonly<Record<string, string>>} */
const ADVICE = {
  'fs.dest_exists': 'the destination exists: rename or remove one of the two files, then retry',
  'fs.permission': 'access is denied: check the permissions of the file and of both folders, then retry',
  'fs.not_found': 'the file is gone: if somebody moved it, it succeeded',
};

/**
 * @param {Summary} summary
 * @param {string} file
 */
function actionRequired({ needsManual, manualByReason, manual }, file) {
  const left = needsManual - manual.length;
  return [
    `[ACTION REQUIRED] ${needsManual} ${needsManual === 1 ? 'move needs' : 'moves need'} a person:`,
    ...manualByReason.map(({ reason, count }) => `  - ${reason} (${count}): ${adviceFor(reason)}`),
    '',
    ...manual.map(({ id, input }) => `  #${id} ${Object(input).from} → ${Object(input).to}`),
    ...(left > 0 ? [`  and ${left} more: npx holdfast list --state needs_manual --store ${file}`] : []),
    '',
    `  Why:    npx holdfast show ID --store ${file}`,
    `  Answer: npx holdfast resolve ID --as retry|succeeded|dead --store ${file}`,
  ];
}

/** @param {string} reason */
function adviceFor(reason) {
  const known = /** @type {Readonly<Record<string, import('holdfast').ReasonInfo>>} */ (REASONS)[reason];
  return ADVICE[reason] ?? known?.meaning ?? 'see why, then answer';
}
