import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect } from 'vitest';
import { immediate, type PolicyOptions, type WorkerEvent } from '../../src/index.ts';
import { openTestHoldfast, type TestHoldfast, type TestOptions } from '../../src/testing/index.ts';
import { aStore } from '../a-store.ts';

/** A testing kit that can be waited for. */
export interface Kit extends TestHoldfast {
  /** The first event, past or to come, that this is true of. */
  seen(wanted: (event: WorkerEvent) => boolean): Promise<WorkerEvent>;
}

/** Opens kits for the tests of a file. Each is verified and closed when its test ends. */
export function useKits(): (options?: TestOptions) => Promise<Kit> {
  let open: Kit[] = [];
  afterEach(async () => {
    const kits = open;
    open = [];
    for (const kit of kits) {
      try {
        expect(await kit.holdfast.store.upkeep.verify()).toEqual([]);
      } finally {
        await kit.close();
      }
    }
  });
  return async (options = {}) => {
    const kit = await openWatched(options);
    open.push(kit);
    return kit;
  };
}

/** Enqueues a task of the type `work` as a program does whose definition checks nothing. */
export async function enqueueUnchecked(kit: Kit, input: unknown, idempotent = true): Promise<number> {
  const common = { type: 'work', queue: 'default', source: 'work', priority: 0, delay: 0, idempotent };
  const [receipt] = await kit.holdfast.store.tasks.enqueue([{ ...common, payload: JSON.stringify(input) }]);
  return (receipt as { id: number }).id;
}

async function openWatched(options: TestOptions): Promise<Kit> {
  const watchers = new Set<() => void>();
  const kit = await openTestHoldfast({
    store: aStore(),
    ...options,
    worker: {
      ...options.worker,
      onEvent(event) {
        for (const look of watchers) look();
        return options.worker?.onEvent?.(event);
      },
    },
  });
  return {
    ...kit,
    seen: (wanted) =>
      new Promise((resolve) => {
        const look = () => {
          const found = kit.events.find(wanted);
          if (!found) return;
          watchers.delete(look);
          resolve(found);
        };
        watchers.add(look);
        look();
      }),
  };
}

/** A folder for a test's files. All are removed at the end: a store refuses to go on without its file. */
export function useFolder(): () => string {
  const folders: string[] = [];
  let folder: string | undefined;
  afterEach(() => {
    folder = undefined;
  });
  afterAll(() => {
    for (const used of folders) rmSync(used, { recursive: true, force: true });
  });
  return () => {
    if (folder === undefined) {
      folder = mkdtempSync(join(tmpdir(), 'holdfast-worker-'));
      folders.push(folder);
    }
    return folder;
  };
}

/** A promise that the test settles. */
export interface Gate<T = void> {
  readonly passed: Promise<T>;
  open(value: T): void;
  fail(error: unknown): void;
}

export function gate<T = void>(): Gate<T> {
  let open: (value: T) => void = () => {};
  let fail: (error: unknown) => void = () => {};
  const passed = new Promise<T>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { passed, open, fail };
}

/** A policy that retries at once. */
export const atOnce: PolicyOptions = { backoff: immediate, jitter: { kind: 'none' } };

export const isStarted = (event: WorkerEvent) => event.kind === 'started';
export const isSettled = (event: WorkerEvent) => event.kind === 'settled';
export const isStale = (event: WorkerEvent) => event.kind === 'stale';
