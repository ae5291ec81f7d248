// Sees to it that a server does not outlive the process that started it, however that ends: another process holds the end of
// a pipe to the owner, which the system closes when the owner is gone, and then ends the server and removes its folders.
import { spawn } from 'node:child_process';
import { rmSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { quitOrKill } from './processes.mjs';
import { freeSharedMemory } from './shared-memory.mjs';

const SELF = fileURLToPath(import.meta.url);

/**
 * Guards the folders of a server, the one with its data first, and the process that `watch` names last. `release` ends that
 * and removes the folders now.
 */
export function guardServer(...folders) {
  const guard = spawn(process.execPath, [SELF, ...folders], {
    // In a session of its own, so that Ctrl-C in a terminal does not end it first.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    cwd: '/',
  });
  const ended = new Promise((resolve) => guard.once('close', resolve));
  guard.unref();
  guard.stdin.unref();
  return {
    watch: (pid) => guard.stdin.write(`${pid}\n`),
    unwatch: () => guard.stdin.write('none\n'),
    async release() {
      guard.ref();
      guard.stdin.end();
      await ended;
    },
  };
}

async function keepGuard(folders) {
  let watched = 'none';
  for await (const line of createInterface({ input: process.stdin })) watched = line;
  if (watched !== 'none') await quitOrKill(Number(watched));
  freeSharedMemory(folders[0]);
  for (const folder of folders) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}

if (process.argv[1] === SELF) await keepGuard(process.argv.slice(2));
