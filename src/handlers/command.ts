import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { isAbsolute, resolve } from 'node:path';
import { RE2JS, RE2JSException } from 're2js';
import type { Milliseconds } from '../duration.ts';
import { InvalidInputError } from '../errors.ts';
import { REASONS, type Reason } from '../failure/classify/reasons.ts';
import { askedInWords } from '../failure/classify/spoken-wait.ts';
import { reasonOfExit, reasonOfSignal } from '../failure/exits.ts';
import type { FailureKind } from '../failure/outcome.ts';
import { type Failed, failedAt, RateLimited } from '../failure/signals.ts';
import type { Logger } from '../log.ts';
import { isRecord, readMember, refuseUnknown, wholeNumber } from '../options.ts';
import { show } from '../show.ts';
import type { Json } from '../task.ts';
import { crashOf } from './crash.ts';
import { endLeftRunning, endLost, type LeftRunning, startedAs, TAG, tagOf } from './left-running.ts';
import { groupLives, LINGER, POSIX, signalGroup, within } from './process-group.ts';
import { isProgram } from './program.ts';

/**
 * An exit code from 0 to 255, or the first and last of a range. A command that a signal ended counts as 128 + its number,
 * as in a shell.
 */
export type ExitRange = number | readonly [first: number, last: number];

/** A stored command of `holdfast run`. It comes from outside, so `checkCommand` makes it. */
export interface CommandInput {
  /** The program and its arguments, which are passed on unchanged. With `shell` exactly one string: the script. */
  readonly argv: readonly string[];
  /**
   * The absolute path at which `argv[0]` was found when the command was stored. It is started from there, or, if it is gone, from the
   * PATH of its worker. A worker that finds neither is at fault, and the task waits.
   */
  readonly program?: string;
  /** Hands `argv[0]` to `/bin/sh -c`. Default: false, and no shell ever sees the arguments. */
  readonly shell?: boolean;
  /** Where the command runs; absolute. */
  readonly cwd: string;
  /** Only named variables are stored. They are added to the worker's own environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** A file that the command reads as its standard input, relative to `cwd`. Default: nothing. */
  readonly stdin?: string;
  /** Exit codes that mean success. Default: 0 alone, so name 0 too when adding one. */
  readonly successOn?: readonly ExitRange[];
  /** Exit codes that are transient, whatever other evidence there is. */
  readonly retryOn?: readonly ExitRange[];
  /** Exit codes that are permanent. Wins over `retryOn`, so that all but one can be retried. */
  readonly noRetryOn?: readonly ExitRange[];
  /**
   * RE2 patterns for the last 8 KiB of stderr, without colours; `^` and `$` match at every line. Permanent wins over a rate limit, and
   * that over a retry.
   */
  readonly retryIfStderr?: string;
  readonly rateLimitedIfStderr?: string;
  readonly permanentIfStderr?: string;
  /** From SIGTERM to SIGKILL. Default: 10 s; at most one hour. */
  readonly killAfterMs?: Milliseconds;
}

export interface CommandResult {
  readonly exit: number;
  /** The last 4 KiB, unless the output was shown live. */
  readonly stdout?: string;
}

/** The task of a command, and how the command and its worker communicate while it runs. */
export interface CommandTask {
  readonly id: number;
  readonly attempt: number;
  readonly execution: number;
  readonly maxAttempts?: number;
  readonly idempotencyKey?: string;
  readonly lastError?: string;
  readonly deadline?: Date;
  readonly key?: string;
  readonly submittedAt?: Date;
  readonly signal: AbortSignal;
  readonly log?: Pick<Logger, 'info' | 'warn'>;
  readonly checkpoint?: Json | undefined;
  /** Without it a command that outlives its worker is found by its environment only. */
  saveCheckpoint?(value: unknown): Promise<void>;
  heartbeat(): void;
}

export interface CommandOptions {
  /** What every command inherits, usually the environment of the process. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  /**
   * Shows output as it comes. Without it the end of stdout is kept for the result; the end of stderr is kept either way.
   * If it throws, the command is stopped, and the execution fails with the same error.
   */
  readonly write?: (stream: 'stdout' | 'stderr', chunk: Buffer) => void;
  /** Called with each execution, and then with all of its output, to keep it somewhere. It must not throw. */
  readonly keep?: (task: CommandTask) => (stream: 'stdout' | 'stderr', chunk: Buffer) => void;
  /** Cuts `killAfterMs` short in every command that is being stopped: somebody pressed Ctrl-C again. */
  readonly kill?: AbortSignal;
}

