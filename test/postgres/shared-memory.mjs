import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Frees the small segment of shared memory that a killed server leaves in the system, named in its `postmaster.pid`. */
export function freeSharedMemory(data) {
  const file = join(data, 'postmaster.pid');
  if (!existsSync(file)) return;
  const id = readFileSync(file, 'utf8').split('\n')[6]?.trim().split(/\s+/)[1];
  // Where it was freed already, or there is no `ipcrm`, nothing is left to do.
  if (id) spawnSync('ipcrm', ['-m', id], { stdio: 'ignore' });
}
