import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { useFolder, usePrograms } from './children.ts';

const { run } = usePrograms();
const folder = useFolder();

test('eight processes that open a new file at once all succeed, and each migration is made once', async () => {
  for (let round = 0; round < 3; round++) {
    const path = join(folder(), `new-${round}.db`);

    const children = Array.from({ length: 8 }, () => run('open', path));
    for (const child of children) {
      await child.endsWell();
      expect(child.said).toMatchObject([{ described: { durability: 'full' }, counts: { ready: 0 } }, 'closed']);
    }

    const database = new Database(path, { readonly: true });
    expect(database.prepare('SELECT count(*) AS n FROM hf_schema').get()).toEqual({ n: 1 });
    expect(database.prepare('SELECT count(*) AS n FROM hf_clock').get()).toEqual({ n: 1 });
    expect(database.pragma('quick_check')).toEqual([{ quick_check: 'ok' }]);
    database.close();
  }
});

test('four workers and an enqueuer share a file: 20,000 tasks, each executed once, and nobody hears of a busy database', async () => {
  const path = join(folder(), 'tasks.db');
  const witness = join(folder(), 'witness');
  writeFileSync(witness, '');
  await run('open', path).endsWell();
  const workers = [1, 2, 3, 4].map((n) =>
    run('worker', path, { name: `worker-${n}`, worker: { concurrency: 10, pollInterval: '20ms' } }),
  );
  await Promise.all(workers.map((worker) => worker.says('working')));

  const enqueuer = run('enqueue', path, { tasks: 20_000, input: { how: 'quick', witness } });
  await enqueuer.endsWell();
  // What was claimed ahead may be handed back unbegun, which is told as well.
  const settled = () => workers.flatMap(({ said }) => said).filter((one) => Object(one).state === 'succeeded');
  await new Promise<void>((done) => {
    const look = () => {
      // A worker says little else than what it settled, so most looks need not read it all.
      const said = workers.reduce((sum, worker) => sum + worker.said.length, 0);
      if (said >= 20_000 && settled().length >= 20_000) done();
    };
    for (const { process } of workers) process.stdout?.on('data', look);
    look();
  });
  for (const worker of workers) worker.signal('SIGTERM');
  for (const worker of workers) await worker.endsWell();

  const starts = readFileSync(witness, 'utf8').trim().split('\n');
  expect(starts).toHaveLength(20_000);
  expect(new Set(starts.map((line) => line.split(' ')[0])).size).toBe(20_000);
  expect(settled()).toHaveLength(20_000);
  // All of them had their share, and none had anything to complain of.
  for (const { said } of workers) {
    expect(said.filter((one) => Object.hasOwn(Object(one), 'settled')).length).toBeGreaterThan(0);
    expect(said.filter((one) => 'log' in Object(one) || 'warn' in Object(one) || 'stale' in Object(one))).toEqual([]);
  }
  const check = run('read', path);
  await check.endsWell();
  expect(check.said).toContainEqual({ broken: [] });
});
