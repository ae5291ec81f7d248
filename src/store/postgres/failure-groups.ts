import type { FailureGroup, Sightings } from '../../failure/groups.ts';
import { type FailureStore, MOST_FAILURE_GROUPS, withoutTasks } from '../failure-groups.ts';
import type { Counting } from './counters.ts';
import type { Database } from './database.ts';
import { saidJson } from './encoding.ts';

export class PostgresFailures implements FailureStore {
  readonly #database: Database;
  readonly #counting: Counting;

  constructor(database: Database, counting: Counting) {
    this.#database = database;
    this.#counting = counting;
  }

  takeNew(): boolean {
    return this.#counting.takeSeen();
  }

  async entries(most: number): ReturnType<FailureStore['entries']> {
    const { revision, entries } = await this.#database.call<{
      revision: number;
      entries: readonly { id: number; at: number; seen: Sightings; unwritten: readonly number[] | null }[] | null;
    }>('failure_entries_of', [most]);
    return {
      revision,
      entries: (entries ?? []).map(({ id, at, seen, unwritten }) => ({
        id,
        at,
        sightings: unwritten ? withoutTasks(seen, unwritten) : seen,
      })),
    };
  }

  async groups(ids?: readonly string[]): Promise<readonly FailureGroup[]> {
    return (await this.#database.call<readonly FailureGroup[] | null>('failure_groups_of', [ids ?? null])) ?? [];
  }

  write(revision: number, entries: readonly number[], groups: readonly FailureGroup[]): Promise<boolean> {
    const values = [revision, entries, saidJson(groups), MOST_FAILURE_GROUPS];
    return this.#database.call('write_failures', values);
  }
}
