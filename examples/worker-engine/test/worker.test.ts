import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { openHoldfast } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { openTestHoldfast } from 'holdfast/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WORKER } from '../worker-options.js';

const PROGRAM = fileURLToPath(new URL('../worker.js', import.meta.url));

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-engine-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

test('a worker takes what other processes enqueue, the highest priority first, until Ctrl+C ends it in good order', async () => {
  const path = join(folder, 'tasks.db');
  const child = spawn(process.execPath, [PROGRAM, path], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  try {
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    const next = async () => (await lines.next()).value;
    expect(await next()).toBe('The worker is started.');

    const holdfast = await openHoldfast({ store: sqlite(path) });
    expect(await holdfast.workers()).toMatchObject([
      { name: 'worker-001', pid: child.pid, takes: { types: ['greet'], capabilities: { cpu: 8, gpu: 'RTX5090' } } },
    ]);
    await holdfast.enqueueAll('greet', [{ name: 'later' }, { name: 'sooner' }], (_, n) => ({ priority: n }));
    expect([await next(), await next()]).toEqual(['Hello, sooner!', 'Hello, later!']);

    child.kill('SIGINT');
    expect(await next()).toBe('The worker has stopped.');
    expect(await ended).toEqual([0, null]);
    expect((await holdfast.counts()).byState).toMatchObject({ succeeded: 2 });
    expect(await holdfast.workers()).toEqual([]);
    await holdfast.close();
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
});

test('a worker has a lease of 60 s, and looks for work every second', async () => {
  const kit = await openTestHoldfast({ worker: WORKER });
  await kit.advance('5s');
  expect(await kit.holdfast.workers()).toMatchObject([{ name: 'worker-001', leaseUntil: kit.clock.now() + 55_000 }]);
  expect(kit.clock.nextTimer).toBe(kit.clock.now() + 1_000);
  await kit.close();
});
