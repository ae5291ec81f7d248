import type { Seen } from '../seen.ts';
import { type Family, type Finding, found, lookUp, type Table } from '../verdict.ts';
import { AT_SPAWN } from './system.ts';

/** Exit codes with a common meaning: sysexits.h, the shell, and 128 + a signal's number. */
export const EXIT_CODES: Table = {
  64: 'process.usage',
  75: 'process.tempfail',
  78: 'process.usage',
  124: 'timeout',
  126: 'process.not_executable',
  127: 'process.not_found',
  129: 'process.killed',
  130: 'process.killed',
  131: 'process.killed',
  132: 'process.crashed',
  133: 'process.crashed',
  134: 'process.crashed',
  135: 'process.crashed',
  136: 'process.crashed',
  137: 'process.killed',
  139: 'process.crashed',
  141: 'process.killed',
  143: 'process.killed',
  // cmd.exe: no such command.
  9009: 'process.not_found',
  // Windows status codes: access violation, stack overflow, heap corruption, fast fail, Ctrl+C.
  3221225477: 'process.crashed',
  3221225725: 'process.crashed',
  3221226356: 'process.crashed',
  3221226505: 'process.crashed',
  3221225786: 'process.killed',
};

const SIGNALS: Table = {
  SIGSEGV: 'process.crashed',
  SIGABRT: 'process.crashed',
  SIGBUS: 'process.crashed',
  SIGILL: 'process.crashed',
  SIGFPE: 'process.crashed',
  SIGTRAP: 'process.crashed',
  SIGSYS: 'process.crashed',
  SIGIOT: 'process.crashed',
};

export const processes: Family = {
  name: 'process',
  asked: ['answered', 'system', 'coded', 'numbered', 'bare'],
  vendorCodes: {
    ERR_CHILD_PROCESS_STDIO_MAXBUFFER: 'process.max_buffer',
    ERR_WORKER_OUT_OF_MEMORY: 'resource.memory',
    ERR_CHILD_PROCESS_IPC_REQUIRED: 'code.bug',
    ERR_IPC_CHANNEL_CLOSED: 'process.killed',
    ERR_WORKER_NOT_RUNNING: 'process.killed',
    ERR_WORKER_INIT_FAILED: 'process.crashed',
    ERR_WORKER_PATH: 'code.bug',
    ERR_MEMORY_ALLOCATION_FAILED: 'resource.memory transient',
    ERR_SCRIPT_EXECUTION_TIMEOUT: 'timeout',
    ERR_SCRIPT_EXECUTION_INTERRUPTED: 'abort',
  },
  sense: byEnd,
};

/** How a child process ended, as Node, execa, zx, tinyexec and others tell it. */
function byEnd(seen: Seen): Finding | undefined {
  const exitCode = seen.number('exitCode');
  const signal = signalOf(seen);
  if (signal === undefined && exitCode === undefined && !isChild(seen)) return undefined;
  if (seen.get('timedOut') === true) return found('timeout', 'timedOut');
  if (seen.get('isMaxBuffer') === true) return found('process.max_buffer', 'isMaxBuffer');
  if (seen.get('isCanceled') === true || seen.get('isTerminated') === 'canceled') return found('abort', 'isCanceled');
  // What kept it from starting, or a limit of spawnSync, has a code in words.
  if (typeof seen.code === 'string' && seen.code !== '') return lookUp(AT_SPAWN, seen.code, 'code');
  if (typeof signal === 'string' && /^SIG[A-Z0-9]+$/.test(signal)) {
    // Node itself killed it, which exec and spawnSync do when their time limit is over.
    if (seen.get('killed') === true && signal === 'SIGTERM' && seen.get('cmd') !== undefined)
      return found('timeout', 'killed');
    return lookUp(SIGNALS, signal, 'signal') ?? found('process.killed', 'signal');
  }
  const number = exitCode ?? numberOf(seen);
  if (number === undefined || number === 0) return undefined;
  const field = exitCode === undefined ? (typeof seen.code === 'number' ? 'code' : 'status') : 'exitCode';
  return lookUp(EXIT_CODES, number, field) ?? found('process.exit', field);
}

/** The signal that ended it; null where it ended by itself. */
function signalOf(seen: Seen): unknown {
  for (const name of ['signal', 'signalCode', 'signalName']) {
    const signal = seen.get(name);
    // An AbortSignal is no signal of the system.
    if (signal === null || typeof signal === 'string') return signal;
  }
  return undefined;
}

function isChild(seen: Seen): boolean {
  if (seen.text('cmd') !== undefined || seen.get('spawnargs') !== undefined) return true;
  return seen.get('failed') === true && seen.text('command') !== undefined;
}

function numberOf(seen: Seen): number | undefined {
  return typeof seen.code === 'number' ? seen.code : seen.number('status');
}
