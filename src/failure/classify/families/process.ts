import { reasonOfExit, reasonOfSignal } from '../../exits.ts';
import type { Seen } from '../seen.ts';
import { type Family, type Finding, found, lookUp } from '../verdict.ts';
import { AT_SPAWN } from './system.ts';

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

/** How a child process ended, in errors of Node, execa, zx, tinyexec and others. */
function byEnd(seen: Seen): Finding | undefined {
  const exitCode = seen.number('exitCode');
  const signal = signalOf(seen);
  if (signal === undefined && exitCode === undefined && !isChild(seen)) return undefined;
  if (seen.get('timedOut') === true) return found('timeout', 'timedOut');
  if (seen.get('isMaxBuffer') === true) return found('process.max_buffer', 'isMaxBuffer');
  if (seen.get('isCanceled') === true || seen.get('isTerminated') === 'canceled') return found('abort', 'isCanceled');
  // A failure to start, or a limit of spawnSync, has a string as its code.
  if (typeof seen.code === 'string' && seen.code !== '') return lookUp(AT_SPAWN, seen.code, 'code');
  if (typeof signal === 'string' && /^SIG[A-Z0-9]+$/.test(signal)) {
    // Node killed it itself: exec and spawnSync do that when their time limit is reached.
    if (seen.get('killed') === true && signal === 'SIGTERM' && seen.get('cmd') !== undefined)
      return found('timeout', 'killed');
    return found(reasonOfSignal(signal), 'signal');
  }
  const number = exitCode ?? numberOf(seen);
  if (number === undefined || number === 0) return undefined;
  const field = exitCode === undefined ? (typeof seen.code === 'number' ? 'code' : 'status') : 'exitCode';
  return found(reasonOfExit(number), field);
}

/** The signal that ended the process. Null if no signal did. */
function signalOf(seen: Seen): unknown {
  for (const name of ['signal', 'signalCode', 'signalName']) {
    const signal = seen.get(name);
    // `signal` may also be an AbortSignal.
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
