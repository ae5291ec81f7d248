import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { describeModel } from './describe-model.ts';
import { describeStore } from './describe-store.ts';

let folder: string;

describeStore('sqlite, in a file', {
  open(world) {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-contract-'));
    return sqlite(join(folder, 'tasks.db')).open(world);
  },
  openSecond: (world) => sqlite(join(folder, 'tasks.db')).open(world),
  async close() {
    rmSync(folder, { recursive: true, force: true });
  },
});

describeModel(
  'sqlite, in memory',
  { open: (world) => sqlite(':memory:').open(world), close: async () => {} },
  { runs: 150 },
);
