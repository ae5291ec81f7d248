import type { FailureGroup, Sample, SightedAs, Sighting, Sightings } from '../failure/groups.ts';

/** How many groups of failures a store keeps: those that failed last. */
export const MOST_FAILURE_GROUPS = 1_000;

/** What a settle call appended about failures. */
interface FailureEntry {
  readonly id: number;
  readonly at: number;
  readonly sightings: Sightings;
}

/**
 * Groups of failures. A settle call appends an entry, in its transaction; entries are added to groups later, and before groups are
 * read. So failures that happen at the same time do not wait for each other, and none is counted twice.
 */
export interface FailureStore {
  /** The oldest entries, at most so many, and the revision of the groups. */
  entries(most: number): Promise<{ readonly revision: number; readonly entries: readonly FailureEntry[] }>;
  /** The groups with these ids; without ids all. */
  groups(ids?: readonly string[]): Promise<readonly FailureGroup[]>;
  /**
   * Writes groups and removes entries, if the groups still have this revision; false otherwise. Keeps at most `MOST_FAILURE_GROUPS`.
   */
  write(revision: number, entries: readonly number[], groups: readonly FailureGroup[]): Promise<boolean>;
  /** Whether this process has appended entries since it was last asked. */
  takeNew(): boolean;
}

/** What a settlement says of groups of failures, with a sample if it failed. Settlements that say the same may share these objects. */
export interface Sighted {
  readonly as: SightedAs;
  readonly sample?: Sample;
}

/** The entry of one settle call. Undefined if none of these says anything of groups. */
export function sightingsOf(
  settlements: Iterable<{ readonly lease: { readonly task: number }; readonly sighting?: Sighted }>,
): Sightings | undefined {
  const samples: Record<string, Sample> = {};
  const tasks = new Map<SightedAs, number[]>();
  for (const { lease, sighting: found } of settlements) {
    if (!found) continue;
    const same = tasks.get(found.as);
    if (same) same.push(lease.task);
    else tasks.set(found.as, [lease.task]);
    if (found.as.group !== undefined && found.sample) samples[found.as.group] = found.sample;
  }
  return tasks.size === 0 ? undefined : { samples, seen: Array.from(tasks, seenOf) };
}

function seenOf([as, tasks]: [SightedAs, number[]]): Sighting {
  const task = tasks.pop() as number;
  return tasks.length === 0 ? { task, ...as } : { task, others: tasks, ...as };
}

/** What is left without some tasks. */
export function withoutTasks({ samples, seen }: Sightings, left: readonly number[]): Sightings {
  const kept = seen.flatMap((one) => {
    const { task: last, others = [], ...as } = one;
    const tasks = [...others, last].filter((task) => !left.includes(task));
    return tasks.length === 0 ? [] : [seenOf([as, tasks])];
  });
  return { samples, seen: kept };
}
