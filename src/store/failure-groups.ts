import type { FailureGroup, Sample, Sighting, Sightings } from '../failure/groups.ts';

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

/** What a settlement says of groups of failures, with a sample if it failed. */
export interface Sighted {
  readonly sighting: Sighting;
  readonly sample?: Sample;
}

/** The entry of one settle call. Undefined if none of these says anything of groups. */
export function sightingsOf(settlements: Iterable<{ readonly sighting?: Sighted }>): Sightings | undefined {
  const samples: Record<string, Sample> = {};
  const seen: Sighting[] = [];
  for (const { sighting: found } of settlements) {
    if (!found) continue;
    seen.push(found.sighting);
    if (found.sighting.group !== undefined && found.sample) samples[found.sighting.group] = found.sample;
  }
  return seen.length === 0 ? undefined : { samples, seen };
}
