import { chmod, mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { blocksOf } from './blocks.ts';
import { root } from './packed.ts';
import { readPage, stepsOf, Terminal, withFreePorts, writeFilesOf } from './page.ts';

/** What a command must say before the page goes on: it is asked again until then. */
const UNTIL: Readonly<Record<string, Readonly<Record<string, RegExp>>>> = {
  'docs/operations/incidents.md': {
    'holdfast status': /is down|dead/,
    'holdfast redrives': /stopped|done/,
  },
  'docs/operations/redrive.md': { 'holdfast redrives show 1': /done/ },
};

/** It installs the package: start.test.ts. */
const START = 'docs/start.md';

const pages = [...new Set(blocksOf('console').map(({ page }) => page))].filter((page) => page !== START);

describe('the commands of a page print what it shows', () => {
  let folder: string;
  let terminal: Terminal;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'holdfast-console-'));
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

  test.each(pages)('%s', async (page) => {
    const text = await withFreePorts(await readPage(page));
    await writeFilesOf(text, folder);
    expect(stepsOf(text)).not.toEqual([]);
    await terminal.follow(stepsOf(text), UNTIL[page]);
  });

  test('of which there are several', () => {
    expect(pages.length).toBeGreaterThan(4);
  });

  test('and no page shows what a command prints in a block that is not run', () => {
    const blocks = blocksOf('', 'text', 'sh').filter(({ code }) => /^\$ /m.test(code));
    expect(blocks.map(({ page, line }) => `${page}:${line}`)).toEqual([]);
  });
});
