import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { News } from '../store.ts';
import type { Sql } from './driver.ts';

/**
 * The folder's event comes with the first page of a commit, but the commit is visible only when its last page is on the disk,
 * which may take long. So the database is checked again after these pauses. Most disks need 1 to 4 ms, and a check takes 20 µs.
 */
const LOOK_AGAIN_MS = [0, 1, 1, 1, 1, 2, 2, 4, 8, 16, 32, 64, 128, 256];

/** How often to check whether another process has committed, in case an event was lost or the folder cannot be watched. */
const LOOK_EVERY_MS = 1_000;

/**
 * Notifies listeners of changes: at once of those of this process, and of those of others by watching the folder of the file and
 * by a check once a second.
 */
export class Wake {
  readonly #sql: Sql;
  readonly #path: string;
  readonly #listeners = new Set<(news: News) => void>();
  #watcher: FSWatcher | undefined;
  #looks: NodeJS.Timeout | undefined;
  /** The newest worker, and how many there are. This shows that workers came or went. */
  #workers = '';
  #version = 0;
  #looking = false;
  /** Another event came during a check. It may be of another commit. */
  #again = false;
  #endPause = () => {};

  constructor(sql: Sql, path: string) {
    this.#sql = sql;
    this.#path = path;
  }

  listen(listener: (news: News) => void): () => void {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) this.#watch();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.close();
    };
  }

  /** Notifies all listeners of this process. */
  call(news: News): void {
    for (const listener of this.#listeners) listener(news);
  }

  close(): void {
    clearInterval(this.#looks);
    this.#unwatch();
  }

  #unwatch(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  #watch(): void {
    if (this.#path === ':memory:') return;
    this.#version = this.#dataVersion();
    this.#workers = this.#seeWorkers();
    this.#looks = setInterval(() => this.#lookOnce(), LOOK_EVERY_MS).unref();
    const files = [basename(this.#path), `${basename(this.#path)}-wal`];
    try {
      this.#watcher = watch(dirname(this.#path), { persistent: false }, (_, file) => {
        if (file === null || files.includes(file)) void this.#look();
      });
      // Watching is only a hint: without it, the check once a second finds changes.
      this.#watcher.on('error', () => this.#unwatch());
    } catch {
      this.#watcher = undefined;
    }
  }

  /** Checks a few times whether another connection has committed, and notifies the listeners if so. */
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
      if (this.#lookOnce()) return;
    }
  }

  /** Whether another connection has committed since the last check. If so, listeners are notified. */
  #lookOnce(): boolean {
    const version = this.#dataVersion();
    if (version === this.#version) return false;
    this.#version = version;
    this.call('any');
    const workers = this.#seeWorkers();
    if (workers !== this.#workers) this.call('workers');
    this.#workers = workers;
    return true;
  }

  #seeWorkers(): string {
    try {
      const seen = this.#sql.get('SELECT max(id) AS newest, count(*) AS all_, sum(gone) AS gone FROM hf_workers');
      return JSON.stringify(seen);
    } catch {
      // Busy or closing: the next check finds it.
      return this.#workers;
    }
  }

  /** Waits for this time, or until another event comes. */
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
      // Busy or closing: the next check or poll finds it.
      return this.#version;
    }
  }
}
