import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Sql } from './driver.ts';

/** The folder's event comes before the commit can be seen, so the database is asked again after these pauses. */
const LOOK_AGAIN_MS = [0, 1, 3, 8];

/**
 * Tells listeners when work may have become ready: at once for what this process wrote, and by watching the folder of the
 * file for what others did. Where a folder cannot be watched, or an event is lost, polling finds the work.
 */
export class Wake {
  readonly #sql: Sql;
  readonly #path: string;
  readonly #listeners = new Set<() => void>();
  #watcher: FSWatcher | undefined;
  #version = 0;
  #looking = false;

  constructor(sql: Sql, path: string) {
    this.#sql = sql;
    this.#path = path;
  }

  listen(listener: () => void): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#watch();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Wakes everyone who listens in this process. */
  call(): void {
    for (const listener of this.#listeners) listener();
  }

  close(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #watch(): void {
    if (this.#path === ':memory:') return;
    this.#version = this.#dataVersion();
    const files = [basename(this.#path), `${basename(this.#path)}-wal`];
    try {
      this.#watcher = watch(dirname(this.#path), { persistent: false }, (_, file) => {
        if (file === null || files.includes(file)) void this.#look();
      });
      // Watching is only a hint: without it, work is found by polling.
      this.#watcher.on('error', () => this.close());
    } catch {
      this.#watcher = undefined;
    }
  }

  /** Looks whether another connection has committed, a few times, and wakes the listeners if so. */
  async #look(): Promise<void> {
    if (this.#looking) return;
    this.#looking = true;
    for (const pause of LOOK_AGAIN_MS) {
      await new Promise((resolve) => (pause === 0 ? setImmediate(resolve) : setTimeout(resolve, pause)));
      if (!this.#watcher) break;
      const version = this.#dataVersion();
      if (version === this.#version) continue;
      this.#version = version;
      this.call();
      break;
    }
    this.#looking = false;
  }

  /** Changes with every commit of another connection, and never with our own. */
  #dataVersion(): number {
    try {
      return this.#sql.get<{ data_version: number }>('PRAGMA data_version')?.data_version ?? 0;
    } catch {
      // Busy or closing: the next look or poll finds out.
      return this.#version;
    }
  }
}