interface ExitMeaning {
  readonly kind: FailureKind;
  readonly reason: Reason;
}

const EXIT: ExitMeaning = { kind: 'unknown', reason: 'process.exit' };

/**
 * Templates for the last lines of stderr, for commands whose exit code has no meaning. Mostly the texts of the C library (curl and Go
 * have others). In other languages nothing matches, and the reason stays `process.exit`.
 */
const BY_STDERR: readonly (readonly [RegExp, FailureKind, Reason])[] = [
  [ends('connection refused'), 'transient', 'net.refused'],
  [ends('could not resolve host(?:name|: [^ ]+)?|temporary failure in name resolution'), 'transient', 'net.dns'],
  [ends('name or service not known|nodename nor servname provided, or not known|no such host'), 'transient', 'net.dns'],
  [ends('no route to host|network is unreachable|host is down'), 'transient', 'net.unreachable'],
  [ends('connection timed out|operation timed out|i/o timeout'), 'transient', 'net.timeout'],
  [ends('connection reset by peer'), 'transient', 'net.reset'],
  [ends("could(?:n't| not) connect to server"), 'transient', 'net.failed'],
  [/^curl: \(28\) /, 'transient', 'net.timeout'],
  [ends('no space left on device|disk quota exceeded'), 'transient', 'fs.no_space'],
  [/\bfork: (?:retry: )?resource temporarily unavailable$/i, 'transient', 'resource.limit'],
  [ends('text file busy|device or resource busy|resource temporarily unavailable'), 'transient', 'fs.locked'],
  [ends(String.raw`permission denied \(publickey[^()]*\)`), 'permanent', 'auth.invalid'],
  [/^Host key verification failed\.$/, 'permanent', 'tls.certificate'],
  // How curl, wget, yt-dlp, npm, git and Python's clients report the status, and what Docker, gh, rclone, gcloud, aws and az say.
  [
    /\b(?:http(?:\/[\d.]+)?(?: error)?|error(?: code)?|status(?: code)?|returned error|server returned|got|code)[ :=]{1,2}\(?E?429\b|^E429\b/i,
    'rate_limited',
    'throttled',
  ],
  [
    /\b429:? (?:client error: )?too many requests\b|\btoo ?many ?requests(?:exception)?\b|^@ERROR: max connections \(\d+\) reached\b/i,
    'rate_limited',
    'throttled',
  ],
  [
    /\brate.?limit(?:ing)? ?(?:(?:was|is|has been) )?(?:exceeded|reached|hit)\b|\b(?:exceeded|reached|hit) (?:[\w-]+ ){0,4}rate.?limit|\brate.?limited\b|\bslow down\b/i,
    'rate_limited',
    'throttled',
  ],
  [
    /\b(?:throttling\w*|throttled|RequestLimitExceeded|SlowDown|ProvisionedThroughputExceeded\w*|RESOURCE_?EXHAUSTED)\b|\bquota exceeded\b/i,
    'rate_limited',
    'throttled',
  ],
];

/**
 * A phrase that is the whole line, or comes after `: `, `[Errno 111] ` or `curl: (6) ` at its end, where programs put the
 * system's words. What may follow is a dot, rsync's `(111)` or the path that Python adds. Prose that mentions the phrase
 * does not match.
 */
function ends(phrase: string): RegExp {
  return new RegExp(String.raw`(?:^|: |\] |^curl: \(\d+\) )(?:${phrase})(?: \(\d+\)|: '[^']*')?\.?$`, 'i');
}

/** How many of the last lines are compared with the templates. Earlier lines do not say why the command ended. */
const LINES = 10;

const STDERR_KEPT = 8 * 1024;
const STDOUT_KEPT = 4 * 1024;

const KILL_AFTER: Milliseconds = 10_000;

/**
 * The handler of shell commands. An execution succeeds with the exit code, or fails with a signal that says how it ended,
 * with a reason from the exit code, the signal or the last lines of stderr; a rate limit with the wait that they name. An error of the system that says nothing of the
 * command, such as too many open files, is thrown as it came.
 *
 * Output counts as a sign of life, so `task.heartbeat()` is called for it, at most once a second: the time limit of an
 * execution ends a command that has fallen silent, and a chatty one may take as long as it needs (`deadline` bounds it).
 *
 * When `task.signal` fires, the command's process group is stopped and the promise rejects with the signal's reason once
 * the group is gone. Processes that left the group (daemons, by setsid) are out of reach.
 *
 * A command may outlive a worker that was killed. Which processes an execution started is saved as the task's checkpoint, and the next
 * execution ends what is left of them before it starts anything (`left-running.ts`).
 */
export function command(options: CommandOptions): (input: CommandInput, task: CommandTask) => Promise<CommandResult> {
  return async (input, task) => {
    task.signal.throwIfAborted();
    const tails = { stdout: new Tail(options.write ? 0 : STDOUT_KEPT), stderr: new Tail(STDERR_KEPT) };
    const beat = throttledHeartbeat(task);
    const keep = options.keep?.(task);
    const hear: Hear = (stream, chunk) => {
      tails[stream].add(chunk);
      beat();
      keep?.(stream, chunk);
      options.write?.(stream, chunk);
    };
    await endLeftRunning(task, input.killAfterMs ?? KILL_AFTER);
    const running = await launch(input, environment(options.environment, input, task), task.signal, hear);

    record(running, task);
    const stop = AbortSignal.any([task.signal, running.broken]);
    const end = await finish(running, { stop, killAfter: input.killAfterMs ?? KILL_AFTER, kill: options.kill });
    if (end === undefined) throw stop.reason;
    running.broken.throwIfAborted();
    if (!includes(input.successOn ?? [0], end.exit)) throw failure(end, input, tails.stderr.text());
    return options.write ? { exit: end.exit } : { exit: end.exit, stdout: tails.stdout.text().replaceAll('\0', '␀') };
  };
}

/** Ends the processes of a command that was lost with its worker, if the task ended because of this loss. */
export async function endLostCommand(input: CommandInput, lost: LeftRunning): Promise<void> {
  await endLost(lost, input.killAfterMs ?? KILL_AFTER);
}

/**
 * Reads `'1,75,124-127'`.
 * @throws InvalidInputError naming the piece that is neither an exit code nor a range.
 */
export function parseExitCodes(text: string): ExitRange[] {
  return text.split(',').map((piece) => {
    const [, first, last] = /^\s*(\d{1,3})\s*(?:-\s*(\d{1,3})\s*)?$/.exec(piece) ?? [];
    const range: ExitRange = last === undefined ? Number(first) : [Number(first), Number(last)];
    if (first === undefined || !isExitRange(range)) {
      throw new InvalidInputError(
        `Exit codes are written like '1,75,124-127', each from 0 to 255, got ${show(piece)} in ${show(text)}.`,
      );
    }
    return range;
  });
}

/**
 * Parses a command that is stored or will be. Everything that can be refused before it runs is refused here.
 * @throws InvalidInputError naming the member and what is wrong with it.
 */
export function checkCommand(input: unknown): CommandInput {
  refuseUnknown(input, Object.keys(READ), 'A command');
  const given = input as Readonly<Record<string, unknown>>;
  const members = Object.entries(READ)
    .filter(([name]) => given[name] !== undefined || name === 'argv' || name === 'cwd')
    .map(([name, read]) => [name, readMember(name, () => read(given[name], name))]);
  const parsed = Object.fromEntries(members) as CommandInput;
  if (parsed.shell && parsed.argv.length !== 1) {
    throw new InvalidInputError(`With shell, argv must be one string, the script, got ${parsed.argv.length} strings.`);
  }
  return parsed;
}

// Parsing

type Complete = Required<CommandInput>;

const READ: { readonly [K in keyof Complete]: (value: unknown, name: string) => Complete[K] } = {
  argv: readArgv,
  program: readPath,
  shell: readFlag,
  cwd: readPath,
  env: readEnv,
  stdin: readText,
  successOn: readSuccess,
  retryOn: readRanges,
  noRetryOn: readRanges,
  retryIfStderr: readPattern,
  rateLimitedIfStderr: readPattern,
  permanentIfStderr: readPattern,
  killAfterMs: readKillAfter,
};

function readArgv(value: unknown, name: string): readonly string[] {
  if (!Array.isArray(value) || value.length === 0) {
    throw new InvalidInputError(`${name} must be a list of a program and its arguments, got ${show(value)}.`);
  }
  // Not `map`, which would skip the holes of a sparse list. Arguments may be empty; a program may not.
  return Array.from(value, (each, i) => (i === 0 ? readText(each, `${name}[0]`) : readString(each, `${name}[${i}]`)));
}

function readFlag(value: unknown, name: string): boolean {
  if (typeof value !== 'boolean') throw new InvalidInputError(`${name} must be true or false, got ${show(value)}.`);
  return value;
}

function readPath(value: unknown, name: string): string {
  const text = readText(value, name);
  if (!isAbsolute(text)) throw new InvalidInputError(`${name} must be an absolute path, got ${show(text)}.`);
  return text;
}

function readEnv(value: unknown, name: string): Readonly<Record<string, string>> {
  if (!isRecord(value)) throw new InvalidInputError(`${name} must be an object of strings, got ${show(value)}.`);
  const entries = Object.entries(value).map(([variable, text]) => {
    if (variable === '' || variable.includes('=') || variable.includes('\0')) {
      throw new InvalidInputError(`${name} has a variable named ${show(variable)}; a name has no '=' and no NUL byte.`);
    }
    return [variable, readString(text, `${name}.${variable}`)];
  });
  return Object.fromEntries(entries);
}

function readText(value: unknown, name: string): string {
  const text = readString(value, name);
  if (text === '') throw new InvalidInputError(`${name} must not be empty.`);
  return text;
}

function readString(value: unknown, name: string): string {
  if (typeof value !== 'string') throw new InvalidInputError(`${name} must be a string, got ${show(value)}.`);
  if (value.includes('\0')) {
    throw new InvalidInputError(`${name} has a NUL byte at position ${value.indexOf('\0')}, which no program accepts.`);
  }
  return value;
}

function readSuccess(value: unknown, name: string): readonly ExitRange[] {
  const ranges = readRanges(value, name);
  if (ranges.length === 0)
    throw new InvalidInputError(`${name} must have at least one exit code, or no command could succeed.`);
  return ranges;
}

function readRanges(value: unknown, name: string): readonly ExitRange[] {
  if (!Array.isArray(value)) {
    throw new InvalidInputError(
      `${name} must be a list of exit codes and ranges such as [1, [124, 127]], got ${show(value)}.`,
    );
  }
  return Array.from(value, (each: unknown, i) => {
    if (!isExitRange(each)) {
      throw new InvalidInputError(
        `${name}[${i}] must be an exit code from 0 to 255 or a range of them, got ${show(each)}.`,
      );
    }
    return each;
  });
}

/** A match costs the size of the compiled pattern times the 8 KiB of stderr: with this one half a second at the worst. */
const LARGEST_PATTERN = 2_000;

function readPattern(value: unknown, name: string): string {
  const text = readText(value, name);
  if (text.length > 1_000)
    throw new InvalidInputError(`${name} must have at most 1,000 characters, got ${text.length}.`);
  try {
    const size = compile(text).programSize();
    if (size > LARGEST_PATTERN) {
      throw new InvalidInputError(`${name} is too large when its repetitions are written out: ${show(text)}.`);
    }
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    const hint = 'Patterns use RE2, which has no look-around and no back-references.';
    throw new InvalidInputError(`${name} is not a regular expression: ${error.message}. ${hint}`);
  }
  return text;
}

function readKillAfter(value: unknown, name: string): Milliseconds {
  return wholeNumber(value, name, 0, 3_600_000);
}

function isExitRange(value: unknown): value is ExitRange {
  if (!Array.isArray(value)) return isExitCode(value);
  const [first, last] = value;
  return value.length === 2 && isExitCode(first) && isExitCode(last) && first <= last;
}

function isExitCode(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= 0 && (value as number) <= 255;
}

// Starting

type End = { readonly exit: number; readonly signal?: NodeJS.Signals };

type Hear = (stream: 'stdout' | 'stderr', chunk: Buffer) => void;

interface Running {
  readonly child: ChildProcess;
  /** Also the number of its process group. */
  readonly pid: number;
  /** Rejects with the error of an output listener that threw. */
  readonly broken: AbortSignal;
  readonly exited: Promise<End>;
  /** Set by events, for code that polls. */
  readonly seen: { end?: End; closed: boolean };
}

/** Our variables win. A variable without a value is removed, so that the task in which we run ourselves does not pass its own on. */
function environment(base: CommandOptions['environment'], input: CommandInput, task: CommandTask): NodeJS.ProcessEnv {
  return {
    ...base,
    ...input.env,
    HOLDFAST_TASK_ID: String(task.id),
    HOLDFAST_ATTEMPT: String(task.attempt),
    HOLDFAST_EXECUTION: String(task.execution),
    [TAG]: tagOf(task, task.execution),
    HOLDFAST_MAX_ATTEMPTS: task.maxAttempts?.toString(),
    HOLDFAST_IDEMPOTENCY_KEY: task.idempotencyKey,
    HOLDFAST_LAST_ERROR: task.lastError?.slice(0, 8 * 1024).replaceAll('\0', '␀'),
    HOLDFAST_DEADLINE: task.deadline?.toISOString(),
    HOLDFAST_KEY: task.key?.replaceAll('\0', '␀'),
  };
}

async function launch(input: CommandInput, env: NodeJS.ProcessEnv, signal: AbortSignal, hear: Hear): Promise<Running> {
  const stdin = input.stdin === undefined ? undefined : await openInput(resolve(input.cwd, input.stdin));
  try {
    signal.throwIfAborted();
    return await start(input, env, stdin, hear);
  } finally {
    await stdin?.close();
  }
}

async function openInput(path: string): Promise<FileHandle> {
  const found = await stat(path);
  // Opening a pipe without a writer would wait for ever, and block one of the few file threads.
  if (!found.isFile() && !found.isCharacterDevice()) {
    throw failed(`stdin must be a file, but ${path} is not one.`, { kind: 'permanent', reason: 'fs.invalid' });
  }
  return open(path);
}

async function start(
  input: CommandInput,
  env: NodeJS.ProcessEnv,
  stdin: FileHandle | undefined,
  hear: Hear,
): Promise<Running> {
  const [name, ...args] = input.argv as [string, ...string[]];
  try {
    const found = input.program !== undefined && isProgram(input.program) ? input.program : undefined;
    const child = spawn(found ?? name, args, {
      ...(found !== undefined && { argv0: name }),
      cwd: input.cwd,
      env,
      shell: input.shell ?? false,
      // A session and so a process group of its own: it can be stopped with all its children, and the Ctrl-C meant for us
      // does not reach it before we decide.
      detached: POSIX,
      windowsHide: true,
      stdio: [stdin?.fd ?? 'ignore', 'pipe', 'pipe'],
    });
    // All listeners are added before the first await: when a process ends, Node drops output without a listener.
    const broken = new AbortController();
    for (const stream of ['stdout', 'stderr'] as const) {
      child[stream]?.on('error', (error) => broken.abort(error));
      child[stream]?.on('data', (chunk: Buffer) => {
        try {
          hear(stream, chunk);
        } catch (error) {
          broken.abort(error);
        }
      });
    }
    const seen: Running['seen'] = { closed: false };
    const exited = new Promise<End>((settle) => {
      child.once('exit', (code, signal) => {
        seen.end = signal === null ? { exit: code ?? 0 } : { exit: 128 + constants.signals[signal], signal };
        settle(seen.end);
      });
    });
    child.once('close', () => {
      seen.closed = true;
    });
    await once(child, 'spawn');
    return { child, pid: child.pid as number, broken: broken.signal, exited, seen };
  } catch (error) {
    throw await startFailure(error as NodeJS.ErrnoException, input);
  }
}

async function startFailure(error: NodeJS.ErrnoException, { argv, cwd, program }: CommandInput): Promise<Error> {
  const name = visible(argv[0] as string, 200);
  const { code = '' } = error;
  const startFailed = (kind: FailureKind, reason: Reason, what: string): Failed =>
    failed(`${name} ${what}.`, { kind, reason, code, cause: error });
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    if (!(await isDirectory(cwd))) {
      const what = `was not started: there is no directory ${visible(cwd, 200)}`;
      return startFailed('transient', 'process.cwd_missing', what);
    }
    if (program !== undefined) {
      const what = `was not found. It was ${visible(program, 200)} when the command was recorded`;
      return startFailed('transient', 'process.not_found', what);
    }
  }
  const found = START_FAILURES[code];
  if (found === NOT_FOUND && /\s/.test(argv[0] as string)) {
    const [kind, reason] = NOT_FOUND;
    return startFailed(kind, reason, 'is no program. Give its arguments one by one, or use --shell');
  }
  return found ? startFailed(...found) : error;
}

