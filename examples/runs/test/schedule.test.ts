import { join } from 'node:path';
import { definePolicy, openHoldfast, presets } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { describe, expect, test } from 'vitest';
import { retryPolicy } from '../replay.js';
import { askedFor, newFolder, openScene } from './scene.js';

const DOWN = [{ status: 503 }];

describe('a run with a retryable error', () => {
  test('waits a minute, doubling up to an hour, and is given up at the eighth failure', async () => {
    const { kit, submit, delays, service } = await openScene({ answers: { 'r-1': DOWN } });
    const { id } = await submit('r-1');
    await kit.advance('1d');
    expect(delays()).toEqual([60, 120, 240, 480, 960, 1_920, 3_600]);
    expect(service.asked).toHaveLength(8);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 8, executions: 8, reason: 'http.5xx' });
  });

  test('is retried by the numbers that the daemon was configured with', async () => {
    const retry = { maxAttempts: 4, initialBackoff: '5s', maxBackoff: '20s', backoffMultiplier: 3 };
    const { kit, submit, delays } = await openScene({ answers: { 'r-1': DOWN }, retry });
    await submit('r-1');
    await kit.advance('1h');
    expect(delays()).toEqual([5, 15, 20]);
  });

  test('has eight attempts, a minute, an hour and a factor of two unless the daemon was told otherwise', () => {
    expect(definePolicy(retryPolicy()).version).toBe(presets.replay.version);
    expect(retryPolicy()).toMatchObject({
      maxAttempts: 8,
      backoff: { base: 60_000, factor: 2, cap: 3_600_000 },
      jitter: { kind: 'none' },
    });
  });

  test('is not tried before its time, and does not keep new runs from being processed', async () => {
    const { kit, submit, service } = await openScene({ answers: { 'r-1': DOWN } });
    await submit('r-1');
    await kit.advance('59999ms');
    await submit('r-2', '2026-01-02');
    await kit.drain();
    expect(service.asked).toEqual(['r-1', 'r-2']);
    await kit.advance('1ms');
    expect(service.asked).toEqual(['r-1', 'r-2', 'r-1']);
  });

  test('is due at no time while it is processed again, and keeps its count', async () => {
    const answers = { 'r-1': [{ status: 503 }, 'silence' as const] };
    const { kit, submit, service } = await openScene({ answers, patienceMs: 1_000 });
    const { id } = await submit('r-1');
    await kit.drain();
    expect((await kit.holdfast.get(id)).dueAt).toEqual(new Date(kit.clock.now() + 60_000));
    await kit.advance('60s');
    await askedFor(service, 'r-1', 2);
    const run = await kit.holdfast.get(id);
    expect(run).toMatchObject({ state: 'running', attempts: 1, executions: 2 });
    expect(run.dueAt).toBeUndefined();
  });

  test('that succeeds at last has nothing scheduled, and counts from zero if it is replayed', async () => {
    const answers = { 'r-1': [...DOWN, ...DOWN, { verdict: 'passed' }, ...DOWN] };
    const { kit, submit } = await openScene({ answers });
    const { id } = await submit('r-1');
    await kit.advance('1h');
    const passed = await kit.holdfast.get(id);
    expect(passed).toMatchObject({ state: 'succeeded', result: { verdict: 'passed' }, attempts: 2 });
    expect(passed.dueAt).toBeUndefined();

    await kit.holdfast.retry(id);
    await kit.drain();
    const replayed = await kit.holdfast.get(id);
    expect(replayed).toMatchObject({ state: 'scheduled', attempts: 1, dueAt: new Date(kit.clock.now() + 60_000) });
  });
});

describe('a run', () => {
  test.each(['passed', 'needs_review', 'failed'])('with the verdict %s was processed well', async (verdict) => {
    const { kit, submit } = await openScene({ answers: { 'r-1': [{ verdict }] } });
    const { id } = await submit('r-1');
    expect((await kit.holdfast.get(id)).attempts).toBe(0);
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', result: { verdict }, attempts: 0 });
  });

  test('with a final error is not retried, and stays as it is', async () => {
    const { kit, submit, service } = await openScene({ answers: { 'r-1': [{ status: 422 }] } });
    const { id } = await submit('r-1');
    await kit.advance('7d');
    expect(service.asked).toEqual(['r-1']);
    const run = await kit.holdfast.get(id);
    expect(run).toMatchObject({ state: 'dead', attempts: 1 });
    expect(run.dueAt).toBeUndefined();
  });

  test('shows its retries, its next time and the class of its error to whoever opens the database', async () => {
    const path = join(newFolder(), 'runs.db');
    const { kit, submit } = await openScene({ answers: { 'r-1': DOWN }, store: sqlite(path) });
    await submit('r-1');
    await kit.drain();

    const other = await openHoldfast({ store: sqlite(path) });
    const run = await other.get('r-1');
    expect(run).toMatchObject({ state: 'scheduled', attempts: 1, dueAt: new Date(kit.clock.now() + 60_000) });
    const [entry] = await other.history(run.id);
    expect(entry).toMatchObject({ failure: { kind: 'transient', reason: 'http.5xx' }, after: 60_000, charge: 'task' });
    await other.close();
  });
});

describe('a run that is rate limited', () => {
  test('comes again when the service said, and nothing is counted', async () => {
    const limited = { status: 429, retryAfter: 90 };
    const { kit, submit, delays } = await openScene({ answers: { 'r-1': [limited, limited, { verdict: 'passed' }] } });
    const { id } = await submit('r-1');
    await kit.advance('1h');
    expect(delays()).toEqual([90, 90]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'succeeded', attempts: 0, executions: 3 });
  });

  test('without a hint waits by the backoff, and is counted', async () => {
    const { kit, submit, delays } = await openScene({ answers: { 'r-1': [{ status: 429 }] } });
    const { id } = await submit('r-1');
    await kit.advance('1d');
    expect(delays()).toEqual([60, 120, 240, 480, 960, 1_920, 3_600]);
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'dead', attempts: 8 });
  });

  test('is asked about, not waited for, when the hint is longer than a day', async () => {
    const { kit, submit } = await openScene({ answers: { 'r-1': [{ status: 429, retryAfter: 86_401 }] } });
    const { id } = await submit('r-1');
    await kit.drain();
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', attempts: 0 });
  });

  test('again and again is asked about after a day of waiting, so that it ends', async () => {
    const { kit, submit, service } = await openScene({ answers: { 'r-1': [{ status: 429, retryAfter: 3_600 }] } });
    const { id } = await submit('r-1');
    await kit.advance('3d');
    expect(await kit.holdfast.get(id)).toMatchObject({ state: 'needs_manual', attempts: 0 });
    expect(service.asked).toHaveLength(25);
  });
});
