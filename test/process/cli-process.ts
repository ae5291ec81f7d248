import { type ChildProcess, fork, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
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

/**
 * Runs commands where no process must be started for each, which takes longer than most commands. One after another. It ends with the
 * tests, which do not wait for it.
 */
class SharedProcess {
  readonly #start: () => ChildProcess;
  #child: Promise<ChildProcess> | undefined;
  #turn: Promise<unknown> = Promise.resolve();
  /** What its terminal has shown of the command that runs, if it has one. */
  #shown = '';
  #heard = () => {};

  constructor(start: () => ChildProcess) {
    this.#start = start;
  }

  run(args: readonly string[], cwd: string, env: StartOptions['env']): Promise<Ended> {
    const run = this.#turn.then(async () => {
      this.#child ??= this.#started();
      const child = await this.#child;
      this.#shown = '';
      child.send({ args, cwd, env: environment(cwd, env) });
      const { leftOpen, ...ended } = await this.#answerOf(child);
      if (leftOpen.length > 0) throw new Error(`holdfast ${args.join(' ')} left open: ${leftOpen.join(', ')}`);
      return child.stdout ? { ...ended, stdout: await this.#shownOf() } : ended;
    });
    this.#turn = run.catch(() => {});
    return run;
  }

  async kill(): Promise<void> {
    (await this.#child)?.kill('SIGKILL');
  }

  async #started(): Promise<ChildProcess> {
    const child = this.#start();
    child.stdout?.on('data', (chunk: Buffer) => {
      this.#shown += chunk.toString();
      this.#heard();
    });
    await once(child, 'message');
    child.once('exit', () => {
      this.#child = undefined;
      if (child.listenerCount('error') > 0) child.emit('error', new Error('The process of the commands has ended.'));
    });
    child.unref();
    child.channel?.unref();
    for (const stream of [child.stdin, child.stdout]) (stream as Socket | null)?.unref();
    return child;
  }

  /** Nobody types anything: if a command asks, its input has ended. */
  async #answerOf(child: ChildProcess): Promise<Answer> {
    for (;;) {
      const [message] = (await once(child, 'message')) as [Answer | 'reads'];
      if (message !== 'reads') return message;
      child.stdin?.write(END_OF_INPUT);
    }
  }

  async #shownOf(): Promise<string> {
    while (!this.#shown.includes(COMMAND_ENDED)) {
      await new Promise<void>((resolve) => {
        this.#heard = resolve;
      });
    }
    return this.#shown.slice(0, this.#shown.indexOf(COMMAND_ENDED));
  }
}

/** What a person types to end the input of a terminal. */
const END_OF_INPUT = '\u0004';
/** What the shared process prints on its terminal after each command. */
const COMMAND_ENDED = '[the command has ended]';

const withPipes = new SharedProcess(() => fork(SHARED_PROCESS, { execArgv: ['--no-warnings'] }));

const onTerminal = new SharedProcess(() => {
  const [program, ...words] = ON_TERMINAL as [string, ...string[]];
  return spawn(program, [...words, process.execPath, '--no-warnings', SHARED_PROCESS, `'${COMMAND_ENDED}'`], {
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  });
});

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
  /** Shared processes with a command that has not ended. */
  readonly #running = new Set<SharedProcess>();

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
  async run(...args: readonly string[]): Promise<Ended> {
    const ended = await this.#runIn(withPipes, args);
    checkDocuments(ended.stdout);
    return ended;
  }

  /** As `run`, in a shared process on a terminal, where nobody types anything. `stdout` is what the terminal shows. */
  runOnTerminal(...args: readonly string[]): Promise<Ended> {
    return this.#runIn(onTerminal, args);
  }

  async #runIn(shared: SharedProcess, args: readonly string[]): Promise<Ended> {
    this.#running.add(shared);
    const ended = await shared.run(args, this.folder, this.env);
    this.#running.delete(shared);
    return ended;
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
    for (const shared of this.#running) await shared.kill();
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
