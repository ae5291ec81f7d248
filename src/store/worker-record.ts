import type { WorkerRecord } from './store.ts';

/** A worker as the stores keep it: what they do not ask for in SQL is JSON. */
export interface WorkerRow extends Omit<WorkerRecord, 'takes' | 'trouble'> {
  readonly takes: string;
  readonly trouble: string | null;
}

export function workerFrom({ takes, trouble, ...row }: WorkerRow): WorkerRecord {
  return {
    ...row,
    takes: JSON.parse(takes) as WorkerRecord['takes'],
    ...(trouble !== null && { trouble: JSON.parse(trouble) as NonNullable<WorkerRecord['trouble']> }),
  };
}
