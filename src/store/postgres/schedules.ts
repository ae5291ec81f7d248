import { randomUUID } from 'node:crypto';
import type { Milliseconds } from '../../duration.ts';
import { LOOKED_AT_ONCE, type ScheduleRow, scheduleRecord } from '../schedule-row.ts';
import type { NewSchedule, ScheduleRecord, ScheduleStep, ScheduleStore, ScheduleTurn } from '../schedules.ts';
import type { By, News, Receipt } from '../store.ts';
import type { Database } from './database.ts';
import { enqueued } from './encoding.ts';
import { type EnqueueAnswer, receipt } from './tasks.ts';

export class PostgresSchedules implements ScheduleStore {
  readonly #database: Database;
  readonly #notify: (news: News, isUrgent?: boolean) => void;

  constructor(database: Database, notify: (news: News, isUrgent?: boolean) => void) {
    this.#database = database;
    this.#notify = notify;
  }

  async define({ origin, ...schedule }: NewSchedule, expected: number): Promise<boolean> {
    const values = [randomUUID(), JSON.stringify({ ...schedule, origin: JSON.stringify(origin) }), expected];
    const defined = await this.#database.call<boolean>('schedule_define', values);
    if (defined) this.#notify('schedules');
    return defined;
  }

  remove(name: string): Promise<boolean> {
    return this.#database.call('schedule_remove', [randomUUID(), name]);
  }

  async find(name: string): Promise<ScheduleRecord | undefined> {
    const [row] = await this.#rows('WHERE name = $1', [name]);
    return row;
  }

  list(): Promise<readonly ScheduleRecord[]> {
    return this.#rows('ORDER BY name COLLATE "C"', []);
  }

  pause(name: string, { actor, note }: By): Promise<boolean> {
    return this.#database.call('schedule_pause', [randomUUID(), name, actor, note ?? null]);
  }

  async resume(name: string, revision: number, { progress, lookAt }: ScheduleStep): Promise<boolean> {
    const values = [randomUUID(), name, revision, progress, lookAt ?? null];
    const resumed = await this.#database.call<boolean>('schedule_resume', values);
    if (resumed) this.#notify('schedules');
    return resumed;
  }

  async due(): Promise<{ readonly schedules: readonly ScheduleRecord[]; readonly nextIn?: Milliseconds }> {
    const { rows, nextIn } = await this.#database.call<{
      readonly rows: readonly ScheduleRow[] | null;
      readonly nextIn: number | null;
    }>('schedules_due', [LOOKED_AT_ONCE]);
    return { schedules: (rows ?? []).map(scheduleRecord), ...(nextIn !== null && { nextIn }) };
  }

  async turn({ name, revision, tasks, step: after, otherwise }: ScheduleTurn): Promise<readonly Receipt[] | undefined> {
    const { groups, tasks: rows, keyed } = enqueued(tasks);
    const text = (one: ScheduleStep | undefined) => (one ? JSON.stringify(one) : null);
    const answer = await this.#database.call<EnqueueAnswer | null>('schedule_turn', [
      randomUUID(),
      name,
      revision,
      groups,
      rows,
      keyed,
      text(after),
      text(otherwise),
    ]);
    if (answer === null) return undefined;
    const receipts = answer.receipts.map(receipt);
    if (receipts.some(({ created }) => created)) this.#notify('work', answer.woke);
    return receipts;
  }

  async #rows(end: string, values: readonly unknown[]): Promise<readonly ScheduleRecord[]> {
    const rows = await this.#database.rows<ScheduleRow>(
      `SELECT * FROM ${this.#database.schema}.schedules ${end}`,
      values,
    );
    return rows.map(scheduleRecord);
  }
}
