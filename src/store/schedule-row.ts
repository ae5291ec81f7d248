import type { ScheduleOrigin, ScheduleRecord } from './schedules.ts';

/** A schedule as the stores keep it. */
export interface ScheduleRow {
  readonly name: string;
  readonly definition: string;
  readonly origin: string;
  readonly progress: string;
  readonly look_at: number | null;
  readonly revision: number;
  readonly paused_at: number | null;
  readonly paused_by: string | null;
  readonly pause_note: string | null;
  readonly last_task: number | null;
  readonly created_at: number;
}

export function scheduleRecord(row: ScheduleRow): ScheduleRecord {
  return {
    name: row.name,
    definition: row.definition,
    origin: JSON.parse(row.origin) as ScheduleOrigin,
    progress: row.progress,
    revision: row.revision,
    createdAt: row.created_at,
    ...(row.look_at !== null && { lookAt: row.look_at }),
    ...(row.last_task !== null && { lastTask: row.last_task }),
    ...(row.paused_at !== null && {
      paused: {
        actor: row.paused_by as string,
        at: row.paused_at,
        ...(row.pause_note !== null && { note: row.pause_note }),
      },
    }),
  };
}

/** How many schedules one look takes. */
export const LOOKED_AT_ONCE = 50;
