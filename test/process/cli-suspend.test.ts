import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { expect } from 'vitest';
import { type HoldfastProcess, test } from './cli-process.ts';

/** Resolves when the system has stopped the process. */
async function stopped({ pid }: HoldfastProcess): Promise<void> {
  while (!/^State:\s+T/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))) await delay(1);
}

/** Whether somebody else can write at this moment. */
function isFree(path: string): boolean {
  const file = new Database(path, { timeout: 0 });
  try {
    file.exec('BEGIN IMMEDIATE; ROLLBACK');
    return true;
  } catch {
    return false;
  } finally {
    file.close();
  }
}

test.runIf(process.platform === 'linux')(
  'Ctrl-Z in a command that writes locks nobody out, and it goes on afterwards',
  async ({ project }) => {
    const task = (n: number) => `${JSON.stringify({ type: 'mail', key: `job-${n}`, payload: 'x'.repeat(500) })}\n`;
    project.write('many.jsonl', Array.from({ length: 20_000 }, (_, n) => task(n)).join(''));
    expect((await project.run('status')).exit).toBeDefined();
    const importing = project.start(['import', 'many.jsonl', '--json']);
    while (!isThere(`${project.store}-wal`)) await delay(1);

    const free: boolean[] = [];
    let over = false;
    void importing.ended.then(() => {
      over = true;
    });
    for (let n = 0; n < 8 && !over; n++) {
      importing.kill('SIGTSTP');
      await stopped(importing);
      free.push(isFree(project.store));
      importing.kill('SIGCONT');
      await delay(10);
    }

    expect(free.length).toBeGreaterThan(3);
    expect(free).toEqual(free.map(() => true));
    expect(await importing.ended).toMatchObject({ exit: 0 });
  },
);

function isThere(path: string): boolean {
  try {
    return readFileSync(path).length > 0;
  } catch {
    return false;
  }
}
