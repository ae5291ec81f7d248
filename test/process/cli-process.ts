import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { test as base } from 'vitest';
import { checkDocuments } from './documents.ts';

const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));
const SHARED_PROCESS = fileURLToPath(new URL('shared-process.mjs', import.meta.url));

export interface Ended {
  /** The exit code, or 128 + n for signal n, as a shell shows it. */
  readonly exit: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly uid?: number;
  /** Before the program: `strace …`. */
  readonly under?: readonly string[];
  /** Another installation's command. */
  readonly command?: string;
}

/** For `under`: stdin, stdout and stderr are a terminal. What it shows is on stdout. */
export const ON_TERMINAL = ['sh', '-c', 'exec script -qec "$*" /dev/null', 'sh'];

/** A real `holdfast` process. Nobody sleeps: one waits for what it says, or for its end. */
export class HoldfastProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  #stdout = '';
  #stderr = '';
  #over = false;
  #heard = () => {};

  constructor(args: readonly string[], cwd: string, options: StartOptions = {}) {
    const [program, ...rest] = [...(options.under ?? []), process.execPath, options.command ?? COMMAND, ...args] as [
      string,
      ...string[],
    ];
    this.child = spawn(program, rest, {
      cwd: options.cwd ?? cwd,
      env: environment(cwd, options.env),
      stdio: [options.under === ON_TERMINAL ? 'pipe' : 'ignore', 'pipe', 'pipe'],
      ...(options.uid !== undefined && { uid: options.uid }),
    });
    this.child.stdout?.on('data', (chunk: Buffer) => {
      this.#stdout += chunk.toString();
      this.#heard();
    });
    this.child.stderr?.on('data', (chunk: Buffer) => {
      this.#stderr += chunk.toString();
      this.#heard();
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (code, signal) => {
        this.#over = true;
        this.#heard();
        resolve({ exit: code ?? 128 + numberOf(signal), stdout: this.#stdout, stderr: this.#stderr });
      });
    });
  }

  get pid(): number {
    return this.child.pid as number;
  }

  /** What it has said on stdout so far. */
  get stdout(): string {
    return this.#stdout;
  }

  /** When it has said this, on stdout or stderr. */
  async says(pattern: RegExp | string): Promise<void> {
    const said = () =>
      typeof pattern === 'string'
        ? `${this.#stdout}\n${this.#stderr}`.includes(pattern)
        : pattern.test(`${this.#stdout}\n${this.#stderr}`);
    while (!said()) {
      if (this.#over) throw new Error(`It ended without saying ${pattern}:\n${this.#stdout}\n${this.#stderr}`);
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
  }

  /** Types this on its terminal. */
  type(text: string): void {
    this.child.stdin?.write(text);
  }

  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

function numberOf(signal: NodeJS.Signals | null): number {
  return { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGPIPE: 13, SIGTERM: 15 }[signal as 'SIGHUP'] ?? 0;
}

/** What a command did in the process that the commands of a test file share. */
interface Answer extends Ended {
  readonly leftOpen: readonly string[];
}

let sharedProcess: Promise<ChildProcess> | undefined;
let turn: Promise<unknown> = Promise.resolve();

/** Starts the shared process. The tests end without waiting for it, and it ends with them. */
async function startSharedProcess(): Promise<ChildProcess> {
  const child = fork(SHARED_PROCESS, { execArgv: ['--no-warnings'] });
  await once(child, 'message');
  child.once('exit', () => {
    sharedProcess = undefined;
    if (child.listenerCount('error') > 0) child.emit('error', new Error('The process of the commands has ended.'));
  });
  child.unref();
  child.channel?.unref();
  return child;
}

/** Runs a command where no process must be started for it, which takes longer than most commands. One after another. */
function runShared(args: readonly string[], cwd: string, env: StartOptions['env']): Promise<Ended> {
  const run = turn.then(async () => {
    sharedProcess ??= startSharedProcess();
    const child = await sharedProcess;
    child.send({ args, cwd, env: environment(cwd, env) });
    const [{ leftOpen, ...ended }] = (await once(child, 'message')) as [Answer];
    checkDocuments(ended.stdout);
    if (leftOpen.length > 0) throw new Error(`holdfast ${args.join(' ')} left open: ${leftOpen.join(', ')}`);
    return ended;
  });
  turn = run.catch(() => {});
  return run;
}

/** Only what the tests name: a store or a colour of the person who runs them must not shine through. */
function environment(home: string, more: StartOptions['env'] = {}): NodeJS.ProcessEnv {
  const { PATH } = process.env;
  const base = { PATH, HOME: home, LANG: 'C.UTF-8', TMPDIR: tmpdir() };
  return Object.fromEntries(Object.entries({ ...base, ...more }).filter(([, value]) => value !== undefined));
}

/** A folder with a project's store in it, and the processes that were started there. */
export class Project {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-cli-'));
  /** Variables of all its processes. */
  env: StartOptions['env'] = {};
  readonly #processes: HoldfastProcess[] = [];
  /** Commands in the shared process that have not ended. */
  #running = 0;

  constructor() {
    mkdirSync(join(this.folder, '.holdfast'));
  }

  get store(): string {
    return this.path('.holdfast/holdfast.db');
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, text: string, mode = 0o644): string {
    writeFileSync(this.path(name), text, { mode });
    return this.path(name);
  }

  /** A shell script that can be run as `./name`. */
  script(name: string, ...lines: readonly string[]): string {
    return this.write(name, ['#!/bin/sh', ...lines, ''].join('\n'), 0o755);
  }

  start(args: readonly string[], options: StartOptions = {}): HoldfastProcess {
    const started = new HoldfastProcess(args, this.folder, { ...options, env: { ...this.env, ...options.env } });
    this.#processes.push(started);
    return started;
  }

  /** Runs it to its end, in a process that the commands of a test file share: for what a command prints and does. */
  run(...args: readonly string[]): Promise<Ended> {
    this.#running += 1;
    return runShared(args, this.folder, this.env).finally(() => {
      this.#running -= 1;
    });
  }

  /** Runs it with --json, and reads the one document that it must print. */
  async json<T = Record<string, never>>(
    command: string,
    ...args: readonly string[]
  ): Promise<{ exit: number; document: T }> {
    const { exit, stdout } = await this.run(command, '--json', ...args);
    const lines = stdout.split('\n').filter((line) => line !== '');
    if (lines.length !== 1)
      throw new Error(`${command} ${args.join(' ')} printed ${lines.length} lines on stdout:\n${stdout}`);
    return { exit, document: JSON.parse(lines[0] as string) as T };
  }

  async remove(): Promise<void> {
    // The test has given up a command, which the commands of other tests must not wait for.
    if (this.#running > 0) (await sharedProcess)?.kill('SIGKILL');
    for (const started of this.#processes) started.kill('SIGKILL');
    await Promise.all(this.#processes.map(({ ended }) => ended.catch(() => undefined)));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A test with a project of its own, so that several may run at once. */
export const test = base.extend<{ readonly project: Project }>({
  // biome-ignore lint/correctness/noEmptyPattern: Vitest reads the names of other fixtures from this pattern
  project: async ({}, use) => {
    const project = new Project();
    await use(project);
    await project.remove();
  },
});
