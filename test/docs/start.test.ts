import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { installPacked, root } from './packed.ts';
import { linkPackages, readPage, stepsOf, Terminal, withFreePorts, writeFilesOf } from './page.ts';

let folder: string;
let terminal: Terminal;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'holdfast-start-'));
  await writeFile(join(folder, 'package.json'), JSON.stringify({ private: true, type: 'module' }));
  await installPacked(folder);
  await linkPackages(folder, ['typescript', '@types/node', 'undici-types']);
  await symlink(join(root, 'node_modules/typescript/bin/tsc'), join(folder, 'node_modules/.bin/tsc'));
  terminal = new Terminal(folder);
});

afterAll(async () => {
  await terminal?.close();
  await rm(folder, { recursive: true });
});

test('docs/start.md does what it says, with the packed package, in strict TypeScript', async () => {
  const page = await withFreePorts(await readPage('docs/start.md'));
  await writeFilesOf(page, folder);
  const steps = stepsOf(page);
  expect(steps.length).toBeGreaterThan(8);
  await terminal.follow(steps, { 'npx holdfast sources': /down/, 'npx holdfast explain 1': /release its source/ });
});
