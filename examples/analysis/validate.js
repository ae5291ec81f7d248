// @ts-check

/** What must be so after each attempt that fails. */
const EXPECTED = [
  { state: 'scheduled', attempts: 1, delay: 300 },
  { state: 'scheduled', attempts: 2, delay: 900 },
  { state: 'scheduled', attempts: 3, delay: 3_600 },
  { state: 'dead', attempts: 4, delay: undefined },
];

/** The code that the last failure must carry. */
const CODE = 'ERR_VALIDATION';
const MISSING = 'FAKE_POSITION_DOES_NOT_EXIST';

/**
 * After an attempt: where the task is, the attempts that were counted, and for how many seconds it waits.
 * @typedef {{ attempt: number, state: string, attempts: number, delay: number | undefined, verdict: string }} Row
 */

/**
 * Lets a task fail as often as it may, and holds each step against what was promised. The real engine, on a virtual clock: the
 * hour and twenty minutes pass at once, and each retry is seen to start at its moment and not a millisecond before. Afterwards
 * the store is empty again.
 * @param {import('holdfast/testing').TestHoldfast} kit on an empty store
 * @param {import('holdfast').TaskDefinition<import('./analysis.js').Input, unknown>} task
 * @returns {Promise<{ rows: readonly Row[], error: string, ok: boolean }>}
 */
export async function validate({ holdfast, drain, advance }, task) {
  await refuseUsed(holdfast);
  const { id } = await holdfast.enqueue(task, { position: MISSING });
  /** @type {Row[]} */
  const rows = [];
  for (const [index, expected] of EXPECTED.entries()) {
    await drain();
    const { state, attempts, executions, dueAt } = await holdfast.get(id);
    // By the clock of the store, which never runs backwards: one that was used before may be ahead of the kit's.
    const delay = dueAt && (dueAt.getTime() - holdfast.now()) / 1_000;
    const wrong = differences(expected, { state, attempts, delay });
    if (executions !== index + 1) wrong.push(`executed ${executions} times by now`);
    if (delay !== undefined) {
      await advance(`${delay * 1_000 - 1}ms`);
      if ((await holdfast.get(id)).executions !== executions) wrong.push('retried before its time');
      await advance('1ms');
    }
    rows.push({ attempt: index + 1, state, attempts, delay, verdict: wrong.length === 0 ? 'ok' : wrong.join('; ') });
  }
  await advance('7d');
  const { code, message } = await lastFailure(holdfast, id);
  const { executions } = await holdfast.get(id);
  const ok = rows.every(({ verdict }) => verdict === 'ok') && code === CODE && executions === EXPECTED.length;
  await remove(holdfast, id);
  return { rows, error: `${code}: ${message}`, ok };
}

/**
 * @param {import('holdfast').Holdfast} holdfast
 * @throws Error for a store that has tasks: they would see the clock move.
 */
async function refuseUsed(holdfast) {
  if ((await holdfast.list({ limit: 1 })).length === 0) return;
  const { where } = holdfast.describe();
  throw new Error(`The store at ${where} has tasks. The validation moves its clock: give it a new one.`);
}

/**
 * @param {Readonly<Record<string, unknown>>} expected
 * @param {Readonly<Record<string, unknown>>} found
 */
function differences(expected, found) {
  return Object.entries(expected)
    .filter(([name, value]) => found[name] !== value)
    .map(([name, value]) => `${name} should be ${value ?? 'none'}`);
}

/**
 * @param {import('holdfast').Holdfast} holdfast
 * @param {number} id of the only task
 */
async function remove(holdfast, id) {
  if ((await holdfast.get(id)).state !== 'dead') await holdfast.cancel(id);
  await holdfast.prune({ dead: '0s', cancelled: '0s' });
}

/**
 * @param {import('holdfast').Holdfast} holdfast
 * @param {number} id
 */
async function lastFailure(holdfast, id) {
  const last = (await holdfast.history(id)).at(-1);
  const failure = last?.kind === 'execution' ? last.failure : undefined;
  return { code: failure?.code ?? 'no code', message: failure?.message ?? 'no message' };
}
