import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../../duration.ts';
import type { RedriveProgress, RedriveSkip, StageCounts } from '../../redrive.ts';
import {
  REDRIVE_CHANGES,
  type RedriveRow,
  type RedriveTaskRow,
  redriveOfTask,
  redriveProgress,
  redriveRecord,
  SELECTED_AT_ONCE,
  SKIPPED_AT_ONCE,
  STAGES_LOOKED_AT,
} from '../redrive-row.ts';
import type {
  NewRedrive,
  RedriveFilter,
  RedriveOfTask,
  RedrivePreview,
  RedriveRecord,
  RedriveStore,
} from '../redrives.ts';
import type { News } from '../store.ts';
import type { Database } from './database.ts';
import { list } from './writer.ts';

export class PostgresRedrives implements RedriveStore {
  readonly #database: Database;
  readonly #notify: (news: News) => void;

  constructor(database: Database, notify: (news: News) => void) {
    this.#database = database;
    this.#notify = notify;
  }

  start({ filter, ...redrive }: NewRedrive): Promise<number> {
    const value = JSON.stringify({ ...redrive, filter: JSON.stringify(filter) });
    return this.#database.call('redrive_start', [randomUUID(), value]);
  }

  select(id: number): Promise<boolean> {
    return this.#database.call('redrive_select', [id, SELECTED_AT_ONCE]);
  }

  async preview(filter: RedriveFilter, after = 0): Promise<RedrivePreview> {
    const { next, ...counts } = await this.#database.call<
      Omit<RedrivePreview, 'next'> & { readonly next: number | null }
    >('redrive_preview', [JSON.stringify(filter), after, SELECTED_AT_ONCE]);
    return { ...counts, ...(next !== null && { next }) };
  }

  async find(id: number): Promise<RedriveRecord | undefined> {
    const row = await this.#row(id);
    return row && redriveRecord(row);
  }

  async list(limit: number): Promise<readonly RedriveRecord[]> {
    const text = this.#in('SELECT * FROM $.redrives ORDER BY id DESC LIMIT $1');
    return (await this.#database.rows<RedriveRow>(text, [limit])).map(redriveRecord);
  }

  async skips(id: number): Promise<Readonly<Partial<Record<RedriveSkip, number>>>> {
    const rows = await this.#database.rows<{ skipped: RedriveSkip; n: number }>(
      this.#in(`SELECT skipped, count(*) AS n FROM $.redrive_tasks WHERE redrive = $1 AND skipped IS NOT NULL
        GROUP BY skipped ORDER BY skipped COLLATE "C"`),
      [id],
    );
    return Object.fromEntries(rows.map(({ skipped, n }) => [skipped, n]));
  }

  async ofTask(task: number): Promise<RedriveOfTask | undefined> {
    const [row] = await this.#database.rows<RedriveTaskRow & { readonly redrive: number }>(
      this.#in('SELECT redrive, stage, skipped, at FROM $.redrive_tasks WHERE task = $1 ORDER BY redrive DESC LIMIT 1'),
      [task],
    );
    const redrive = row && (await this.#row(row.redrive));
    return redrive && redriveOfTask(redrive, row);
  }

  change(
    id: number,
    to: 'paused' | 'running' | 'cancelled',
    { actor, note }: { readonly actor: string; readonly note?: string },
  ): Promise<boolean> {
    const values = [randomUUID(), id, to, list(REDRIVE_CHANGES[to]), actor, note ?? null];
    return this.#database.call('redrive_change', values);
  }

  // ── For the one process that drives it ──

  async open(driver: string): Promise<readonly number[]> {
    const rows = await this.#database.rows<{ id: number }>(
      this.#in(`SELECT id FROM $.redrives
        WHERE state = 'running' AND (driver IS NULL OR driver = $1 OR driver_until <= $.now_ms()) ORDER BY id`),
      [driver],
    );
    return rows.map(({ id }) => id);
  }

  async advance(
    id: number,
    driver: string,
    claimFor: Milliseconds,
  ): Promise<{ readonly record: RedriveRecord; readonly progress: RedriveProgress } | undefined> {
    const answer = await this.#database.call<{
      readonly row: RedriveRow;
      readonly stages: readonly StageCounts[] | null;
      readonly now: number;
    } | null>('redrive_advance', [id, driver, Math.ceil(claimFor), STAGES_LOOKED_AT]);
    if (answer === null) return undefined;
    const { row, stages, now } = answer;
    return { record: redriveRecord(row), progress: redriveProgress(row, stages ?? [], now) };
  }

  async putBack(
    id: number,
    driver: string,
    { stage, count, nextIn }: { readonly stage: number; readonly count: number; readonly nextIn: Milliseconds },
  ): Promise<void> {
    const values = [randomUUID(), id, driver, stage, count, SKIPPED_AT_ONCE, nextIn];
    if ((await this.#database.call<number>('redrive_put_back', values)) > 0) this.#notify('work');
  }

  end(id: number, driver: string, state: 'stopped' | 'done', because: string): Promise<boolean> {
    return this.#database.call('redrive_end', [randomUUID(), id, driver, state, because]);
  }

  async release(driver: string): Promise<void> {
    await this.#database.call('redrive_release', [driver]);
  }

  async #row(id: number): Promise<RedriveRow | undefined> {
    const [row] = await this.#database.rows<RedriveRow>(this.#in('SELECT * FROM $.redrives WHERE id = $1'), [id]);
    return row;
  }

  /** `$.` stands for the schema. */
  #in(text: string): string {
    return text.replaceAll('$.', () => `${this.#database.schema}.`);
  }
}
