import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../../duration.ts';
import type {
  By,
  LimitOrigin,
  News,
  QueueSettings,
  SourceChange,
  SourceLimits,
  SourceState,
  SourceStore,
} from '../store.ts';
import { type StateRow, sourceState } from './claim.ts';
import { type Database, LONG_ANSWER_WITHIN_MS } from './database.ts';

/** Holds, releases, changes and limits sources; pauses, resumes and configures queues. */
export class PostgresSources implements SourceStore {
  readonly #database: Database;
  readonly #notify: (news: News) => void;

  constructor(database: Database, notify: (news: News) => void) {
    this.#database = database;
    this.#notify = notify;
  }

  async hold(source: string, { actor, note }: By, forMs?: Milliseconds): Promise<void> {
    const time = forMs === undefined ? null : Math.ceil(forMs);
    await this.#database.call('hold_source', [randomUUID(), source, actor, note ?? null, time]);
    this.#notify('recall');
  }

  async release(source: string, by?: By): Promise<void> {
    await this.#database.call('release_source', [randomUUID(), source, by === undefined ? null : JSON.stringify(by)]);
    this.#notify('work');
  }

  async state(source: string): Promise<SourceState | undefined> {
    const row = await this.#database.call<StateRow | null>('state_of_source', [source]);
    return row ? sourceState(row) : undefined;
  }

  async change(source: string, { revision, change }: SourceChange): Promise<boolean> {
    const answer = await this.#database.call<{ changed: boolean; opens?: boolean; shuts?: boolean }>('change_source', [
      randomUUID(),
      source,
      revision,
      change === undefined ? null : JSON.stringify(change),
    ]);
    if (answer.opens) this.#notify('work');
    if (answer.shuts) this.#notify('recall');
    return answer.changed;
  }

  async limit(source: string, limits: SourceLimits, by: By & { readonly origin: LimitOrigin }): Promise<void> {
    const { pace, concurrency } = limits;
    await this.#database.call('limit_source', [
      randomUUID(),
      source,
      JSON.stringify({ pace, concurrency }),
      JSON.stringify(by),
    ]);
    this.#notify('work');
  }

  async pause(queue: string, { actor, note }: By): Promise<void> {
    await this.#database.call('pause_queue', [randomUUID(), queue, actor, note ?? null]);
    this.#notify('recall');
  }

  async resume(queue: string, by?: By): Promise<void> {
    await this.#database.call('resume_queue', [randomUUID(), queue, by === undefined ? null : JSON.stringify(by)]);
    this.#notify('work');
  }

  async setUp(queue: string, { order, fair, pace, concurrency }: Partial<QueueSettings>): Promise<void> {
    if (order !== undefined && (await this.#database.call('order_queue', [randomUUID(), queue, order]))) {
      while (await this.#database.call<boolean>('reorder', []));
    }
    const limits = JSON.stringify({ pace, concurrency });
    await this.#database.call('set_up_queue', [randomUUID(), queue, fair ?? null, limits], {
      within: LONG_ANSWER_WITHIN_MS,
    });
    if (pace !== undefined || concurrency !== undefined) this.#notify('work');
  }
}
