import type { Milliseconds } from '../../duration.ts';
import { LOOKED_AT_ONCE, type ScheduleRow, scheduleRecord } from '../schedule-row.ts';
import type { NewSchedule, ScheduleRecord, ScheduleStep, ScheduleStore, ScheduleTurn } from '../schedules.ts';
import type { By, News, Receipt } from '../store.ts';
import type { Sql } from './driver.ts';
import type { Enqueuing } from './enqueue.ts';
import type { Read } from './records.ts';
import type { Writer } from './writer.ts';

interface Parts {
  readonly sql: Sql;
  readonly writer: Writer;
  readonly read: Read;
  readonly enqueuing: Enqueuing;
  readonly now: () => number;
  readonly notify: (news: News) => void;
}

export class SqliteSchedules implements ScheduleStore {
  readonly #sql: Sql;
  readonly #writer: Writer;
  readonly #read: Read;
  readonly #enqueuing: Enqueuing;
  readonly #now: () => number;
  readonly #notify: (news: News) => void;

  constructor({ sql, writer, read, enqueuing, now, notify }: Parts) {
    this.#sql = sql;
    this.#writer = writer;
    this.#read = read;
    this.#enqueuing = enqueuing;
    this.#now = now;
    this.#notify = notify;
  }

  async define(schedule: NewSchedule, expected: number): Promise<boolean> {
    const { name, definition, progress } = schedule;
    const values = {
      name,
      definition,
      origin: JSON.stringify(schedule.origin),
      progress,
      look_at: schedule.lookAt ?? null,
    };
    const written = await this.#writer.write((now) => {
      const [revision = 0] = this.#sql.column<number>('SELECT revision FROM hf_schedules WHERE name = ?', name);
      if (revision !== expected) return false;
      this.#sql.run(
        `INSERT INTO hf_schedules (name, definition, origin, progress, look_at, revision, created_at)
         VALUES (:name, :definition, :origin, :progress, :look_at, 1, :now)
         ON CONFLICT (name) DO UPDATE SET definition = :definition, origin = :origin, progress = :progress,
           look_at = iif(paused_at IS NULL, :look_at, NULL), revision = revision + 1`,
        { ...values, now },
      );
      return true;
    });
    if (written) this.#notify('schedules');
    return written;
  }

  remove(name: string): Promise<boolean> {
    return this.#writer.write(() => this.#sql.run('DELETE FROM hf_schedules WHERE name = ?', name).changes > 0);
  }

  find(name: string): Promise<ScheduleRecord | undefined> {
    return this.#read((sql) => {
      const row = sql.get<ScheduleRow>('SELECT * FROM hf_schedules WHERE name = ?', name);
      return row && scheduleRecord(row);
    });
  }

  list(): Promise<readonly ScheduleRecord[]> {
    return this.#read((sql) => sql.all<ScheduleRow>('SELECT * FROM hf_schedules ORDER BY name').map(scheduleRecord));
  }

  pause(name: string, { actor, note }: By): Promise<boolean> {
    return this.#writer.write((now) => {
      const { changes } = this.#sql.run(
        `UPDATE hf_schedules SET paused_at = coalesce(paused_at, :now), paused_by = coalesce(paused_by, :actor),
           pause_note = iif(paused_at IS NULL, :note, pause_note), look_at = NULL, revision = revision + 1 WHERE name = :name`,
        { name, actor, note: note ?? null, now },
      );
      return changes > 0;
    });
  }

  async resume(name: string, revision: number, { progress, lookAt }: ScheduleStep): Promise<boolean> {
    const resumed = await this.#writer.write(
      () =>
        this.#sql.run(
          `UPDATE hf_schedules SET paused_at = NULL, paused_by = NULL, pause_note = NULL, progress = :progress, look_at = :look_at,
             revision = revision + 1 WHERE name = :name AND revision = :revision AND paused_at IS NOT NULL`,
          { name, revision, progress, look_at: lookAt ?? null },
        ).changes > 0,
    );
    if (resumed) this.#notify('schedules');
    return resumed;
  }

  due(): Promise<{ readonly schedules: readonly ScheduleRecord[]; readonly nextIn?: Milliseconds }> {
    return this.#read((sql) => {
      const now = this.#now();
      const rows = sql.all<ScheduleRow>(
        'SELECT * FROM hf_schedules WHERE look_at <= ? ORDER BY look_at, name LIMIT ?',
        now,
        LOOKED_AT_ONCE,
      );
      const [next] = sql.column<number | null>('SELECT min(look_at) FROM hf_schedules WHERE look_at > ?', now);
      return { schedules: rows.map(scheduleRecord), ...(typeof next === 'number' && { nextIn: next - now }) };
    });
  }

  async turn({ name, revision, tasks, step: after, otherwise }: ScheduleTurn): Promise<readonly Receipt[] | undefined> {
    const receipts = await this.#writer.write((now) => {
      const [found] = this.#sql.column<number>(
        'SELECT 1 FROM hf_schedules WHERE name = ? AND revision = ? AND paused_at IS NULL',
        name,
        revision,
      );
      if (found === undefined) return undefined;
      const made = tasks.length === 0 ? [] : this.#enqueuing.enqueue(tasks, now);
      const step = otherwise && made.some(({ created }) => !created) ? otherwise : after;
      this.#sql.run(
        `UPDATE hf_schedules SET progress = :progress, look_at = :look_at, last_task = coalesce(:last_task, last_task),
           revision = revision + 1 WHERE name = :name`,
        {
          name,
          progress: step.progress,
          look_at: step.lookAt ?? null,
          last_task: made.findLast(({ created }) => created)?.id ?? null,
        },
      );
      return made;
    });
    if (receipts?.some(({ created }) => created)) this.#notify('work');
    return receipts;
  }
}
