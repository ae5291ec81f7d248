import { readStored } from '../stored-json.ts';
import { isRespected } from './leases.ts';
import { type Liveness, livenessOf, type ProcessIdentity } from './liveness.ts';
import type { NewWorker, WorkerRecord } from './store.ts';
import { takesFrom } from './takes.ts';

/** A worker as the stores keep it: what they do not ask for in SQL is JSON. */
export interface WorkerRow
  extends Omit<WorkerRecord, 'takes' | 'trouble' | 'policies' | 'keepsTasks' | 'program'>,
    ProcessIdentity {
  readonly takes: string;
  readonly trouble: string | null;
  readonly policies: string | null;
  readonly program: string | null;
  readonly leaseFor: number;
  readonly mayRunFor: number | null;
}

export function workerFrom(
  {
    takes,
    trouble: text,
    policies: versions,
    program,
    leaseFor,
    mayRunFor,
    pid_started,
    boot,
    pid_space,
    ...row
  }: WorkerRow,
  now: number,
  liveness: (identity: ProcessIdentity) => Liveness = livenessOf,
): WorkerRecord {
  const trouble = readStored<WorkerRecord['trouble'] | null>(text ?? 'null', 'trouble', [], null);
  const policies = readStored<WorkerRecord['policies'] | null>(versions ?? 'null', 'policies', [], null);
  const life = liveness({ host: row.host, pid: row.pid, pid_started, boot, pid_space });
  const keepsTasks = life !== 'dead' && (row.leaseUntil > now || isRespected({ leaseFor, mayRunFor }, life));
  return {
    ...row,
    ...(program !== null && { program }),
    keepsTasks,
    takes: takesFrom(takes),
    ...(trouble && { trouble }),
    ...(policies && { policies }),
  };
}

/** The versions of the policies that a worker publishes, by type. Undefined if it publishes none. */
export function policyVersions(published: NewWorker['publishes']): Readonly<Record<string, string>> | undefined {
  const versions = Object.entries(published).flatMap(([type, text]) => {
    const { version } = Object(readStored<unknown>(text, 'policy', [], {})) as { readonly version?: unknown };
    return typeof version === 'string' ? [[type, version] as const] : [];
  });
  return versions.length > 0 ? Object.fromEntries(versions) : undefined;
}
