import { execFileSync } from 'node:child_process';

/** Builds `dist` once before the slow tests, which run the command and the package as a user would. */
export function setup(): void {
  execFileSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' });
}
