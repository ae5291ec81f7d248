import { readFileSync } from 'node:fs';

/**
 * Ctrl-Z stops the process between two turns of the event loop. In the middle of a transaction, it would keep a lock for which all
 * other processes wait until it continues. Returns a function that ends this.
 */
export function suspendBetweenCommits(): () => void {
  if (process.platform === 'win32') return () => {};
  const suspend = () => process.kill(process.pid, 'SIGSTOP');
  process.on('SIGTSTP', suspend);
  return () => process.off('SIGTSTP', suspend);
}

/** Whether a shell can continue this process after it was stopped. Where the system does not tell, it is assumed. */
export function isJobOfShell(): boolean {
  try {
    // The name of the program, before the last parenthesis, may contain anything.
    const [, , group, session] = readFileSync('/proc/self/stat', 'latin1')
      .replace(/^.*\) /s, '')
      .split(' ');
    // A shell with jobs gives each a group of its own.
    return group !== session;
  } catch {
    return true;
  }
}
