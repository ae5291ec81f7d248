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
  const alike = new Map<SightedAs, Alike>();
  let at = 0;
  for (const { lease, sighting: found } of settlements) {
    if (!found) continue;
    at += 1;
    const known = alike.get(found.as);
    if (known) {
      known.tasks.push(lease.task);
      known.lastAt = at;
    } else {
      alike.set(found.as, { as: found.as, tasks: [lease.task], lastAt: at });
    }
    if (found.as.group !== undefined && found.sample) samples[found.as.group] = found.sample;
  }
  if (alike.size === 0) return undefined;
  // The last of a group is its newest.
  const inOrder = [...alike.values()].sort((a, b) => a.lastAt - b.lastAt);
  return { samples, seen: inOrder.map(({ as, tasks }) => seenOf(as, tasks)) };
}

/** Tasks whose settlements said the same, and the place of the last one in the call. */
interface Alike {
  readonly as: SightedAs;
  readonly tasks: number[];
  lastAt: number;
}

function seenOf(as: SightedAs, tasks: readonly number[]): Sighting {
  const others = tasks.slice(0, -1);
  const task = tasks.at(-1) as number;
  return others.length === 0 ? { task, ...as } : { task, others, ...as };
}

/** What is left without some tasks. */
export function withoutTasks({ samples, seen }: Sightings, left: readonly number[]): Sightings {
  const kept = seen.flatMap((one) => {
    const { task: last, others = [], ...as } = one;
    const tasks = [...others, last].filter((task) => !left.includes(task));
    return tasks.length === 0 ? [] : [seenOf(as, tasks)];
  });
  return { samples, seen: kept };
}
