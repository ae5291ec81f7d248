// The program of a child process: it imports the module of one handler, calls it once, sends its answer to the worker, and exits.
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { InvalidInputError } from '../../errors.ts';
import { isSignal } from '../../failure/signals.ts';
import { encodeJson } from '../../json.ts';
import { LOG_LEVELS, type Logger } from '../../log.ts';
import { type AnyTask, parseInput, type RunningTask } from '../define-task.ts';
import { IN_CHILD } from './in-child.ts';
import type { Answer, ToChild, ToWorker } from './messages.ts';
import { packError, unpackError } from './thrown.ts';

Object.assign(globalThis, { [IN_CHILD]: true });
stayWithWorker();
let answered = false;
const [message] = (await once(process, 'message')) as [ToChild & { kind: 'run' }];
await run(message);

async function run({ module, type, input, fields, functions }: typeof message): Promise<void> {
  let loaded = false;
  // An error that nobody waits for is the failure of the only task that runs here.
  process.on('uncaughtException', (thrown) => answer(failure(loaded, thrown)));
  try {
    const definition = await load(module, type);
    loaded = true;
    send({ kind: 'loaded' });
    const task = runningTask(fields, functions);
    const returned: unknown = await definition.run(await parseInput(definition, input), task);
    if (isSignal(returned)) throw returned;
    answer(success(returned));
  } catch (thrown) {
    answer(failure(loaded, thrown));
  }
}

async function load(module: string, type: string): Promise<AnyTask> {
  const exported: Readonly<Record<string, unknown>> = await import(module);
  const found = Object.values(exported)
    .flat()
    .find(
      (value) =>
        value !== null && typeof value === 'object' && 'run' in value && 'type' in value && value.type === type,
    );
  if (found !== undefined) return found as AnyTask;
  throw new InvalidInputError(
    `it exports no definition of the type '${type}'. Write: export const … = defineTask('${type}', …)`,
  );
}

function success(returned: unknown): Answer {
  try {
    const result = returned === undefined ? undefined : encodeJson(returned, 'result', Number.POSITIVE_INFINITY);
    return { kind: 'succeeded', result };
  } catch (error) {
    return { kind: 'result_refused', thrown: packError(error) };
  }
}

function failure(loaded: boolean, thrown: unknown): Answer {
  return { kind: loaded ? 'failed' : 'not_loaded', thrown: packError(thrown) };
}

/** What the handler left behind ends with the process. */
function answer(message: Answer): void {
  if (answered) return;
  answered = true;
  send(message, () => process.exit(0));
}

function send(message: ToWorker, sent: () => void = () => {}): void {
  // Without a channel, the process is about to end.
  process.send?.(message, undefined, undefined, sent);
}

/** The task as its handler sees it. Its functions are called in the worker, and each returns a promise. */
function runningTask(fields: Readonly<Record<string, unknown>>, functions: readonly string[]): RunningTask {
  const abort = new AbortController();
  const task: Record<string, unknown> = { ...fields, signal: abort.signal, log: logger() };
  const calls: PromiseWithResolvers[] = [];
  for (const name of functions) {
    task[name] = (...args: unknown[]) =>
      new Promise((resolve, reject) => {
        send({ kind: 'call', call: calls.push({ resolve, reject }) - 1, name, args });
      });
  }
  process.on('message', (message: ToChild) => {
    switch (message.kind) {
      case 'run':
        return;
      case 'abort':
        send({ kind: 'aborted' });
        return abort.abort(unpackError(message.reason));
      case 'returned':
        task.checkpoint = message.checkpoint;
        return calls[message.call]?.resolve(message.value);
      case 'threw':
        return calls[message.call]?.reject(unpackError(message.thrown));
    }
  });
  return task as unknown as RunningTask;
}

interface PromiseWithResolvers {
  resolve(value: unknown): void;
  reject(thrown: unknown): void;
}

function logger(): Logger {
  const write = (level: (typeof LOG_LEVELS)[number]) => (fields: object, text: string) => {
    try {
      send({ kind: 'log', level, fields, message: text });
    } catch {
      // A field cannot be sent, for example a function.
      send({ kind: 'log', level, fields: {}, message: text });
    }
  };
  return Object.fromEntries(LOG_LEVELS.map((level) => [level, write(level)])) as unknown as Logger;
}

/** This process ends when its worker ends, and only the worker decides when a signal to all processes ends its tasks. */
function stayWithWorker(): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  process.once('disconnect', endGroup);
  // A handler that blocks the event loop keeps this process from noticing that the channel is closed, but not a thread.
  const watch = `setInterval(() => process.ppid === ${process.ppid} || (${endGroup})(), 500);`;
  new Worker(watch, { eval: true, execArgv: [], stdout: false, stderr: false }).unref();
}

/** Ends this process and the programs that it started. */
function endGroup(): void {
  process.kill(process.platform === 'win32' ? process.pid : -process.pid, 'SIGKILL');
}
