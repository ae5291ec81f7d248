#!/usr/bin/env node
import { writeSync } from 'node:fs';
import { nodeProblem } from '../node-version.ts';
import { versionOf } from './version.ts';

const args = process.argv.slice(2);
const asksVersion = args.length === 1 && (args[0] === '--version' || args[0] === '-V');
const problem = nodeProblem();
if (problem !== undefined) {
  writeSync(2, `error: ${problem}\n`);
  process.exitCode = 1;
} else if (!asksVersion || !saidVersion()) {
  // Loaded only now, because it takes longer than to say the version.
  const { main } = await import('./start.ts');
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
