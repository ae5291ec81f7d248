import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Receipt, WorkerEvent } from 'holdfast';
import { openTestHoldfast, type TestOptions } from 'holdfast/testing';
import { afterEach } from 'vitest';
import { type RetryConfig, type Run, replayTask } from '../replay.js';
import { type Answer, ReplayService } from '../service.js';
import { enqueueRuns } from '../spool.js';

/** What is to be closed when a test ends, the last one first. */
const closing: (() => unknown)[] = [];

afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

export interface SceneOptions extends TestOptions {
  readonly answers?: Readonly<Record<string, readonly Answer[]>>;
  readonly retry?: RetryConfig;
}

/** A daemon's Holdfast on a virtual clock, one run at a time, before a real service. */
export async function openScene({ answers = {}, retry, ...options }: SceneOptions = {}) {
  const { service, url } = await openService(answers);
  const task = replayTask({ service: url, ...(retry && { retry }) });
  const worker = { concurrency: 1, ...options.worker };
  // Answers take as long as they take: a busy machine is no reason to move the clock on.
  const kit = await openTestHoldfast({ tasks: [task], patienceMs: 20_000, ...options, worker });
  closing.push(() => kit.close());
  return {
    kit,
    service,
    task,
    /** Enqueues a run as the spool does. */
    submit: async (id: string, submitted = '2026-01-01', category = 'web') => {
      const [receipt] = await enqueueRuns(kit.holdfast, task, [runOf(id, submitted, category)]);
      return receipt as Receipt;
    },
    /** After each of its failures: how long it waits for the next attempt. */
    delays: () => kit.events.flatMap(delayAfter),
  };
}

function delayAfter(event: WorkerEvent): number[] {
  return event.kind === 'settled' && event.decision.next === 'scheduled' ? [event.decision.after / 1_000] : [];
}

export function runOf(id: string, submitted: string, category: string): Run {
  return { id, submitted, category, steps: ['open'] };
}

export async function openService(answers: Readonly<Record<string, readonly Answer[]>>) {
  const service = new ReplayService(answers);
  const url = await service.open();
  closing.push(() => service.close());
  return { service, url };
}

/** Resolves when the service has been asked for a run so many times. */
export async function askedFor(service: ReplayService, run: string, times: number): Promise<void> {
  while (service.asked.filter((id) => id === run).length < times) await once(service, 'asked');
}

/** A folder that is removed when the test ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-runs-'));
  closing.push(() => rmSync(folder, { recursive: true }));
  return folder;
}

const DAEMON = fileURLToPath(new URL('../daemon.js', import.meta.url));

/** A daemon of its own process, which is killed when the test ends, and what it says. */
export class Daemon {
  readonly #ended: Promise<unknown>;
  readonly #child: ChildProcess;
  readonly #lines: string[] = [];
  #heard: () => void = () => {};

  constructor(args: readonly string[]) {
    this.#child = spawn(process.execPath, [DAEMON, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
    this.#ended = once(this.#child, 'close');
    createInterface({ input: this.#child.stdout as NodeJS.ReadableStream }).on('line', (line) => {
      this.#lines.push(line);
      this.#heard();
    });
    closing.push(() => this.end('SIGKILL'));
  }

  /** What it said so far of one run. */
  linesOf(run: string): readonly string[] {
    return this.#lines.flatMap((line) => line.split(`Z ${run}: `).slice(1));
  }

  async end(signal: NodeJS.Signals): Promise<unknown> {
    this.#child.kill(signal);
    return this.#ended;
  }

  /** Resolves when it has said a line that contains this. @throws Error where it ends without. */
  async says(text: string): Promise<void> {
    const saidIt = () => this.#lines.some((line) => line.includes(text));
    const ended = this.#ended.then(() => true);
    while (!saidIt()) {
      const heard = new Promise<boolean>((resolve) => {
        this.#heard = () => resolve(false);
      });
      if ((await Promise.race([heard, ended])) && !saidIt()) {
        throw new Error(`The daemon ended without saying '${text}', but:\n${this.#lines.join('\n')}`);
      }
    }
  }
}
