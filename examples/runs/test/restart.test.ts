import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { expect, test } from 'vitest';
import type { Answer } from '../service.js';
import { askedFor, Daemon, newFolder, openService, runOf } from './scene.js';

/** A spool with one run, a service that answers it so, and how a daemon is started for both. */
async function prepare(answers: readonly Answer[], category = 'web') {
  const folder = newFolder();
  const [spool, store] = [join(folder, 'spool'), join(folder, 'runs.db')];
  mkdirSync(spool);
  writeFileSync(join(spool, 'r-1.json'), JSON.stringify(runOf('r-1', '2026-01-01', category)));
  const { service, url } = await openService({ 'r-1': answers });
  const start = (...flags: string[]) => new Daemon(['--spool', spool, '--service', url, '--store', store, ...flags]);
  return { service, spool, store, start };
}

test('a run whose daemon was killed over it goes to the next daemon, and nothing is counted', async () => {
  const { service, store, start } = await prepare(['silence', { verdict: 'passed' }]);
  const killed = start();
  await askedFor(service, 'r-1', 1);
  await killed.end('SIGKILL');

  const next = start();
  await next.says('r-1: processed');
  await next.end('SIGTERM');

  const holdfast = await openHoldfast({ store: sqlite(store) });
  const found = await holdfast.get('r-1');
  expect(found).toMatchObject({ state: 'succeeded', attempts: 0, executions: 2, recoveries: 0 });
  await holdfast.close();
});

test('a retry that waits outlives its daemon, with its count and its time', async () => {
  const { store, start } = await prepare([{ status: 503 }, { verdict: 'passed' }]);
  const killed = start();
  await killed.says('next attempt in 1m');
  const holdfast = await openHoldfast({ store: sqlite(store) });
  const waiting = await holdfast.get('r-1');
  await killed.end('SIGKILL');
  expect(await holdfast.get('r-1')).toEqual(waiting);
  expect(waiting).toMatchObject({ state: 'scheduled', attempts: 1 });

  const next = start();
  // Nobody waits for a minute: an operator makes it due.
  await holdfast.retry(waiting.id);
  await next.says('r-1: processed, at retry 1');
  expect(await holdfast.get('r-1')).toMatchObject({ state: 'succeeded', attempts: 1, executions: 2 });
  await holdfast.close();
});

test('a daemon that is told to stop lets the run end, and leaves nothing behind', async () => {
  const { service, store, start } = await prepare(['silence']);
  const daemon = start();
  await askedFor(service, 'r-1', 1);
  const ended = daemon.end('SIGTERM');
  await daemon.says('stopping: what runs may end within 10s');
  service.answer('passed');
  expect(await ended).toEqual([0, null]);
  expect(daemon.linesOf('r-1')).toContain('processed');

  const holdfast = await openHoldfast({ store: sqlite(store) });
  expect(await holdfast.workers()).toEqual([]);
  expect(await holdfast.get('r-1')).toMatchObject({ state: 'succeeded', executions: 1 });
  await holdfast.close();
});

test('a daemon that is told to stop hands a run back, uncounted, that takes longer than its grace', async () => {
  const { service, store, start } = await prepare(['silence']);
  const daemon = start('--grace', '1ms');
  await askedFor(service, 'r-1', 1);
  expect(await daemon.end('SIGTERM')).toEqual([0, null]);

  const holdfast = await openHoldfast({ store: sqlite(store) });
  expect(await holdfast.get('r-1')).toMatchObject({ state: 'ready', attempts: 0, executions: 1 });
  await holdfast.close();
}, 20_000);

test('a daemon retries by its flags, and takes the categories that it is told', async () => {
  const { service, spool, start } = await prepare([{ status: 503 }], 'mobile');
  writeFileSync(join(spool, 'r-2.json'), JSON.stringify(runOf('r-2', '2026-01-02', 'api')));
  const backoff = ['--initial-backoff', '10ms', '--backoff-multiplier', '3', '--max-backoff', '20ms'];
  service.answers = { 'r-2': [{ status: 503 }] };
  const daemon = start('--max-attempts', '3', ...backoff, '--category', 'web', '--category', 'api');
  await daemon.says('maximum reached');
  expect(daemon.linesOf('r-2').filter((line) => line.includes('failed'))).toEqual([
    expect.stringContaining('attempt 1 of 3 failed; next attempt in 10ms'),
    expect.stringContaining('attempt 2 of 3 failed; next attempt in 20ms'),
    expect.stringContaining('attempt 3 of 3 failed.'),
  ]);
  expect(service.asked).toEqual(['r-2', 'r-2', 'r-2']);
});
