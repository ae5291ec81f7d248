import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll } from 'vitest';
import { openHoldfast } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { openDatabases, type TestDatabases } from '../postgres/databases.ts';
import { Child } from '../process/children.ts';
import { type RunningDashboard, startDashboard } from './dashboard.ts';

export type StoreKind = 'sqlite' | 'postgres';

/** A store that a real worker fills and works, with a dashboard. */
export interface Scene {
  readonly dashboard: RunningDashboard;
  /** From now on, what failed before succeeds. */
  fix(): void;
}

/** One for all tests of a group. `options` are those of `program.mjs`. */
export function useScene(kind: StoreKind, options: object = {}): () => Scene {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-browser-'));
  const fixed = join(folder, 'fixed');
  let databases: TestDatabases | undefined;
  let worker: Child | undefined;
  let dashboard: RunningDashboard;
  beforeAll(async () => {
    databases = kind === 'postgres' ? await openDatabases(migrate) : undefined;
    const store = databases ? (await databases.take()).url : join(folder, 'tasks.db');
    worker = new Child(process.execPath, ['test/browser/program.mjs', store, JSON.stringify({ fixed, ...options })]);
    await worker.says('filled');
    dashboard = await startDashboard(store);
  });
  afterAll(async () => {
    worker?.signal('SIGTERM');
    await Promise.all([worker?.ended, dashboard?.stop()]);
    await databases?.close();
    rmSync(folder, { recursive: true, force: true });
  });
  return () => ({ dashboard, fix: () => writeFileSync(fixed, '') });
}

async function migrate(url: string): Promise<void> {
  const holdfast = await openHoldfast({ store: postgres(url) });
  await holdfast.close();
}
