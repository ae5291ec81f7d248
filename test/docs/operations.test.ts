import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { root } from './packed.ts';
import { readPage, stepsOf, Terminal, writeFilesOf } from './page.ts';

describe('the pages for operators show what the commands print', () => {
  let folder: string;
  let terminal: Terminal;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-operations-'));
    await mkdir(join(folder, 'bin'));
    const command = join(root, 'dist/cli/main.js');
    await chmod(command, 0o755);
    await symlink(command, join(folder, 'bin/holdfast'));
    terminal = new Terminal(folder, { PATH: `${join(folder, 'bin')}:${process.env.PATH}`, HOLDFAST_STORE: undefined });
  });

  afterEach(async () => {
    await terminal.close();
    await rm(folder, { recursive: true });
  });

  test.each([
    {
      page: 'incidents.md',
      steps: 15,
      until: { 'holdfast status': /is down|dead/, 'holdfast redrives': /stopped|done/ },
    },
    { page: 'deploying.md', steps: 2, until: {} },
    { page: 'monitoring.md', steps: 2, until: {} },
  ])('docs/operations/$page', async ({ page, steps, until }) => {
    const text = await readPage(`docs/operations/${page}`);
    await writeFilesOf(text, folder);
    expect(stepsOf(text).length).toBeGreaterThan(steps);
    await terminal.follow(stepsOf(text), until);
  });
});
