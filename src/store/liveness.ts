import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { bootId } from './boot.ts';

/**
 * The identity of a worker's process. A pid alone is not enough: it is reused after the process ends, and means another process
 * in another container or after a reboot.
 */
export interface ProcessIdentity {
  readonly host: string;
  readonly pid: number;
  /** When the process started, in ticks since boot; null if the system does not say. */
  readonly pid_started: string | null;
  readonly boot: string | null;
  readonly pid_space: string | null;
}

/** The identity of the process in a row, without the other columns. */
export function identityOf({ host, pid, pid_started, boot, pid_space }: ProcessIdentity): ProcessIdentity {
  return { host, pid, pid_started, boot, pid_space };
}

/**
 * What can be proven about a process from here. `unknown`: it is on another host, in another pid namespace, or from before a
 * reboot, or /proc cannot be read. Then only its worker's lease counts.
 */
export type Liveness = 'alive' | 'dead' | 'unknown';

/** The identity of this process. */
export function ownIdentity(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    pid_started: startOf(process.pid) ?? null,
    boot: bootId(),
    pid_space: ownPidSpace(),
  };
}

/** Whether a process is alive. A stopped process is, a zombie is not. */
export function livenessOf(identity: ProcessIdentity): Liveness {
  if (!isInSight(identity)) return 'unknown';
  if (!exists(identity.pid)) return 'dead';
  const started = startOf(identity.pid);
  // If /proc cannot be read, for example with hidepid, nothing is proven.
  if (started === undefined || identity.pid_started === null) return 'unknown';
  return started === identity.pid_started ? 'alive' : 'dead';
}

/** Whether its pid means the same process here. Unknown values prove nothing. */
function isInSight({ host, boot, pid_space }: ProcessIdentity): boolean {
  if (host !== hostname() || boot !== bootId()) return false;
  if (boot === null && process.platform === 'linux') return false;
  return pid_space !== null && pid_space === ownPidSpace();
}

/**
 * Like `livenessOf`, for processes that can only be on this kernel: a process of another boot has ended with that boot. Only in
 * the same pid namespace, because containers may have their own boot id.
 */
export function livenessOnOneKernel(identity: ProcessIdentity): Liveness {
  const { boot, pid_space } = identity;
  const isOfEarlierBoot = boot !== null && bootId() !== null && boot !== bootId();
  return isOfEarlierBoot && pid_space !== null && pid_space === ownPidSpace() ? 'dead' : livenessOf(identity);
}

let pidSpace: { readonly name: string | null } | undefined;

/** Systems other than Linux have no pid namespaces: there all processes are in one. */
function ownPidSpace(): string | null {
  if (process.platform !== 'linux') return process.platform;
  pidSpace ??= { name: tryRead(() => readlinkSync('/proc/self/ns/pid')) };
  return pidSpace.name;
}

/**
 * The 22nd field of `/proc/PID/stat`; the second field may contain spaces and brackets. For a zombie, which has ended, it is a
 * value that no living process has. Undefined if the file cannot be read.
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
    // Not Linux, or there is no such process: not known.
    return null;
  }
}
