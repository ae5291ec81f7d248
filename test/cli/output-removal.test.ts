import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { OutputPlace } from '../../src/cli/output/output-folder.ts';
import { OutputLog, OutputReader } from '../../src/cli/output/output-log.ts';
import { removeOutput } from '../../src/cli/output/output-removal.ts';
import { silent } from '../../src/log.ts';

let folder: string;
let store: string;
let place: OutputPlace;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-output-'));
  store = join(folder, 'holdfast.db');
  writeFileSync(store, '');
  place = { kind: 'file', path: store };
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('removes what was kept of some tasks, both of their files, and of no others', () => {
  const log = new OutputLog(place, silent);
  const full = Buffer.alloc(200_000, 'x');
  for (const id of [1, 2, 12]) {
    const keep = log.keeper({ id, execution: 1 });
    for (let n = 0; n < 3; n++) keep('stdout', full);
  }
  expect(readdirSync(`${store}.logs`)).toHaveLength(6);

  removeOutput(place, [{ id: 1 }, { id: 12 }, { id: 99 }]);

  expect(readdirSync(`${store}.logs`)).toHaveLength(2);
  expect(new OutputReader(place, 1).news()).toEqual([]);
  expect(new OutputReader(place, 2).news().length).toBeGreaterThan(0);
});

test('has nothing to do where nothing was kept', () => {
  removeOutput(place, [{ id: 1 }]);
  expect(readdirSync(folder)).toEqual(['holdfast.db']);
});
