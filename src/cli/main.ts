#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { versionOf } from '../documents/version.ts';
import { nodeProblem } from '../node-version.ts';

const args = process.argv.slice(2);
const asksVersion = args.length === 1 && (args[0] === '--version' || args[0] === '-V');
const problem = nodeProblem();
if (problem !== undefined) {
  writeSync(2, `error: ${problem}\n`);
  process.exitCode = 1;
} else if (!asksVersion || !saidVersion()) {
  keepCompiled();
  // No module of the command awaits while it is loaded, so that they can be bundled for `require`.
  void (args[0] === '__complete' ? printCompletions() : runCommand());
}

async function printCompletions(): Promise<void> {
  const { complete } = await import('./complete.ts');
  writeSync(1, (await complete(args[1] ?? '', args[2] ?? '')).map((word) => `${word}\n`).join(''));
  process.exit();
}

/** Loads the program only now, because it takes longer than to say the version. */
async function runCommand(): Promise<void> {
  const { endWithClosedTerminal, main } = await import('./start.ts');
  endWithClosedTerminal();
  await main(args);
}

/** False if it could not be written: then the whole program says it, or reports why not. */
function saidVersion(): boolean {
  try {
    writeSync(1, `${versionOf()}\n`);
    return true;
  } catch {
    return false;
  }
}

/** Node 22 and later keep compiled code between commands. It is kept in the user's own folder, because others can write to /tmp. */
function keepCompiled(): void {
  const { enableCompileCache } = process.getBuiltinModule('node:module') as {
    enableCompileCache?: (folder: string) => unknown;
  };
  const caches = process.env.XDG_CACHE_HOME || join(homedir(), '.cache');
  enableCompileCache?.(process.env.NODE_COMPILE_CACHE ?? join(caches, 'holdfast', 'compiled'));
}
