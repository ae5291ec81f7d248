import type { QueueOrder } from '../task.ts';
import type { QueueRecord, SourceRecord } from './store.ts';

/** A source that is held. */
export interface SourceRow {
  readonly name: string;
  readonly shut_at: number;
  readonly actor: string;
  readonly note: string | null;
}

export interface QueueRow {
  readonly name: string;
  readonly ordering: QueueOrder;
  readonly fair: boolean | 0 | 1;
  readonly paused_at: number | null;
  readonly actor: string | null;
  readonly note: string | null;
}

export function sourceRecord({ name, shut_at, actor, note }: SourceRow): SourceRecord {
  return { name, hold: { at: shut_at, actor, ...(note !== null && { note }) } };
}

export function queueRecord({ name, ordering, fair, paused_at: at, actor, note }: QueueRow): QueueRecord {
  return {
    name,
    order: ordering,
    fair: Boolean(fair),
    ...(at !== null && { paused: { at, actor: actor ?? 'unknown', ...(note !== null && { note }) } }),
  };
}
