import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { Milliseconds } from '../../duration.ts';
import { REASONS, type Reason } from '../../failure/classify/reasons.ts';
import { reasonOfExit, reasonOfSignal } from '../../failure/exits.ts';
import { failedAt } from '../../failure/signals.ts';
import { decodeJson } from '../../json.ts';
import { harmless } from '../../log.ts';
import { isRecord } from '../../options.ts';
import type { Json } from '../../task.ts';
import type { RunningTask } from '../define-task.ts';
import { RefusedResult } from '../result.ts';
import type { Answer, ToChild, ToWorker } from './messages.ts';
import type { ChildSettings } from './options.ts';
import { packError, unpackError } from './thrown.ts';

/** The end of a child that did not answer. */
interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A handler that runs in a child process. */
export interface ChildRun {
  /** What the handler returned. Rejects with what it threw, or says how the process ended without an answer. */
  readonly returned: Promise<unknown>;
  /** Ends the process, first with SIGTERM and then with SIGKILL. */
  end(): void;
}

/** How long a child may take to abort the signal of its handler. After that its event loop counts as blocked, and it is ended. */
const BLOCKED_AFTER: Milliseconds = 5_000;

/** How long a child may take to end: after its answer, after SIGTERM, and after its channel closed. */
const LINGER: Milliseconds = 1_000;

const POSIX = process.platform !== 'win32';

