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
import { recordAction } from './changes.ts';
import type { Sql } from './driver.ts';
import type { Lanes } from './lanes.ts';
import type { Places } from './places.ts';
import type { Read } from './records.ts';
import type { Restricted } from './restricted.ts';
import type { SourceStates } from './source-states.ts';
import type { Writer } from './writer.ts';

interface Parts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly lanes: Lanes;
  readonly places: Places;
  readonly restricted: Restricted;
  readonly sourceStates: SourceStates;
  readonly read: Read;
  readonly now: () => number;
  readonly notify: (news: News) => void;
}

/** Holds, changes and limits sources, and configures queues. */
export class SqliteSources implements SourceStore {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  async hold(source: string, by: By, forMs?: Milliseconds): Promise<void> {
    const { actor, note } = by;
    const { sql, restricted } = this.#parts;
    await this.#write(source, 'recall', (now) => {
      recordAction(
        sql,
        'source',
        source,
        { change: 'hold', by, ...(forMs !== undefined && { heldForMs: forMs }) },
        now,
      );
      const until = forMs === undefined ? null : Math.min(Math.ceil(now + forMs), Number.MAX_SAFE_INTEGER);
      // One whose time is over is another one.
      restricted.refresh(source, now);
      sql.run(
        `INSERT INTO hf_sources (name, shut_at, actor, note, until) VALUES (?, ?, ?, ?, ?)
         ON CONFLICT (name) DO UPDATE SET until = excluded.until`,
        source,
        now,
        actor,
        note ?? null,
        until,
      );
    });
  }

  async release(source: string, by?: By): Promise<void> {
    const { sql } = this.#parts;
    await this.#write(source, 'work', (now) => {
      if (sql.run('DELETE FROM hf_sources WHERE name = ?', source).changes === 0) return;
      recordAction(sql, 'source', source, { change: 'release', ...(by && { by }) }, now);
    });
  }

  state(source: string): Promise<SourceState | undefined> {
    return this.#parts.read(() => this.#parts.sourceStates.of(source, this.#parts.now()));
  }

  async change(source: string, { revision, change }: SourceChange): Promise<boolean> {
    const { sourceStates, restricted, writer, notify } = this.#parts;
    const isCurrent = await writer.write((now) => {
      if (sourceStates.revisionOf(source) !== revision) return false;
      if (change) sourceStates.write(source, change, now);
      return true;
    });
    for (const news of restricted.takeNews()) notify(news);
    return isCurrent;
  }

  async limit(source: string, limits: SourceLimits, by: By & { readonly origin: LimitOrigin }): Promise<void> {
    const { sql } = this.#parts;
    const { pace, concurrency } = limits;
    await this.#write(source, 'work', (now) => {
      if (by.origin === 'person') recordAction(sql, 'source', source, { change: 'limit', by, limits }, now);
      this.#setLimit(source, 'pace', pace && [pace.perSecond, pace.burst, null], by, now);
      this.#setLimit(source, 'concurrency', concurrency == null ? concurrency : [null, null, concurrency], by, now);
      // Tasks that run already are counted too.
      if (typeof concurrency === 'number') {
        sql.run(
          `UPDATE hf_running SET limited_source = :source WHERE limited_source IS NULL AND id IN (
             SELECT r.id FROM hf_running r CROSS JOIN hf_tasks t ON t.id = r.id WHERE t.source = :source AND r.why IS NOT 'expiry')`,
          { source },
        );
      }
    });
  }

  /**
   * The new limit of this kind, null to remove it, or undefined to leave it. The configuration does not change what a person set.
   */
  #setLimit(
    source: string,
    kind: 'pace' | 'concurrency',
    limit: readonly (number | null)[] | null | undefined,
    { origin, actor, note }: By & { readonly origin: LimitOrigin },
    now: number,
  ): void {
    const { sql } = this.#parts;
    if (limit === undefined) return;
    if (limit === null) {
      sql.run(
        "DELETE FROM hf_source_limits WHERE source = ? AND kind = ? AND (origin <> 'person' OR ? = 'person')",
        source,
        kind,
        origin,
      );
      return;
    }
    sql.run(
      `INSERT INTO hf_source_limits (source, kind, per_second, burst, concurrency, origin, actor, note, set_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (source, kind) DO UPDATE SET per_second = excluded.per_second, burst = excluded.burst,
         concurrency = excluded.concurrency, origin = excluded.origin, actor = excluded.actor, note = excluded.note,
         set_at = excluded.set_at
       WHERE origin <> 'person' OR excluded.origin = 'person'`,
      source,
      kind,
      ...limit,
      origin,
      actor,
      note ?? null,
      now,
    );
  }

  async pause(queue: string, by: By): Promise<void> {
    const { sql, writer, lanes, notify } = this.#parts;
    await writer.write((now) => {
      if (lanes.pause(queue, by, now)) recordAction(sql, 'queue', queue, { change: 'pause', by }, now);
    });
    notify('recall');
  }

  async resume(queue: string, by?: By): Promise<void> {
    const { sql, writer, lanes, notify } = this.#parts;
    await writer.write((now) => {
      if (lanes.resume(queue)) recordAction(sql, 'queue', queue, { change: 'resume', ...(by && { by }) }, now);
    });
    notify('work');
  }

  async setUp(queue: string, settings: Partial<QueueSettings>): Promise<void> {
    const { writer, lanes, places, notify } = this.#parts;
    await writer.write(() => lanes.setUp(queue, settings, (ids) => places.placesOf(ids)));
    if (settings.pace !== undefined || settings.concurrency !== undefined) notify('work');
  }

  /** Changes what restricts a source, and updates `hf_active`. */
  async #write(source: string, news: News, run: (now: number) => void): Promise<void> {
    await this.#parts.writer.write((now) => {
      run(now);
      this.#parts.restricted.refresh(source, now);
    });
    this.#parts.notify(news);
  }
}
