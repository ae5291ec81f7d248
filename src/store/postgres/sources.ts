import { randomUUID } from 'node:crypto';
import type { By, News, QueueSettings, SourceStore } from '../store.ts';
import { type Database, LONG_ANSWER_WITHIN_MS } from './database.ts';

/** Holds and releases sources, pauses and resumes queues, and sets queues up. */
export class PostgresSources implements SourceStore {
  readonly #database: Database;
  readonly #notify: (news: News) => void;

  constructor(database: Database, notify: (news: News) => void) {
    this.#database = database;
    this.#notify = notify;
  }

  async hold(source: string, { actor, note }: By): Promise<void> {
    await this.#database.call('hold_source', [randomUUID(), source, actor, note ?? null]);
    this.#notify('recall');
  }

  async release(source: string): Promise<void> {
    await this.#database.call('release_source', [randomUUID(), source]);
    this.#notify('work');
  }

  async pause(queue: string, { actor, note }: By): Promise<void> {
    await this.#database.call('pause_queue', [randomUUID(), queue, actor, note ?? null]);
    this.#notify('recall');
  }

  async resume(queue: string): Promise<void> {
    await this.#database.call('resume_queue', [randomUUID(), queue]);
    this.#notify('work');
  }

  async setUp(queue: string, { order, fair }: Partial<QueueSettings>): Promise<void> {
    await this.#database.call('set_up_queue', [randomUUID(), queue, order ?? null, fair ?? null], {
      within: LONG_ANSWER_WITHIN_MS,
    });
  }
}
