import type { SourceChange } from '../store.ts';
import type { Refunded, SourceStates } from './source-states.ts';

/** A source during a batch of settlements. */
interface Known {
  /** The revision that the next settlement of it must name. */
  expected: number;
  /** A change was refused, so later ones were made from a state that never existed. */
  refused: boolean;
}

/**
 * Checks from which states the settlements of one batch were made, and makes their changes of sources one after the other. Each
 * change raises the revision by one, starting at the revision before the batch.
 */
export class SourceChanges {
  readonly #states: SourceStates;
  readonly #now: number;
  readonly #known = new Map<string, Known>();
  /** Whether any source had a state when the batch began. */
  readonly #any: boolean;

  constructor(states: SourceStates, now: number) {
    this.#states = states;
    this.#now = now;
    this.#any = states.any;
  }

  /** Whether a settlement was made from the present state of its source. */
  accepts(source: string, { revision }: SourceChange): boolean {
    if (!this.#any && this.#known.size === 0 && revision === 0) return true;
    const known = this.#of(source);
    if (known.refused || known.expected !== revision) known.refused = true;
    return !known.refused;
  }

  write(source: string, change: NonNullable<SourceChange['change']>): readonly Refunded[] {
    this.#of(source).expected += 1;
    return this.#states.write(source, change, this.#now);
  }

  #of(source: string): Known {
    const known = this.#known.get(source) ?? {
      expected: this.#any ? this.#states.revisionOf(source) : 0,
      refused: false,
    };
    this.#known.set(source, known);
    return known;
  }
}