const NOT_FOUND = [
  'permanent',
  'process.not_found',
  'was not found, or the interpreter in its first line was not found',
] as const;

/** Why a command was not started, by the code of the system's error. */
const START_FAILURES: Readonly<Record<string, readonly [kind: FailureKind, reason: Reason, what: string]>> = {
  ENOENT: NOT_FOUND,
  ENOTDIR: NOT_FOUND,
  EACCES: ['permanent', 'process.not_executable', 'must not be executed, or its folder must not be entered'],
  E2BIG: ['permanent', 'too_large', 'has arguments and an environment that are larger than the system allows'],
  EAGAIN: ['transient', 'resource.limit', 'was not started: the system allows no more processes at the moment'],
};

async function isDirectory(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isDirectory();
  } catch {
    return false;
  }
}

// Running

interface Stopping {
  readonly stop: AbortSignal;
  readonly killAfter: Milliseconds;
  readonly kill: AbortSignal | undefined;
}

/**
 * Waits for the end of the command and of everything that it left in its group. Undefined: it was stopped before it ended.
 *
 *   running ──(exit)──► lingering ──(pipes closed, group empty)────────────────────────────► over
 *      │                    │ 1 s                                                              ▲
 *      └──(stop)──► SIGTERM ◄ ┘ ──(killAfter, or kill)──► SIGKILL ──(reaped; group empty or 1 s)──┘
 *
 * Left-overs are ended too, after a success as well: the next attempt, or the next task, must not meet them. A process that
 * not even SIGKILL ends (it waits for a dead disk) keeps us waiting, because a retry must not start beside it.
 */