/** Starts a child process that calls the handler of this type with this input. */
export function runInChild(settings: ChildSettings, type: string, input: Json, task: RunningTask): ChildRun {
  const child = fork(fileURLToPath(new URL('./main.js', import.meta.url)), {
    serialization: 'advanced',
    // A group of its own: an interrupt in the terminal reaches only the worker, which then decides what happens to its tasks.
    detached: POSIX,
    execArgv: optionsOfNode(settings),
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  // Without a number it was not started, for example because this process has too many files open.
  if (child.pid === undefined)
    return { returned: once(child, 'error').then(([error]) => Promise.reject(error)), end() {} };
  child.once('exit', () => endGroup(child));
  const end = () => {
    kill(child, 'SIGTERM');
    endSoon(child);
  };
  const abort = () => {
    send(child, { kind: 'abort', reason: packError(task.signal.reason) });
    const blocked = setTimeout(end, BLOCKED_AFTER);
    child.once('exit', () => clearTimeout(blocked));
    onMessage(child, ({ kind }) => kind === 'aborted' && clearTimeout(blocked));
  };
  const returned = answerOf(child, settings, task).finally(() => task.signal.removeEventListener('abort', abort));
  task.signal.addEventListener('abort', abort);
  const fields = Object.entries(Object.getOwnPropertyDescriptors(task)).flatMap(([name, { value, get }]) => {
    const field: unknown = get && name !== 'signal' && name !== 'log' ? get.call(task) : value;
    return field === undefined || typeof field === 'function' ? [] : [[name, field] as const];
  });
  const functions = Object.keys(task).filter((name) => typeof Reflect.get(task, name) === 'function');
  send(child, { kind: 'run', module: settings.module, type, input, fields: Object.fromEntries(fields), functions });
  return { returned, end };
}

/** Those of this process, without a debugger's port and without a program on the command line. */
function optionsOfNode({ memoryMb }: ChildSettings): string[] {
  const given = process.execArgv.filter((option, at, all) => {
    return (
      !/^--(inspect|input-type)|^(-e|--eval|-p|-pe|--print)$/.test(option) &&
      !/^(-e|--eval|-p|-pe|--print)$/.test(all[at - 1] ?? '')
    );
  });
  return memoryMb === undefined ? given : [...given, `--max-old-space-size=${memoryMb}`];
}

function answerOf(child: ChildProcess, settings: ChildSettings, task: RunningTask): Promise<unknown> {
  let loaded = false;
  return new Promise((resolve, reject) => {
    // Such as of a closed channel. The end of the process follows.
    child.on('error', () => {});
    onMessage(child, (message) => {
      switch (message.kind) {
        case 'loaded':
          loaded = true;
          return;
        case 'log':
          return harmless(task.log)[message.level](message.fields, message.message);
        case 'call':
          return void callFunction(child, task, message);
        case 'succeeded':
        case 'result_refused':
        case 'failed':
        case 'not_loaded':
          endSoon(child);
          // If it rejects, so does this.
          resolve(outcomeOf(message, settings));
      }
    });
    // It cannot answer any more.
    child.once('disconnect', () => endSoon(child));
    child.once('exit', (code, signal) => {
      const failed = () => reject(failureOf({ code, signal }, settings, loaded));
      // Messages that it sent before its end are read first.
      if (!child.connected) return failed();
      const late = setTimeout(failed, LINGER);
      child.once('disconnect', () => {
        clearTimeout(late);
        failed();
      });
    });
  });
}

/** The handler may send messages of its own, of any form: libraries tell a process manager that they are ready. */
function onMessage(child: ChildProcess, listener: (message: ToWorker) => void): void {
  child.on('message', (message: unknown) => {
    if (isRecord(message)) listener(message as unknown as ToWorker);
  });
}

/** What the handler returned. Rejects with what it threw. */
async function outcomeOf(answer: Answer, { module }: ChildSettings): Promise<unknown> {
  if (answer.kind === 'succeeded') return answer.result === undefined ? undefined : decodeJson(answer.result);
  const thrown = unpackError(answer.thrown);
  switch (answer.kind) {
    case 'result_refused':
      return new RefusedResult(thrown);
    case 'failed':
      throw thrown;
    case 'not_loaded': {
      const why = thrown instanceof Error ? thrown.message : String(thrown);
      throw notLoaded(module, why, { cause: thrown });
    }
  }
}

async function callFunction(
  child: ChildProcess,
  task: RunningTask,
  message: ToWorker & { kind: 'call' },
): Promise<void> {
  const { call, name, args } = message;
  try {
    const value: unknown = await Reflect.apply(Reflect.get(task, name), task, args);
    send(child, { kind: 'returned', call, value, checkpoint: task.checkpoint });
  } catch (error) {
    send(child, { kind: 'threw', call, thrown: packError(error) });
  }
}

function failureOf({ code, signal }: Exit, { memory, module }: ChildSettings, loaded: boolean): Error {
  const how = signal === null ? `exit ${code}` : `killed by ${signal}`;
  if (!loaded) return notLoaded(module, `it ended meanwhile (${how})`);
  // V8 aborts the process when its heap is full.
  if (memory !== undefined && (signal === 'SIGABRT' || signal === 'SIGTRAP' || code === 134)) {
    const message = `Its child process used more memory than its limit of ${memory} (${how}).`;
    return failed(message, 'process.out_of_memory', { code: signal ?? String(code) });
  }
  const reason = signal === null ? reasonOfExit(code as number) : reasonOfSignal(signal);
  return failed(`Its child process ended without an answer: ${how}.`, reason, { code: signal ?? String(code) });
}

function notLoaded(module: string, why: string, more: { readonly cause?: unknown } = {}): Error {
  return failed(`The child process could not load ${module}: ${why}`, 'process.not_loaded', more);
}

function failed(message: string, reason: Reason, more: { readonly code?: string; readonly cause?: unknown }): Error {
  const { fault, kind } = REASONS[reason];
  return failedAt(fault, message, { reason, kind, ...more });
}

/** If the channel is closed, the message is dropped: the end of the process tells the rest. */
function send(child: ChildProcess, message: ToChild): void {
  child.send(message, () => {});
}

function endSoon(child: ChildProcess): void {
  const killer = setTimeout(() => kill(child, 'SIGKILL'), LINGER).unref();
  child.once('exit', () => clearTimeout(killer));
}

function kill(child: ChildProcess, signal: NodeJS.Signals): void {
  const { pid, exitCode, signalCode } = child;
  if (pid !== undefined && exitCode === null && signalCode === null) signalTo(POSIX ? -pid : pid, signal);
}

/** Programs that the handler started are in the group of its child process, and do not outlive it. */
function endGroup({ pid }: ChildProcess): void {
  if (POSIX && pid !== undefined) signalTo(-pid, 'SIGKILL');
}

function signalTo(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}
