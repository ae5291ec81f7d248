import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { describe, expect } from 'vitest';
import { type Project, test } from './cli-process.ts';

const STORE = '.holdfast/holdfast.db';

const idsOf = async (project: Project) =>
  (await project.json<{ items: { id: number }[] }>('list')).document.items.map(({ id }) => id);

/** The token that proves the lease of the running task. */
function tokenIn(file: string): string {
  const db = new Database(file, { readonly: true });
  const token = db.prepare('SELECT token FROM hf_running').pluck().get() as string;
  db.close();
  return token;
}

describe('holdfast db backup and restore', () => {
  test('restore the store of then, keep the one of before, and refuse what a worker of before reports', async ({
    project,
  }) => {
    const file = project.path('copy.db');
    const working = project.start(['run', '--', 'sh', '-c', 'echo began; exec sleep 60']);
    await working.says('began');
    expect(await project.json('db', 'backup', 'copy.db')).toMatchObject({ exit: 0, document: { file } });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect((await project.run('db', 'backup', 'copy.db')).stderr).toContain('exists already');
    expect((await project.run('db', 'restore', 'copy.db')).stderr).toContain('workers use the store');
    working.kill('SIGKILL');
    await working.ended;

    await project.run('run', '--detach', '--', 'true');
    expect(await idsOf(project)).toEqual([2, 1]);
    const { exit, document } = await project.json<{ kept: string; tasks: number }>('db', 'restore', 'copy.db');
    expect([exit, document.tasks, existsSync(document.kept)]).toEqual([0, 1, true]);
    expect(await idsOf(project)).toEqual([1]);
    expect(tokenIn(project.path(STORE))).not.toBe(tokenIn(file));
  });

  test('change nothing if the file is no store, is damaged, or the store is in use', async ({ project }) => {
    await project.run('run', '--detach', '--', 'true');
    writeFileSync(project.path('text'), 'no database');
    writeFileSync(project.path('empty'), '');
    await project.run('db', 'backup', 'copy.db');
    const damaged = new Database(project.path('copy.db'));
    damaged.exec('DELETE FROM hf_ready');
    damaged.close();
    for (const file of ['text', 'empty', 'copy.db', 'missing']) {
      expect((await project.run('db', 'restore', file)).exit, file).toBeGreaterThan(0);
    }
    const open = new Database(project.path(STORE));
    open.prepare('SELECT * FROM hf_tasks').all();
    expect((await project.run('db', 'restore', 'copy.db')).stderr).toContain('another process has');
    open.close();
    expect(await idsOf(project)).toEqual([1]);
    expect(readdirSync(project.path('.holdfast')).filter((name) => name.includes('restor'))).toEqual([]);
  });

  test('vacuum makes a file smaller that has free space', async ({ project }) => {
    await project.run('run', '--detach', '--', 'true');
    const db = new Database(project.path(STORE));
    db.exec('CREATE TABLE other (x); INSERT INTO other VALUES (zeroblob(5000000)); DROP TABLE other');
    db.close();
    const { document } = await project.json<{ bytes_before: number; bytes: number }>('db', 'vacuum');
    expect(document.bytes_before).toBeGreaterThan(5_000_000);
    expect(document.bytes).toBeLessThan(2_000_000);
    expect((await project.run('db')).stdout).toMatch(/Size +\d\.\d MB\n/);
  });
});
