import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { aged, type Memory } from '../source/memory.ts';
import { readMemory } from '../source/stored.ts';
import type { SourceState } from '../store/store.ts';

/** Of more sources than this, what is known longest is forgotten. */
const MOST_KNOWN = 1_000;

/** The state of a source at this moment, and its revision: undefined and 0 where it is in its normal state. */
export interface KnownState {
  readonly revision: number;
  readonly memory: Memory | undefined;
}

interface Entry extends KnownState {
  /** The highest revision that the source is known to have had. What is told with a lower one is older. */
  readonly highest: number;
  /** When the memory was as it is here. */
  readonly at: Milliseconds;
}

/**
 * What a process knows of the states of sources: from its claims, from the answers of the store, and by what it wrote itself. With
 * it, outcomes that follow one another are decided without asking the store in between. It need not be right: the store refuses what was
 * made from another state than its own, and says which that is.
 */
export class KnownSources {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** The sources of which a change is on its way to the store, and what waits for its end. */
  readonly #changing = new Map<string, (() => void)[]>();
  readonly #listeners = new Set<(source: string) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether all sources are in their normal state, as far as is known. */
  get areNormal(): boolean {
    return this.#entries.size === 0 && this.#changing.size === 0;
  }

  /** The newest known state of a source. `told` came with a claim, so long ago. */
  stateOf(source: string, told: SourceState | undefined, toldAgo: Milliseconds): KnownState {
    let entry = this.#entries.get(source);
    if (told && !(entry && entry.highest >= told.revision)) entry = this.#keep(source, told, toldAgo);
    if (!entry) return { revision: 0, memory: undefined };
    const { revision, memory } = entry;
    return { revision, memory: memory && aged(memory, this.#clock.monotonic() - entry.at) };
  }

  /** The store said what the state is now: none if that is left out. `before` is a revision that the source had earlier. */
  heard(source: string, state: SourceState | undefined, before: number): void {
    if (state) this.#keep(source, state, 0);
    else this.wroteNormal(source, before);
  }

  /** The store took this state. */
  wrote(source: string, memory: Memory | undefined, revision: number): void {
    this.#set(source, { revision, memory, highest: revision, at: this.#clock.monotonic() });
  }

  /** The store ended the state of a source, which had this revision before. */
  wroteNormal(source: string, before: number): void {
    const highest = Math.max(before, this.#entries.get(source)?.highest ?? 0);
    this.#set(source, { revision: 0, memory: undefined, highest, at: this.#clock.monotonic() });
  }

  /** It is not known what the store has of a source now. */
  forget(source: string): void {
    this.#entries.delete(source);
  }

  /** A change of these sources goes to the store. */
  beginChange(sources: Iterable<string>): void {
    for (const source of sources) if (!this.#changing.has(source)) this.#changing.set(source, []);
  }

  /** The store took the change, or not. */
  endChange(sources: Iterable<string>): void {
    for (const source of sources) {
      const waiting = this.#changing.get(source) ?? [];
      this.#changing.delete(source);
      for (const goOn of waiting) goOn();
    }
  }

  /**
   * Calls back when the change of a source that is under way has ended. Answers false where there is none. Until then any outcome would be
   * decided by a state that is old.
   */
  awaitsChange(source: string, goOn: () => void): boolean {
    const waiting = this.#changing.get(source);
    waiting?.push(goOn);
    return waiting !== undefined;
  }

  /** Calls back, in the same turn, when an outcome of this process restricts what may start of a source. Returns how to end that. */
  onRestricted(listener: (source: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** An outcome restricts what may start of a source. */
  restricted(source: string): void {
    for (const listener of this.#listeners) listener(source);
  }

  #keep(source: string, { revision, memory, age }: SourceState, ago: Milliseconds): Entry {
    const at = this.#clock.monotonic() - age - ago;
    return this.#set(source, { revision, memory: readMemory(memory), highest: revision, at });
  }

  #set(source: string, entry: Entry): Entry {
    this.#entries.delete(source);
    this.#entries.set(source, entry);
    if (this.#entries.size > MOST_KNOWN) this.#entries.delete(this.#entries.keys().next().value as string);
    return entry;
  }
}
