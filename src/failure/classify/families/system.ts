import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../meaning.ts';

/** Node's codes for system errors of Linux, macOS and Windows. */
const CODES: Table = {
  EBUSY: 'fs.locked',
  ETXTBSY: 'fs.locked',
  EDEADLK: 'fs.locked',
  EDEADLOCK: 'fs.locked',
  ELOCKED: 'fs.locked',
  EACCES: 'fs.permission',
  EPERM: 'fs.permission',
  EROFS: 'fs.permission',
  EEXIST: 'fs.dest_exists',
  ENOTEMPTY: 'fs.dest_exists',
  ENOENT: 'fs.not_found',
  ENXIO: 'fs.not_found',
  ENODEV: 'fs.not_found',
  ENOSPC: 'fs.no_space',
  EDQUOT: 'fs.no_space',
  EMFILE: 'fs.too_many_files',
  ENFILE: 'fs.too_many_files',
  EIO: 'fs.io',
  ESTALE: 'fs.io',
  EREMOTEIO: 'fs.io',
  EXDEV: 'fs.cross_device',
  EISDIR: 'fs.invalid',
  ENOTDIR: 'fs.invalid',
  ELOOP: 'fs.invalid',
  ENAMETOOLONG: 'fs.invalid',
  EINVAL: 'fs.invalid',
  EBADF: 'fs.invalid',
  EMLINK: 'fs.invalid',
  ESPIPE: 'fs.invalid',
  EFTYPE: 'fs.invalid',
  ECONNREFUSED: 'net.refused',
  EHOSTUNREACH: 'net.unreachable',
  ENETUNREACH: 'net.unreachable',
  EHOSTDOWN: 'net.unreachable',
  ENETDOWN: 'net.unreachable',
  ENONET: 'net.unreachable',
  EADDRNOTAVAIL: 'net.unreachable',
  EAFNOSUPPORT: 'net.unreachable permanent',
  EADDRINUSE: 'net.address_in_use',
  ECONNRESET: 'net.reset',
  ECONNABORTED: 'net.reset',
  ENETRESET: 'net.reset',
  EPIPE: 'net.reset',
  ENOTCONN: 'net.reset',
  ESHUTDOWN: 'net.reset',
  ETIMEDOUT: 'net.timeout',
  ESOCKETTIMEDOUT: 'net.timeout',
  EPROTO: 'tls.handshake unknown',
  EAGAIN: 'resource.limit',
  EWOULDBLOCK: 'resource.limit',
  ENOBUFS: 'resource.limit',
  ENOMEM: 'resource.memory transient',
  E2BIG: 'too_large',
  EFBIG: 'too_large',
  EMSGSIZE: 'too_large',
  EOVERFLOW: 'too_large',
  ENOSYS: 'not_implemented',
  ENOTSUP: 'not_implemented',
  EOPNOTSUPP: 'not_implemented',
  EPROTONOSUPPORT: 'not_implemented',
  ECANCELED: 'abort',
  EINTR: { reason: 'abort', ambiguous: false },
  ERR_FS_CP_EEXIST: 'fs.dest_exists',
  ERR_FS_CP_EINVAL: 'fs.invalid',
  ERR_FS_CP_DIR_TO_NON_DIR: 'fs.invalid',
  ERR_FS_CP_NON_DIR_TO_DIR: 'fs.invalid',
  ERR_FS_EISDIR: 'fs.invalid',
  ERR_FS_FILE_TOO_LARGE: 'too_large',
  ERR_ACCESS_DENIED: 'fs.permission',
  ECOMPROMISED: 'fs.locked',
};

/** Codes whose meaning is different when a program is started. */
export const AT_SPAWN: Table = {
  ENOENT: 'process.not_found',
  EACCES: 'process.not_executable',
  EPERM: 'process.not_executable',
  ENOEXEC: 'process.not_executable',
  // Windows: the file is not a program.
  UNKNOWN: 'process.not_executable',
  ETIMEDOUT: 'timeout',
  ENOBUFS: 'process.max_buffer',
};

