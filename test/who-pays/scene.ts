import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type EnqueueOptions, type HistoryEntry, type Holdfast, openHoldfast, type Task } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
import { ask } from '../postgres/ask.ts';
import { openDatabases, type TestDatabase, type TestDatabases } from '../postgres/databases.ts';
import { type Child, usePrograms } from '../process/children.ts';

const PROGRAM = fileURLToPath(new URL('program.mjs', import.meta.url));
const COMMAND = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export type StoreKind = 'sqlite' | 'postgres';

/** What a handler of `program.mjs` does, for all executions or for each in turn, and what it needs to know for that. */
export interface Deed {
  readonly does: string | readonly string[];
  readonly ms?: number;
  readonly error?: { readonly message: string; readonly [field: string]: unknown };
}

/** One execution in the history of a task. */
export type ExecutionEntry = Extract<HistoryEntry, { kind: 'execution' }>;

/** What `program.mjs` is told. */
export interface Program {
  readonly worker?: object;
  /** Options of its task definition. */
  readonly task?: object;
  readonly types?: readonly string[];
  readonly grace?: string;
  /** Lives for a moment: it runs one task if one is ready, or drains the queue. Default: until it is told to stop. */
  readonly lives?: 'runOne' | 'drain';
}

/** Where a worker process is started. */
interface Surroundings {
  /** In a pid namespace of its own, as in a container of the same host name. */
  readonly ownPids?: true;
  /** By way of another address of the same store. */
  readonly where?: string;
}

/** A store that worker processes share, and the test's own view of it. */
export interface Scene {
  readonly kind: StoreKind;
  /** The path of its file, or the URL of its database. */
  readonly where: string;
  readonly holdfast: Holdfast;
  enqueue(deed: Deed, options?: EnqueueOptions & { readonly type?: string }): Promise<number>;
  /** Starts a worker process, and resolves when it works. */
  worker(name: string, program?: Program, surroundings?: Surroundings): Promise<Child>;
  /** Starts a worker process that lives for a moment, and resolves when it has ended. */
  moment(name: string, program: Program): Promise<void>;
  /** Changes what the store knows of all workers. */
  alterWorkers(set: string): Promise<void>;
  task(id: number): Promise<Task>;
  executions(id: number): Promise<readonly ExecutionEntry[]>;
  /** What `explain` says of a task. */
  explain(id: number): Promise<string>;
  /** What a command of the CLI prints. */
  command(...args: readonly string[]): Promise<string>;
}

/** A new scene for each test of a file. */
export function useScene(kind: StoreKind): () => Scene {
  const programs = usePrograms();
  const place = kind === 'sqlite' ? useFile() : useDatabase();
  let scene: Scene;
  beforeEach(async () => {
    const where = await place();
    const holdfast = await openHoldfast({ store: kind === 'sqlite' ? sqlite(where) : postgres(where) });
    scene = {
      kind,
      where,
      holdfast,
      enqueue: async (deed, { type = 'work', ...options } = {}) =>
        (await holdfast.enqueue(type, { ...deed }, options)).id,
      async worker(name, program = {}, { ownPids, where: way = where } = {}) {
        const command = [process.execPath, PROGRAM, kind, way, JSON.stringify({ name, ...program })];
        const within = ownPids ? ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'] : [];
        const [first, ...rest] = [...within, ...command] as [string, ...string[]];
        const child = programs.runIn(first, rest);
        await child.says('working');
        return child;
      },
      async moment(name, program) {
        const options = JSON.stringify({ name, ...program });
        await programs.runIn(process.execPath, [PROGRAM, kind, where, options]).endsWell();
      },
      async alterWorkers(set) {
        if (kind === 'postgres') await ask(where, `UPDATE holdfast.workers SET ${set}`);
        else {
          const file = new Database(where);
          file.exec(`UPDATE hf_workers SET ${set}`);
          file.close();
        }
      },
      task: (id) => holdfast.get(id),
      executions: async (id) =>
        (await holdfast.history(id)).filter((entry): entry is ExecutionEntry => entry.kind === 'execution'),
      explain: async (id) => (await holdfast.explain(id)).text,
      async command(...args) {
        const env = { PATH: process.env.PATH, HOME: tmpdir(), LANG: 'C.UTF-8', COLUMNS: '200' };
        const child = spawn(process.execPath, [COMMAND, ...args, '--store', where], {
          env,
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        return text(child.stdout);
      },
    };
  });
  afterEach(() => scene.holdfast.close());
  return () => scene;
}

function useFile(): () => Promise<string> {
  const folders: string[] = [];
  afterAll(() => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  });
  return async () => {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-who-pays-'));
    folders.push(folder);
    return join(folder, 'tasks.db');
  };
}

function useDatabase(): () => Promise<string> {
  let databases: TestDatabases;
  let taken: TestDatabase | undefined;
  beforeAll(async () => {
    databases = await openDatabases(async (url) => {
      const holdfast = await openHoldfast({ store: postgres(url) });
      await holdfast.close();
    });
  });
  afterEach(() => taken?.drop());
  afterAll(() => databases.close());
  return async () => {
    taken = await databases.take();
    return taken.url;
  };
}
