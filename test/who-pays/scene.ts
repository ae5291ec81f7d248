import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { type EnqueueOptions, type HistoryEntry, type Holdfast, openHoldfast, type Task } from '../../src/index.ts';
import { postgres } from '../../src/store/postgres/index.ts';
import { sqlite } from '../../src/store/sqlite/index.ts';
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
}

/** A store that worker processes share, and the test's own view of it. */
export interface Scene {
  readonly kind: StoreKind;
  /** The path of its file, or the URL of its database. */
  readonly where: string;
  readonly holdfast: Holdfast;
  enqueue(deed: Deed, options?: EnqueueOptions & { readonly type?: string }): Promise<number>;
  /** Starts a worker process, and resolves when it works. */
  worker(name: string, program?: Program): Promise<Child>;
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
      async worker(name, program = {}) {
        const options = JSON.stringify({ name, ...program });
        const child = programs.runIn(process.execPath, [PROGRAM, kind, where, options]);
        await child.says('working');
        return child;
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