async function finish(running: Running, { stop: stopSignal, killAfter, kill }: Stopping): Promise<End | undefined> {
  const { seen, exited } = running;
  const done = new AbortController();
  await Promise.race([exited, aborted(stopSignal, done.signal)]);
  done.abort();
  const own = seen.end;
  const gone = () => seen.end !== undefined && !groupLives(running.pid);
  if (own) await within(LINGER, () => seen.closed && gone());
  if (!gone()) {
    stop(running, 'SIGTERM');
    stop(running, 'SIGCONT'); // A stopped process hears of SIGTERM only when it goes on.
    if (!(await within(killAfter, gone, kill))) {
      stop(running, 'SIGKILL');
      await exited;
      await within(LINGER, gone);
    }
  }
  running.child.stdout?.destroy();
  running.child.stderr?.destroy();
  return own;
}

function stop({ child, pid }: Running, signal: NodeJS.Signals): void {
  if (POSIX) signalGroup(pid, signal);
  else child.kill(signal);
}

/**
 * Saves which processes run for this task. The command does not wait for it: until it is saved, the next execution finds them by the
 * tag in their environment. Where the lease is lost, the signal aborts and the command is stopped.
 */
function record(running: Running, task: CommandTask): void {
  task.saveCheckpoint?.(startedAs(running.pid, task)).catch((error: unknown) => {
    if (running.seen.end === undefined) task.log?.warn({ err: error }, 'Could not save which process runs the command');
  });
}

