import type { By, QueueSettings, SourceStore } from '../store.ts';
import { type Database, LONG_ANSWER_WITHIN_MS } from './database.ts';

/** Shuts and opens sources, and sets up queues. */
export class PostgresSources implements SourceStore {
  readonly #database: Database;
  readonly #notify: () => void;

  constructor(database: Database, notify: () => void) {
    this.#database = database;
    this.#notify = notify;
  }

  async hold(source: string, { actor, note }: By): Promise<void> {
    await this.#database.call('hold_source', [source, actor, note ?? null]);
  }

  async release(source: string): Promise<void> {
    await this.#database.call('release_source', [source]);
    this.#notify();
  }

  async pause(queue: string, { actor, note }: By): Promise<void> {
    await this.#database.call('pause_queue', [queue, actor, note ?? null]);
  }

  async resume(queue: string): Promise<void> {
    await this.#database.call('resume_queue', [queue]);
    this.#notify();
  }

  async setUp(queue: string, { order, fair }: Partial<QueueSettings>): Promise<void> {
    await this.#database.call('set_up_queue', [queue, order ?? null, fair ?? null], { within: LONG_ANSWER_WITHIN_MS });
  }
}
