import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';

/**
 * Who a worker's process is. A pid alone is not enough: it is given out again after a death, and means something else in
 * another container or after a reboot.
 */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process started, in ticks since boot; null where the system does not tell. */
  readonly pid_started: string | null;
  readonly boot: string | null;
  readonly pid_space: string | null;
}

/** Who this process is. */
export function ownIdentity(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    pid_started: startOf(process.pid) ?? null,
    boot: currentBoot(),
    pid_space: currentPidSpace(),
  };
}

/**
 * Whether that process is dead beyond doubt. "No" also means "cannot be known from here": on another host, in another pid
 * namespace, or before a reboot. Such a worker's lease simply runs out.
 */
export function isProvablyDead(identity: ProcessIdentity): boolean {
  if (identity.host !== hostname() || identity.boot !== currentBoot() || identity.pid_space !== currentPidSpace()) {
    return false;
  }
  if (!exists(identity.pid)) return true;
  // What cannot be read, as under hidepid, proves nothing.
  const started = startOf(identity.pid);
  return started !== undefined && identity.pid_started !== null && started !== identity.pid_started;
}

function currentBoot(): string | null {
  return tryRead(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim());
}

function currentPidSpace(): string | null {
  return tryRead(() => readlinkSync('/proc/self/ns/pid'));
}

/**
 * The 22nd field of `/proc/PID/stat`; the second may hold spaces and brackets. A zombie has ended, though it has a row, so
 * it started at no time that a living process could have. Undefined where the file cannot be read.
 */
function startOf(pid: number): string | undefined {
  const stat = tryRead(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields?.[0] === 'Z' || fields?.[0] === 'X' ? 'ended' : fields?.[19];
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}

function tryRead(read: () => string): string | null {
  try {
    return read();
  } catch {
    // Not Linux, or no such process: then it is not known.
    return null;
  }
}
