import { reasonOfExit, reasonOfSignal } from '../../exits.ts';
import type { ErrorFields } from '../error-fields.ts';
import { type Family, type Finding, found, lookUp } from '../meaning.ts';
import { AT_SPAWN } from './system.ts';

export const processes: Family = {
  name: 'process',
  sorts: ['answered', 'system', 'coded', 'numbered', 'bare'],
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
  recognise: byEnd,
};

/** How a child process ended, in errors of Node, execa, zx, tinyexec and others. */
function byEnd(fields: ErrorFields): Finding | undefined {
  const exitCode = fields.number('exitCode');
  const signal = signalOf(fields);
  if (signal === undefined && exitCode === undefined && !isChild(fields)) return undefined;
  if (fields.get('timedOut') === true) return found('timeout', 'timedOut');
  if (fields.get('isMaxBuffer') === true) return found('process.max_buffer', 'isMaxBuffer');
  if (fields.get('isCanceled') === true || fields.get('isTerminated') === 'canceled')
    return found('abort', 'isCanceled');
  // A failure to start, or a limit of spawnSync, has a string as its code.
  if (typeof fields.code === 'string' && fields.code !== '') return lookUp(AT_SPAWN, fields.code, 'code');
  if (typeof signal === 'string' && /^SIG[A-Z0-9]+$/.test(signal)) {
    // Node killed it itself: exec and spawnSync do that when their time limit is reached.
    if (fields.get('killed') === true && signal === 'SIGTERM' && fields.get('cmd') !== undefined)
      return found('timeout', 'killed');
    return found(reasonOfSignal(signal), 'signal');
  }
  const number = exitCode ?? numberOf(fields);
  if (number === undefined || number === 0) return undefined;
  const field = exitCode === undefined ? (typeof fields.code === 'number' ? 'code' : 'status') : 'exitCode';
  return found(reasonOfExit(number), field);
}

/** The signal that ended the process. Null if no signal did. */
function signalOf(fields: ErrorFields): unknown {
  for (const name of ['signal', 'signalCode', 'signalName']) {
    const signal = fields.get(name);
    // `signal` may also be an AbortSignal.
    if (signal === null || typeof signal === 'string') return signal;
  }
  return undefined;
}

function isChild(fields: ErrorFields): boolean {
  if (fields.text('cmd') !== undefined || fields.get('spawnargs') !== undefined) return true;
  return fields.get('failed') === true && fields.text('command') !== undefined;
}

function numberOf(fields: ErrorFields): number | undefined {
  return typeof fields.code === 'number' ? fields.code : fields.number('status');
}
