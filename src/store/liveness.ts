import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { bootId } from './boot.ts';

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

/** No more of a row than who its process is. */
export function identityOf({ host, pid, pid_started, boot, pid_space }: ProcessIdentity): ProcessIdentity {
  return { host, pid, pid_started, boot, pid_space };
}

/**
 * What can be proven of a process from here. `unknown`: it is on another host, in another pid namespace, was there before a
 * reboot, or /proc cannot be read. Then only its worker's lease tells whether it works.
 */
export type Liveness = 'alive' | 'dead' | 'unknown';

/** Who this process is. */
export function ownIdentity(): ProcessIdentity {
  return {
    host: hostname(),
    pid: process.pid,
    pid_started: startOf(process.pid) ?? null,
    boot: bootId(),
    pid_space: ownPidSpace(),
  };
}

/** Whether that process lives. A stopped one does; a zombie does not. */
export function livenessOf(identity: ProcessIdentity): Liveness {
  if (!isInSight(identity)) return 'unknown';
  if (!exists(identity.pid)) return 'dead';
  const started = startOf(identity.pid);
  // What cannot be read, as under hidepid, proves nothing.
  if (started === undefined || identity.pid_started === null) return 'unknown';
  return started === identity.pid_started ? 'alive' : 'dead';
}

/** Whether its pid means the same process here. What is not known on either side proves nothing. */
function isInSight({ host, boot, pid_space }: ProcessIdentity): boolean {
  if (host !== hostname() || boot !== bootId()) return false;
  if (boot === null && process.platform === 'linux') return false;
  return pid_space !== null && pid_space === ownPidSpace();
}

/**
 * As `livenessOf`, for processes that can only be on one kernel: that of another boot has ended with it. Only in the same pid
 * namespace, for containers may be given a boot id of their own.
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
