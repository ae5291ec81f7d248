import { StoreError } from '../errors.ts';
import type { Logger } from '../log.ts';
import type { Store, WorkerRecord } from '../store/store.ts';

/** A type for whose failures living workers have different policies. */
export interface PolicyDifference {
  readonly type: string;
  /** The policies, the oldest first, with their workers. */
  readonly policies: readonly {
    readonly version: string;
    readonly since: number;
    readonly workers: readonly WorkerRecord[];
  }[];
}

/** The types that workers which still have their tasks run under different policies. */
export function policyDifferences(workers: readonly WorkerRecord[]): readonly PolicyDifference[] {
  const byType = new Map<string, Map<string, { since: number; workers: WorkerRecord[] }>>();
  for (const worker of workers) {
    const { takes, policies, keepsTasks } = worker;
    if (!policies || !keepsTasks) continue;
    for (const [type, version] of Object.entries(policies.of)) {
      if (takes.types && !takes.types.includes(type)) continue;
      const versions = byType.get(type) ?? new Map<string, { since: number; workers: WorkerRecord[] }>();
      const known = versions.get(version) ?? { since: policies.since, workers: [] };
      known.since = Math.min(known.since, policies.since);
      known.workers.push(worker);
      byType.set(type, versions.set(version, known));
    }
  }
  return [...byType].flatMap(([type, versions]) => {
    if (versions.size < 2) return [];
    const policies = [...versions].map(([version, rest]) => ({ version, ...rest }));
    return [{ type, policies: policies.sort((a, b) => a.since - b.since) }];
  });
}

/** Which worker has which policy, and what to do. `at` writes a time, `shown` a name. */
export function differenceText(
  { type, policies }: PolicyDifference,
  at: (time: number) => string,
  shown: (name: string) => string = (name) => name,
): string {
  const parts = policies.map(({ version, since, workers: [first, ...others] }) => {
    const more = others.length > 0 ? ` and ${others.length} more` : '';
    return `version ${version} since ${at(since)} (${shown(first?.name ?? '')}${more})`;
  });
  return `workers answer failures of ${shown(type)} by different policies: ${parts.join(', ')}. A deploy ends this by itself; otherwise give all workers the same code and holdfast.yaml`;
}

/** Warns if other workers have other policies than a worker that has just joined. */
export async function warnOfOtherPolicies(store: Store, log: Logger, worker: number | undefined): Promise<void> {
  let workers: readonly WorkerRecord[];
  try {
    workers = await store.records.workers();
  } catch (error) {
    if (error instanceof StoreError) return;
    throw error;
  }
  for (const difference of policyDifferences(workers)) {
    if (!difference.policies.some((policy) => policy.workers.some(({ id }) => id === worker))) continue;
    const text = differenceText(difference, (time) => new Date(time).toISOString());
    log.warn({ type: difference.type }, `${text[0]?.toUpperCase()}${text.slice(1)}.`);
  }
}
