import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { useFolder, usePrograms } from './children.ts';

const { run, runIn, command } = usePrograms();
const folder = useFolder();

const BATCHES = 20;
const tasks = BATCHES * 50;
const input = { how: 'quick' };

/** How often a program that commits so many batches waits for the disk. */
async function syncsOf(durability: string): Promise<number> {
  const [path, log] = [join(folder(), `${durability}.db`), join(folder(), `${durability}.log`)];
  const traced = ['-f', '-qq', '-e', 'trace=?fsync,?fdatasync', '-o', log];
  await runIn('strace', [...traced, ...command('enqueue', path, { tasks, input, sqlite: { durability } })]).endsWell();
  return readFileSync(log, 'utf8').match(/\b(fsync|fdatasync)\(/g)?.length ?? 0;
}

test('every commit waits for the disk with full durability, and hardly any with that of a process', async () => {
  const [full, ofProcess] = [await syncsOf('full'), await syncsOf('process')];
  // Making and closing the file syncs some times in both.
  expect(ofProcess).toBeLessThan(BATCHES);
  expect(full - ofProcess).toBeGreaterThanOrEqual(BATCHES / 2);
});

test('what was acknowledged with the durability of a process survives that the process is killed', async () => {
  const path = join(folder(), 'tasks.db');
  const sqlite = { durability: 'process' };
  const killed = run('enqueue', path, { tasks, input, sqlite, die: true });
  expect(await killed.ended).toEqual({ code: null, signal: 'SIGKILL' });
  expect(killed.said).toHaveLength(BATCHES);

  const reader = run('read', path, { sqlite });
  await reader.endsWell();

  expect(reader.said).toContainEqual({ tasks });
  expect(reader.said).toContainEqual({ broken: [] });
});
