import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { defineTask, openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { openTestHoldfast } from 'holdfast/testing';
import { afterEach, expect, test } from 'vitest';

const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

/** A kit without tasks: the claims are the test's. */
async function byHand() {
  const kit = await openTestHoldfast({ worker: { leaseFor: '30s' } });
  closing.push(() => kit.close());
  return kit;
}

test('a claim answers the very numbers that the store has, of each attempt', async () => {
  const { holdfast, advance } = await byHand();
  const { id } = await holdfast.enqueue('analysis', { position: 'ACME' });
  for (const [n, wait] of [300, 900, 3_600, 0].entries()) {
    const claim = await holdfast.claim();
    const stored = await holdfast.get(id);
    expect(stored).toMatchObject({ state: 'running', attempts: n, executions: n + 1 });
    expect(claim).toMatchObject({
      id,
      type: 'analysis',
      input: { position: 'ACME' },
      attempt: stored.attempts + 1,
      execution: stored.executions,
      submittedAt: stored.submittedAt,
    });
    const settled = await claim?.fail(new Error('No.'));
    expect(settled?.decision.because).toMatchObject({ count: n + 1, limit: 4 });
    await advance(`${wait}s`);
  }
  expect(await holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 4 });
  expect(await holdfast.claim()).toBeUndefined();
});

test('a handler is told the same numbers', async () => {
  const told: string[] = [];
  const task = defineTask('analysis', {
    run(_, { attempt, execution, maxAttempts }) {
      told.push(`attempt ${attempt} of ${maxAttempts}, execution ${execution}`);
      throw new Error('No.');
    },
  });
  const kit = await openTestHoldfast({ tasks: [task] });
  closing.push(() => kit.close());
  await kit.holdfast.enqueue(task, null);
  await kit.advance('1d');
  expect(told).toEqual([1, 2, 3, 4].map((n) => `attempt ${n} of 4, execution ${n}`));
});

test('a task that is not due, or that somebody has, is not claimed', async () => {
  const { holdfast, advance } = await byHand();
  await holdfast.enqueue('analysis', null, { delay: '5m' });
  expect(await holdfast.claim()).toBeUndefined();
  await advance('5m');
  const claim = await holdfast.claim();
  expect(claim).toBeDefined();
  expect(await holdfast.claim()).toBeUndefined();
  await claim?.complete();
});

test('of many that ask at once, from several connections, one has the task', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-analysis-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  const open = () => openHoldfast({ store: sqlite(join(folder, 'analysis.db')) });
  const connections = await Promise.all(Array.from({ length: 5 }, open));
  closing.push(() => Promise.all(connections.map((holdfast) => holdfast.close())));
  await connections[0]?.enqueue('analysis', null);
  const claims = await Promise.all(connections.map((holdfast) => holdfast.claim()));
  const given = claims.filter((claim) => claim !== undefined);
  expect(given).toHaveLength(1);
  expect(given[0]).toMatchObject({ attempt: 1, execution: 1 });
});

test('a worker that is lost costs no attempt: the schedule goes on where it was', async () => {
  const { holdfast, advance } = await byHand();
  const { id } = await holdfast.enqueue('analysis', null);
  await (await holdfast.claim())?.fail(new Error('No.'));
  await advance('5m');
  const lost = await holdfast.claim({ leaseFor: '1m' });
  expect(lost).toMatchObject({ attempt: 2, execution: 2 });
  await advance('5m');
  const next = await holdfast.claim();
  expect(next).toMatchObject({ id, attempt: 2, execution: 3, recovered: true });
  await next?.fail(new Error('No.'));
  const { dueAt } = await holdfast.get(id);
  expect(dueAt?.getTime()).toBe(holdfast.store.upkeep.now() + 900_000);
  await expect(lost?.complete()).rejects.toMatchObject({ code: 'lease_lost' });
});
