import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { describeModel } from '../contract/describe-model.ts';
import { describeStore } from '../contract/describe-store.ts';

const driver = 'node:sqlite';
let folder: string;

describeStore('node:sqlite, in a file', {
  open(world) {
    folder = mkdtempSync(join(tmpdir(), 'holdfast-contract-'));
    return sqlite(join(folder, 'tasks.db'), { driver }).open(world);
  },
  openSecond: (world) => sqlite(join(folder, 'tasks.db'), { driver }).open(world),
  async close() {
    rmSync(folder, { recursive: true, force: true });
  },
});

describeModel(
  'node:sqlite, in memory',
  { open: (world) => sqlite(':memory:', { driver }).open(world), close: async () => {} },
  { runs: 50 },
);
