import type { QueueOrder } from '../task.ts';
import type { Writable } from '../writable.ts';
import type { LimitOrigin, QueueRecord, Restriction, RestrictionCause, SourceRecord } from './store.ts';

/** A source that is not in its normal state, or has limits, in times of the store's clock. */
export interface SourceRow {
  readonly name: string;
  /** An operator's hold. */
  readonly shut_at: number | null;
  readonly actor: string | null;
  readonly note: string | null;
  readonly until?: number | null;
  /** Its state. */
  readonly revision?: number | null;
  readonly memory?: string | null;
  readonly written_at?: number | null;
  readonly cause?: RestrictionCause | null;
  readonly shut_until?: number | null;
  readonly until_released?: boolean | 0 | 1 | null;
  readonly probing?: boolean | 0 | 1 | null;
  readonly per_second?: number | null;
  readonly burst?: number | null;
  readonly ramping?: boolean | 0 | 1 | null;
  /** The tokens left in its budget; null if it is full. */
  readonly tokens?: number | null;
  /** Its limits, and who set the last one. */
  readonly limit_per_second?: number | null;
  readonly limit_burst?: number | null;
  readonly limit_concurrency?: number | null;
  readonly limit_origin?: LimitOrigin | null;
  readonly limit_actor?: string | null;
  readonly limit_note?: string | null;
  readonly limit_at?: number | null;
  readonly running?: number;
}

export interface QueueRow {
  readonly name: string;
  readonly ordering: QueueOrder;
  readonly fair: boolean | 0 | 1;
  readonly paused_at: number | null;
  readonly actor: string | null;
  readonly note: string | null;
  readonly per_second?: number | null;
  readonly burst?: number | null;
  readonly concurrency?: number | null;
}

export function sourceRecord(row: SourceRow, now: number): SourceRecord {
  const record: Writable<SourceRecord> = { name: row.name };
  const { shut_at: at, until = null, note } = row;
  if (at !== null && (until === null || until > now)) {
    record.hold = {
      at,
      actor: row.actor ?? 'unknown',
      ...(note !== null && { note }),
      ...(until !== null && { until }),
    };
  }
  const { revision, memory, written_at } = row;
  if (revision != null && memory != null && written_at != null) {
    const restriction = restrictionFrom(row, now);
    const { shutFor } = restriction ?? {};
    const opensIn = restriction && shutFor !== 'released' ? { opensIn: shutFor ?? 0 } : {};
    record.state = {
      revision,
      memory,
      age: Math.max(0, now - written_at),
      ...(restriction && { restriction, ...opensIn }),
    };
  }
  if (row.tokens != null) record.tokens = row.tokens;
  const { limit_per_second: perSecond, limit_burst: burst, limit_concurrency: concurrency, limit_note } = row;
  if (row.limit_at != null) {
    record.limits = {
      ...(perSecond != null && { pace: { perSecond, burst: burst ?? 1 } }),
      ...(concurrency != null && { concurrency }),
      by: {
        actor: row.limit_actor ?? 'unknown',
        ...(limit_note != null && { note: limit_note }),
        at: row.limit_at,
        origin: row.limit_origin ?? 'person',
      },
    };
  }
  if (row.running !== undefined) record.running = row.running;
  return record;
}

/** What is left of a restriction now. */
function restrictionFrom(row: SourceRow, now: number): Restriction | undefined {
  if (row.cause == null) return undefined;
  const left = (row.shut_until ?? 0) - now;
  return {
    cause: row.cause,
    ...(row.until_released ? { shutFor: 'released' } : left > 0 && { shutFor: left }),
    ...(row.probing && { probing: true }),
    ...(row.per_second != null && { pace: { perSecond: row.per_second, burst: row.burst ?? 1 } }),
    ...(row.ramping && { ramping: true }),
  };
}

export function queueRecord(row: QueueRow): QueueRecord {
  const { name, ordering, fair, paused_at: at, actor, note, per_second, burst, concurrency } = row;
  return {
    name,
    order: ordering,
    fair: Boolean(fair),
    ...(per_second != null && { pace: { perSecond: per_second, burst: burst ?? 1 } }),
    ...(concurrency != null && { concurrency }),
    ...(at !== null && { paused: { at, actor: actor ?? 'unknown', ...(note !== null && { note }) } }),
  };
}
