import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, expect } from 'vitest';

const PROGRAM = 'test/process/program.mjs';

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** A process of the program, and what it says. */
export class Child {
  readonly process: ChildProcess;
  readonly said: unknown[] = [];
  /** When it has ended and all that it said was read. */
  readonly ended: Promise<Ended>;
  #listeners = new Set<() => void>();
  #hasEnded = false;

  constructor(command: string, args: readonly string[]) {
    this.process = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    const lines = createInterface({ input: this.process.stdout as NodeJS.ReadableStream });
    lines.on('line', (line) => {
      this.said.push(JSON.parse(line));
      for (const look of this.#listeners) look();
    });
    this.ended = new Promise((resolve) => {
      this.process.on('close', (code, signal) => {
        this.#hasEnded = true;
        for (const look of this.#listeners) look();
        resolve({ code, signal });
      });
    });
  }

  /** The first thing it said, or will say, that has all of this. */
  says<T = Record<string, unknown>>(wanted: unknown): Promise<T> {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.said.find((one) => matches(one, wanted));
        if (found === undefined && !this.#hasEnded) return;
        this.#listeners.delete(look);
        if (found !== undefined) resolve(found as T);
        else reject(new Error(`It ended without saying ${JSON.stringify(wanted)}, but ${JSON.stringify(this.said)}.`));
      };
      this.#listeners.add(look);
      look();
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal);
  }

  /** Waits until it has ended by itself, well. */
  async endsWell(): Promise<unknown[]> {
    expect({ ...(await this.ended), said: this.said }).toEqual({ code: 0, signal: null, said: this.said });
    return this.said;
  }
}

function matches(one: unknown, wanted: unknown): boolean {
  if (typeof wanted !== 'object' || wanted === null) return one === wanted;
  if (typeof one !== 'object' || one === null) return false;
  return Object.entries(wanted).every(
    ([key, value]) => key in one && matches((one as Record<string, unknown>)[key], value),
  );
}

/** Starts programs for the tests of a file, and kills what is left of them after each. */
export function usePrograms() {
  let children: Child[] = [];
  afterEach(async () => {
    const left = children;
    children = [];
    for (const child of left) child.signal('SIGKILL');
    await Promise.all(left.map(({ ended }) => ended));
  });
  const keep = (child: Child) => {
    children.push(child);
    return child;
  };
  return {
    run: (mode: string, path: string, options: object = {}) =>
      keep(new Child(process.execPath, [PROGRAM, mode, path, JSON.stringify(options)])),
    /** Starts it through another command. */
    runIn: (command: string, args: readonly string[]) => keep(new Child(command, args)),
    /** What `run` starts, for another command to start. */
    command: (mode: string, path: string, options: object = {}) => [
      process.execPath,
      PROGRAM,
      mode,
      path,
      JSON.stringify(options),
    ],
  };
}

/** A folder for a test's files that anybody may use, removed when the test ends. */
export function useFolder(): () => string {
  let folder: string | undefined;
  afterEach(() => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
    folder = undefined;
  });
  return () => {
    folder ??= mkdtempSync(join(tmpdir(), 'holdfast-process-'));
    return folder;
  };
}
