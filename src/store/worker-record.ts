import { readStored } from '../stored-json.ts';
import type { WorkerRecord } from './store.ts';
import { takesFrom } from './takes.ts';

/** A worker as the stores keep it: what they do not ask for in SQL is JSON. */
export interface WorkerRow extends Omit<WorkerRecord, 'takes' | 'trouble'> {
  readonly takes: string;
  readonly trouble: string | null;
}

export function workerFrom({ takes, trouble: text, ...row }: WorkerRow): WorkerRecord {
  const trouble = readStored<WorkerRecord['trouble'] | null>(text ?? 'null', 'trouble', [], null);
  return { ...row, takes: takesFrom(takes), ...(trouble && { trouble }) };
}
