import { readFileSync, statSync } from 'node:fs';

/** The byte of the `-shm` file that SQLite locks while a connection writes to the WAL. */
const WRITE_LOCK = 120;

/** How much of a command line is shown. */
const LONGEST_COMMAND = 80;

/**
 * The process that writes to a database now, from Linux's list of locks: `process 4711 (node backup.js)`. Undefined if it is not
 * known.
 */
export function lockHolders(path: string): string | undefined {
  try {
    const { ino } = statSync(`${path}-shm`, { bigint: true });
    const pids = readFileSync('/proc/locks', 'utf8')
      .split('\n')
      .flatMap((line) => holderIn(line, String(ino)));
    return pids.length === 0 ? undefined : [...new Set(pids)].map(named).join(', ');
  } catch {
    // Not Linux, or a /proc that may not be read.
    return undefined;
  }
}

/** The process of a line such as `1: POSIX  ADVISORY  WRITE 4711 fd:00:1234567 120 120`, if it has the write lock of this file. */
function holderIn(line: string, inode: string): number[] {
  const [, , , mode, pid = '', file = '', from = '', to = ''] = line.trim().split(/\s+/);
  const isIts = mode === 'WRITE' && file.split(':')[2] === inode;
  const isWriteLock = Number(from) <= WRITE_LOCK && (to === 'EOF' || Number(to) >= WRITE_LOCK);
  return isIts && isWriteLock && Number(pid) > 0 ? [Number(pid)] : [];
}

function named(pid: number): string {
  if (pid === process.pid) return 'this process itself, through another connection,';
  const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
    .replace(/[\0\s]+/g, ' ')
    .trim();
  return `process ${pid} (${command.slice(0, LONGEST_COMMAND)})`;
}