/** Resolves when the signal aborts. The signal outlives the command, so the listener is removed at `done`. */
function aborted(signal: AbortSignal, done: AbortSignal): Promise<void> {
  return new Promise((settle) => {
    if (signal.aborted) settle();
    else signal.addEventListener('abort', () => settle(), { once: true, signal: done });
  });
}

function throttledHeartbeat(task: CommandTask): () => void {
  let last = Number.NEGATIVE_INFINITY;
  return () => {
    const now = performance.now();
    if (now - last < 1_000) return;
    last = now;
    task.heartbeat();
  };
}

/** The last bytes of a stream of any length. */
class Tail {
  readonly #limit: number;
  #bytes = Buffer.alloc(0);
  #cut = false;

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(chunk: Buffer): void {
    const all = this.#bytes.length + chunk.length;
    this.#cut ||= all > this.#limit;
    this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(Math.max(0, all - this.#limit));
  }

  /** As UTF-8, from the first whole character on. */
  text(): string {
    let from = 0;
    while (this.#cut && from < 3 && ((this.#bytes[from] ?? 0) & 0xc0) === 0x80) from += 1;
    return this.#bytes.toString('utf8', from);
  }
}

// Judging

function failure(end: End, input: CommandInput, stderr: string): Error {
  const text = plain(stderr);
  const lines = text.split('\n').map((line) => line.trim());
  const crash = crashOf(text);
  const lastLines = [...lines.filter((line) => line !== '').slice(-LINES), ...(crash ? [crash.line] : [])];
  const template = recognised(lastLines);
  const byEnd = meaningOf(end);
  const found = byEnd.reason === EXIT.reason ? (template ?? byEnd) : byEnd;
  const kind = asked(end.exit, input, text) ?? found.kind;
  const how = end.signal ? `killed by ${end.signal}` : `exit ${end.exit}`;
  const line = visible((found === template ? template?.line : lastLines.at(-1)) ?? '', 300);
  const message = line === '' ? how : `${how}: ${line}`;
  const code = end.signal ?? end.exit;
  if (kind === 'rate_limited') {
    const wait = askedInWords(lastLines.join('\n'), Date.now());
    return new RateLimited(wait === undefined ? undefined : `${wait}ms`, message, { code });
  }
  // The user's option gives the kind. A reason with another kind would match the wrong rules, so it is dropped.
  const { reason } = kind === found.kind ? found : EXIT;
  const error = failed(message, { kind, reason, code });
  return crash ? Object.assign(error, { stack: [message, ...crash.frames].join('\n') }) : error;
}

/** With the fault of the reason: a full disk or a missing folder is not the task's fault. */
function failed(
  message: string,
  options: ExitMeaning & { readonly code?: string | number; readonly cause?: unknown },
): Failed {
  return failedAt(REASONS[options.reason].fault, message, options);
}

function meaningOf({ exit, signal }: End): ExitMeaning {
  const reason = signal === undefined ? reasonOfExit(exit) : reasonOfSignal(signal);
  return { kind: REASONS[reason].kind, reason };
}

/** The kind that the user's options give to this end. */
function asked(exit: number, input: CommandInput, stderr: string): FailureKind | undefined {
  if (includes(input.noRetryOn ?? [], exit)) return 'permanent';
  if (includes(input.retryOn ?? [], exit)) return 'transient';
  if (input.permanentIfStderr !== undefined && compile(input.permanentIfStderr).test(stderr)) return 'permanent';
  if (input.rateLimitedIfStderr !== undefined && compile(input.rateLimitedIfStderr).test(stderr)) return 'rate_limited';
  if (input.retryIfStderr !== undefined && compile(input.retryIfStderr).test(stderr)) return 'transient';
  return undefined;
}

/** The last line that matches a template. It is also the line to show. */
function recognised(lines: readonly string[]): (ExitMeaning & { readonly line: string }) | undefined {
  for (const line of lines.toReversed()) {
    const template = BY_STDERR.find(([pattern]) => pattern.test(line));
    if (template) return { kind: template[1], reason: template[2], line };
  }
  return undefined;
}

/** Linear in its input whatever the pattern is, so no user can hang the worker. */
function compile(pattern: string): RE2JS {
  return RE2JS.compile(pattern, RE2JS.MULTILINE);
}

function includes(ranges: readonly ExitRange[], exit: number): boolean {
  return ranges.some((range) => (typeof range === 'number' ? range === exit : range[0] <= exit && exit <= range[1]));
}

/** Without colours, and with the carriage returns of progress bars as line ends. */
function plain(text: string): string {
  return text.replace(COLOURS, '').replaceAll(/\r\n?/g, '\n');
}

const COLOURS = new RegExp(`${String.fromCharCode(0x1b)}\\[[0-?]*[ -/]*[@-~]`, 'g');

/** One line of at most `limit` characters, without control characters and direction marks. */
function visible(text: string, limit: number): string {
  const escaped = text
    .replaceAll('\t', ' ')
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu, (character) => {
      const code = character.charCodeAt(0);
      return code > 0xff ? `\\u${code.toString(16)}` : `\\x${code.toString(16).padStart(2, '0')}`;
    });
  const characters = [...escaped];
  return characters.length <= limit ? escaped : `${characters.slice(0, limit - 1).join('')}…`;
}
