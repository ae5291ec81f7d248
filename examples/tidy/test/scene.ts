import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DurationInput, Task } from 'holdfast';
import { sqlite } from 'holdfast/sqlite';
import { openTestHoldfast, type TestHoldfast } from 'holdfast/testing';
import { test as base } from 'vitest';
import { keyOf, type Move } from '../plan.js';
import { fileMove } from '../queue.js';
import { tidy } from '../tidy.js';

const MAIN = fileURLToPath(new URL('../main.js', import.meta.url));
const HOLDFAST = fileURLToPath(new URL('cli/main.js', import.meta.resolve('holdfast')));

export interface Ended {
  /** Null where a signal ended it. */
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder to tidy, with its queue, real mounts and real processes; all of them are gone after the test. */
export class Scene {
  readonly folder = mkdtempSync(join(tmpdir(), 'holdfast-tidy-'));
  readonly #mounts: string[] = [];
  readonly #kits: TestHoldfast[] = [];
  readonly #children: ChildProcess[] = [];

  path(name: string): string {
    return join(this.folder, name);
  }

  write(name: string, content: string): string {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content);
    return this.path(name);
  }

  read(name: string): string | undefined {
    return existsSync(this.path(name)) ? readFileSync(this.path(name), 'utf8') : undefined;
  }

  /** A file that is to be moved, and the move. */
  move(name: string, to = `done/${name}`): Move {
    return { from: this.write(`inbox/${name}`, `content of ${name}`), to: this.path(to) };
  }

  /** What is mounted on cannot be removed: EBUSY. @returns what ends that. */
  lock(name: string): () => void {
    const inside = this.write(`locks/${name.replaceAll('/', '-')}`, 'content of the lock');
    return this.mount(['--bind', inside, this.path(name)]);
  }

  /** @returns what unmounts it. */
  mount(args: readonly string[]): () => void {
    if (process.getuid?.() !== 0) throw new Error('These tests mount file systems and change users: run them as root.');
    const target = args.at(-1) as string;
    execFileSync('mount', args);
    this.#mounts.push(target);
    return () => {
      execFileSync('umount', [target]);
      this.#mounts.splice(this.#mounts.indexOf(target), 1);
    };
  }

  /** The queue on a clock that stands still until it is moved. Only runs move files: its own worker takes nothing. */
  async queue({ smart = true } = {}): Promise<Queue> {
    const kit = await openTestHoldfast({
      store: sqlite(this.path('tidy.db')),
      tasks: [fileMove({ smart })],
      worker: { only: [] },
    });
    this.#kits.push(kit);
    return new Queue(kit);
  }

  /** Starts the program. `under`: what runs it, such as strace. */
  start(args: readonly string[], under: readonly string[] = []): Promise<Ended> {
    return this.#start([...under, process.execPath, MAIN, ...args]);
  }

  /** Starts the command line of Holdfast. */
  startHoldfast(args: readonly string[]): Promise<Ended> {
    return this.#start([process.execPath, HOLDFAST, ...args]);
  }

  #start(command: readonly string[]): Promise<Ended> {
    const [program, ...rest] = command as [string, ...string[]];
    const child = spawn(program, rest, { cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe'] });
    this.#children.push(child);
    return endOf(child);
  }

  async clear(): Promise<void> {
    for (const child of this.#children) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    }
    for (const kit of this.#kits) await kit.close();
    for (const target of this.#mounts.toReversed()) execFileSync('umount', [target]);
    rmSync(this.folder, { recursive: true });
  }
}

async function endOf(child: ChildProcess): Promise<Ended> {
  const said = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]?.on('data', (chunk: Buffer) => {
      said[stream] += chunk.toString();
    });
  }
  const [exit] = (await once(child, 'close')) as [number | null];
  return { exit, ...said };
}

/** What a test asks of a queue whose clock it moves. */
export class Queue {
  readonly kit: TestHoldfast;

  constructor(kit: TestHoldfast) {
    this.kit = kit;
  }

  run(...moves: readonly Move[]): ReturnType<typeof tidy> {
    return tidy(this.kit.holdfast, moves);
  }

  later(time: DurationInput): Promise<void> {
    return this.kit.advance(time);
  }

  task(move: Move): Promise<Task> {
    return this.kit.holdfast.get(keyOf(move));
  }

  /** Minutes until its next try. */
  async wait(move: Move): Promise<number | undefined> {
    const { dueAt } = await this.task(move);
    return dueAt && (dueAt.getTime() - this.kit.clock.now()) / 60_000;
  }

  /** Runs again and again, each time when the move is due, until it waits no more. @returns the waits, in minutes. */
  async untilOver(move: Move): Promise<readonly number[]> {
    const waits: number[] = [];
    await this.run(move);
    for (let wait = await this.wait(move); wait !== undefined; wait = await this.wait(move)) {
      waits.push(wait);
      await this.later(`${wait}m`);
      await this.run();
    }
    return waits;
  }
}

export const test = base.extend<{ scene: Scene }>({
  // biome-ignore lint/correctness/noEmptyPattern: what it depends on is read from the pattern
  scene: async ({}, use) => {
    const scene = new Scene();
    await use(scene);
    await scene.clear();
  },
});