/** Codes while connecting. Nothing was sent yet, so the effect cannot have happened. */
const AT_CONNECT: Table = {
  ENOENT: 'net.refused',
  ETIMEDOUT: { reason: 'net.timeout', ambiguous: false },
  ECONNRESET: { reason: 'net.reset', ambiguous: false },
  EINVAL: 'net.unreachable',
  EAGAIN: 'net.refused',
};

const AT_SOCKET: Table = { EACCES: 'net.permission', EPERM: 'net.permission' };
const SOCKET_CALLS = ['connect', 'bind', 'listen'];

/** Codes that these calls give on Windows while another program has the file open. */
const ON_WINDOWS: Table = {
  EPERM: 'fs.locked',
  EACCES: 'fs.locked',
  ENOTEMPTY: 'fs.locked',
  UNKNOWN: 'fs.locked',
};
const WINDOWS_CALLS = [
  'rename',
  'unlink',
  'link',
  'rmdir',
  'rm',
  'open',
  'copyfile',
  'scandir',
  'stat',
  'lstat',
  'utime',
];

/** On Windows, libuv gives errors the numbers −4000 and below. So an `errno` shows the platform, even in another process. */
const WINDOWS_ERRNO = -4_000;
const WINDOWS_PATH = /^(?:[A-Za-z]:[\\/]|\\\\)/;

export const system: Family = {
  name: 'system',
  sorts: ['system', 'coded'],
  codes: CODES,
  recognise: byCall,
};

/** Codes whose meaning depends on the call or the platform. */
function byCall(fields: ErrorFields): Finding | undefined {
  const { code, syscall } = fields;
  if (typeof code !== 'string') return undefined;
  if (code === 'EPROTO') return byOpenSsl(fields);
  if (code === 'ECONNRESET' && fields.message.startsWith('Client network socket disconnected before secure TLS'))
    return found({ reason: 'net.reset', ambiguous: false }, 'message', 'code');
  if (syscall === '') return byHelper(fields);
  if (syscall.startsWith('spawn') || syscall === 'execve' || syscall === 'posix_spawn')
    return lookUp(AT_SPAWN, code, 'code');
  if (syscall === 'connect') {
    const atConnect = lookUp(AT_CONNECT, code, 'code');
    if (atConnect) return atConnect;
  }
  if (SOCKET_CALLS.includes(syscall)) return lookUp(AT_SOCKET, code, 'code');
  if (WINDOWS_CALLS.includes(syscall) && Object.hasOwn(ON_WINDOWS, code) && isWindows(fields))
    return lookUp(ON_WINDOWS, code, 'code');
  return undefined;
}

/** Node gives all errors of OpenSSL the same code, so the message decides. `syscall` may be absent: some clients copy only the code. */
function byOpenSsl({ message }: ErrorFields): Finding | undefined {
  if (!message.includes('SSL routines')) return undefined;
  // Alert 80 is an internal error of the other side, so it may be transient.
  return found(message.includes('alert internal error') ? 'tls.handshake transient' : 'tls.handshake', 'code');
}

/** opossum and other libraries use codes of the system for their own errors. */
function byHelper({ code, message }: ErrorFields): Finding | undefined {
  if (code === 'ETIMEDOUT' && /^Timed out after \d+ ?ms$/.test(message)) return found('timeout', 'message');
  if (code === 'ESHUTDOWN' && message === 'The circuit has been shutdown.')
    return found('net.closed_client', 'message');
  return undefined;
}

function isWindows(fields: ErrorFields): boolean {
  const errno = fields.number('errno');
  if (errno !== undefined) return errno <= WINDOWS_ERRNO;
  const path = fields.get('path');
  return typeof path === 'string' && WINDOWS_PATH.test(path.slice(0, 3));
}
