import type { Lease } from '../store.ts';
import type { FactsRow } from './facts.ts';
import type { Place } from './lanes.ts';

/** The data of a task that was read when its lease was handed out. */
interface Known {
  readonly token: string;
  readonly facts: FactsRow;
  readonly place: Place;
}

/**
 * More leases than any worker has. Older entries are of lost leases or were settled elsewhere; if necessary they are read again.
 */
const MOST_KNOWN = 20_000;

/**
 * The leases that this process handed out for tasks with facts. The facts of a leased task change only with its revision, so a
 * settlement with the first revision need not read them again. The lease itself is checked in the database.
 */
export class LeaseCache {
  readonly #known = new Map<number, Known>();

  add(place: Place, token: string, facts: FactsRow): void {
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(place.id, { token, facts, place });
  }

  /** Removes a task whose data has changed. */
  forget(task: number): void {
    this.#known.delete(task);
  }

  /** Returns the data of this lease, and removes it. */
  take({ task, token }: Lease): Known | undefined {
    const known = this.#known.get(task);
    if (known?.token !== token) return undefined;
    this.#known.delete(task);
    return known;
  }
}
