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
