import type { Lease } from '../store.ts';
import type { FactsRow } from './facts.ts';
import type { Place } from './lanes.ts';

/** What was read of a task when its lease was handed out. */
interface Known {
  readonly token: string;
  readonly facts: FactsRow;
  readonly place: Place;
}

/** More leases than any worker holds: what is beyond was lost, or is settled elsewhere, and is read again if need be. */
const MOST_KNOWN = 20_000;

/**
 * The leases that this process handed out on tasks with a past. The facts of a leased task change only with its revision, so
 * whoever settles such a lease with its first revision need not read them again. Who has the lease, the database says.
 */
export class LeaseCache {
  readonly #known = new Map<number, Known>();

  add(place: Place, token: string, facts: FactsRow): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(place.id, { token, facts, place });
  }

  /** What is known of a task is no longer so. */
  forget(task: number): void {
    this.#known.delete(task);
  }

  /** What is known of this lease, once. */
  take({ task, token }: Lease): Known | undefined {
    const known = this.#known.get(task);
    if (known?.token !== token) return undefined;
    this.#known.delete(task);
    return known;
  }
}
