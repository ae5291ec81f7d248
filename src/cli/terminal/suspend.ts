/**
 * Ctrl-Z stops the process between two turns of the event loop, and so never in the middle of a transaction, whose lock everybody
 * else would wait for until it goes on. Returns what ends that.
 */
export function suspendBetweenCommits(): () => void {
  if (process.platform === 'win32') return () => {};
  const suspend = () => process.kill(process.pid, 'SIGSTOP');
  process.on('SIGTSTP', suspend);
  return () => process.off('SIGTSTP', suspend);
}
