import { readNumber, readText } from './inspect.ts';
import type { Verdict } from './verdict.ts';

/** System errors by their code: Node's names for what Linux, macOS and Windows report. */
const BY_CODE: Readonly<Record<string, Verdict>> = {
  EBUSY: { reason: 'fs.locked', kind: 'transient', fault: 'task' },
  ETXTBSY: { reason: 'fs.locked', kind: 'transient', fault: 'task' },
  EDEADLK: { reason: 'fs.locked', kind: 'transient', fault: 'task' },
  EACCES: { reason: 'fs.permission', kind: 'permanent', fault: 'task' },
  EPERM: { reason: 'fs.permission', kind: 'permanent', fault: 'task' },
  EROFS: { reason: 'fs.permission', kind: 'permanent', fault: 'task' },
  EEXIST: { reason: 'fs.dest_exists', kind: 'permanent', fault: 'task' },
  ENOTEMPTY: { reason: 'fs.dest_exists', kind: 'permanent', fault: 'task' },
  ENOENT: { reason: 'fs.not_found', kind: 'permanent', fault: 'task' },
  ENOSPC: { reason: 'fs.no_space', kind: 'transient', fault: 'worker' },
  EDQUOT: { reason: 'fs.no_space', kind: 'transient', fault: 'worker' },
  EMFILE: { reason: 'fs.too_many_files', kind: 'transient', fault: 'worker' },
  ENFILE: { reason: 'fs.too_many_files', kind: 'transient', fault: 'worker' },
  EIO: { reason: 'fs.io', kind: 'transient', fault: 'worker', ambiguous: true },
  ESTALE: { reason: 'fs.io', kind: 'transient', fault: 'worker', ambiguous: true },
  EXDEV: { reason: 'fs.cross_device', kind: 'permanent', fault: 'task' },
  EISDIR: { reason: 'fs.invalid', kind: 'permanent', fault: 'task' },
  ENOTDIR: { reason: 'fs.invalid', kind: 'permanent', fault: 'task' },
  ELOOP: { reason: 'fs.invalid', kind: 'permanent', fault: 'task' },
  ENAMETOOLONG: { reason: 'fs.invalid', kind: 'permanent', fault: 'task' },
  EMLINK: { reason: 'fs.invalid', kind: 'permanent', fault: 'task' },
  ECONNREFUSED: { reason: 'net.refused', kind: 'transient', fault: 'source' },
  ENOTFOUND: { reason: 'net.dns', kind: 'transient', fault: 'source' },
  EAI_AGAIN: { reason: 'net.dns', kind: 'transient', fault: 'source' },
  EHOSTUNREACH: { reason: 'net.unreachable', kind: 'transient', fault: 'source' },
  ENETUNREACH: { reason: 'net.unreachable', kind: 'transient', fault: 'source' },
  EHOSTDOWN: { reason: 'net.unreachable', kind: 'transient', fault: 'source' },
  ENETDOWN: { reason: 'net.unreachable', kind: 'transient', fault: 'source' },
  ECONNRESET: { reason: 'net.reset', kind: 'transient', fault: 'source', ambiguous: true },
  ECONNABORTED: { reason: 'net.reset', kind: 'transient', fault: 'source', ambiguous: true },
  EPIPE: { reason: 'net.reset', kind: 'transient', fault: 'source', ambiguous: true },
  ETIMEDOUT: { reason: 'net.timeout', kind: 'transient', fault: 'source', ambiguous: true },
  EADDRINUSE: { reason: 'net.address_in_use', kind: 'transient', fault: 'worker' },
  EAGAIN: { reason: 'resource.limit', kind: 'transient', fault: 'worker' },
  ENOMEM: { reason: 'resource.memory', kind: 'transient', fault: 'worker' },
};

const SOCKET_CALLS = ['connect', 'bind', 'listen'];

const BY_SPAWN: Readonly<Record<string, Verdict>> = {
  ENOENT: { reason: 'process.not_found', kind: 'permanent', fault: 'task' },
  EACCES: { reason: 'process.not_executable', kind: 'permanent', fault: 'task' },
};

/** libuv gives Windows errors numbers of −4000 and below wherever they were made up, so they tell the platform. */
const WINDOWS_ERRNO = -4_000;
const WINDOWS_LOCKED_CODES = ['EPERM', 'EACCES', 'ENOTEMPTY', 'UNKNOWN'];
const WINDOWS_LOCKED_CALLS = ['rename', 'unlink', 'link', 'rmdir', 'open', 'copyfile'];

/** Reads a Node system error: its code, and the system call where one code means two things. */
export function bySystemError(error: unknown): Verdict | undefined {
  const code = readText(error, 'code');
  if (code === undefined) return undefined;
  // Libraries copy the code without the rest, so a bare `E…` name counts.
  const call = readText(error, 'syscall') ?? '';
  const verdict = onWindows(error, code, call) ?? byCall(code, call) ?? known(BY_CODE, code);
  return verdict && { ...verdict, field: 'code' };
}

/** Another program has the file open: on Windows that is how a lock looks. */
function onWindows(error: unknown, code: string, call: string): Verdict | undefined {
  const errno = readNumber(error, 'errno') ?? 0;
  const locked = errno <= WINDOWS_ERRNO && WINDOWS_LOCKED_CODES.includes(code) && WINDOWS_LOCKED_CALLS.includes(call);
  return locked ? known(BY_CODE, 'EBUSY') : undefined;
}

/** Codes that mean another thing when they come from a socket or from starting a program. */
function byCall(code: string, call: string): Verdict | undefined {
  if (call === 'connect' && code === 'ENOENT') return known(BY_CODE, 'ECONNREFUSED');
  // Nothing was sent yet, so nothing can have happened.
  if (call === 'connect' && code === 'ETIMEDOUT') return { ...(known(BY_CODE, code) as Verdict), ambiguous: false };
  if (SOCKET_CALLS.includes(call) && (code === 'EACCES' || code === 'EPERM')) {
    return { reason: 'net.permission', kind: 'permanent', fault: 'task' };
  }
  return call.startsWith('spawn') ? known(BY_SPAWN, code) : undefined;
}

function known(verdicts: Readonly<Record<string, Verdict>>, code: string): Verdict | undefined {
  return Object.hasOwn(verdicts, code) ? verdicts[code] : undefined;
}
