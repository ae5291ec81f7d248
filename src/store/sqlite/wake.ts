import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { Sql } from './driver.ts';

/**
 * The folder's event comes with a commit's first page, and the commit can be seen when its last one is on the disk, which may
 * take long: so the database is asked again after these pauses.
 */
const LOOK_AGAIN_MS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256];

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
  /** Another event came while one was being looked into: it may be of another commit. */
  #again = false;
  #endPause = () => {};

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
    this.#again = true;
    this.#endPause();
    if (this.#looking) return;
    this.#looking = true;
    while (this.#again) {
      this.#again = false;
      await this.#lookAfterPauses();
    }
    this.#looking = false;
  }

  async #lookAfterPauses(): Promise<void> {
    for (const pause of LOOK_AGAIN_MS) {
      await this.#pause(pause);
      if (!this.#watcher || (this.#again && pause > 0)) return;
      const version = this.#dataVersion();
      if (version !== this.#version) {
        this.#version = version;
        this.call();
        return;
      }
    }
  }

  /** Over when another event comes, if it is of any length. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      if (ms === 0) {
        setImmediate(resolve);
        return;
      }
      const timer = setTimeout(resolve, ms).unref();
      this.#endPause = () => {
        clearTimeout(timer);
        resolve();
      };
    });
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
