import { spawn } from 'node:child_process';

/** Starts a script again as a worker process, which says a line when it works. */
export function startWorker(script, args) {
  const child = spawn(process.execPath, [script, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
  const working = new Promise((resolve) => child.stdout.once('data', resolve));
  return { child, exited, working: Promise.race([working, exited]) };
}
