import { type FSWatcher, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import type { News } from '../store.ts';
import type { Sql } from './driver.ts';

/**
 * The folder's event comes with a commit's first page, and the commit can be seen when its last one is on the disk, which may
 * take long: so the database is asked again after these pauses.
 */
const LOOK_AGAIN_MS = [0, 1, 2, 4, 8, 16, 32, 64, 128, 256];

/** So often it is looked whether another process has committed, in case an event was lost or a folder cannot be watched. */
const LOOK_EVERY_MS = 1_000;

/**
 * Tells listeners of news: at once of what this process wrote, and by watching the folder of the file, and looking once a second,
 * of what others did.
 */
export class Wake {
  readonly #sql: Sql;
  readonly #path: string;
  readonly #listeners = new Set<(news: News) => void>();
  #watcher: FSWatcher | undefined;
  #looks: NodeJS.Timeout | undefined;
  /** The newest worker, and how many there are: to see that others came or went. */
  #workers = '';
  #version = 0;
  #looking = false;
  /** Another event came while one was being looked into: it may be of another commit. */
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

  /** Tells everyone who listens in this process. */
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
      // Watching is only a hint: without it, news are found by looking.
      this.#watcher.on('error', () => this.#unwatch());
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
      if (this.#lookOnce()) return;
    }
  }

  /** Whether another connection has committed since the last look; then it is told. */
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
      // Busy or closing: the next look finds out.
      return this.#workers;
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
