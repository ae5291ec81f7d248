import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import { aged, type Memory } from '../source/memory.ts';
import { readMemory } from '../source/stored.ts';
import type { SourceState } from '../store/store.ts';

/** The most sources that are kept. Beyond that, the oldest is forgotten. */
const MOST_KNOWN = 1_000;

/** The state of a source at this moment, and its revision: undefined and 0 where it is in its normal state. */
export interface KnownState {
  readonly revision: number;
  readonly memory: Memory | undefined;
}

interface Entry extends KnownState {
  /** The highest known revision of the source. A state with a lower revision is older. */
  readonly highest: number;
  /** The time from which the memory counts its durations. */
  readonly at: Milliseconds;
}

/**
 * The states of sources that this process knows: from its claims, from answers of the store, and from its own writes. With them,
 * several outcomes in a row are decided without a read in between. A known state may be out of date: then the store refuses the
 * change and returns its own state.
 */
export class KnownSources {
  readonly #clock: Clock;
  readonly #entries = new Map<string, Entry>();
  /** The sources whose change is being written, and the callbacks that wait for the end of the write. */
  readonly #changing = new Map<string, (() => void)[]>();
  readonly #listeners = new Set<(source: string) => void>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Whether all sources are in their normal state, as far as is known. */
  get areNormal(): boolean {
    return this.#entries.size === 0 && !this.areChanging;
  }

  /** Whether a change of any source is on its way to the store. */
  get areChanging(): boolean {
    return this.#changing.size > 0;
  }

  /** The newest known state of a source. `fromClaim` came with a claim, this long ago. */
  stateOf(source: string, fromClaim: SourceState | undefined, claimedAgo: Milliseconds): KnownState {
    let entry = this.#entries.get(source);
    if (fromClaim && !(entry && entry.highest >= fromClaim.revision)) entry = this.#keep(source, fromClaim, claimedAgo);
    if (!entry) return { revision: 0, memory: undefined };
    const { revision, memory } = entry;
    return { revision, memory: memory && aged(memory, this.#clock.monotonic() - entry.at) };
  }

  /** The store returned its present state, or none. `before` is an earlier revision of the source. */
  heard(source: string, state: SourceState | undefined, before: number): void {
    if (state) this.#keep(source, state, 0);
    else this.wroteNormal(source, before);
  }

  /** The store has written this state. */
  wrote(source: string, memory: Memory | undefined, revision: number): void {
    this.#set(source, { revision, memory, highest: revision, at: this.#clock.monotonic() });
  }

  /** The store has removed the state of a source. It had this revision before. */
  wroteNormal(source: string, before: number): void {
    const highest = Math.max(before, this.#entries.get(source)?.highest ?? 0);
    this.#set(source, { revision: 0, memory: undefined, highest, at: this.#clock.monotonic() });
  }

  /** Forgets a source, because it is not known what the store has now. */
  forget(source: string): void {
    this.#entries.delete(source);
  }

  /** A change of these sources is being written from now on. */
  beginChange(sources: Iterable<string>): void {
    for (const source of sources) if (!this.#changing.has(source)) this.#changing.set(source, []);
  }

  /** The write has ended, successfully or not. */
  endChange(sources: Iterable<string>): void {
    for (const source of sources) {
      const waiting = this.#changing.get(source) ?? [];
      this.#changing.delete(source);
      for (const goOn of waiting) goOn();
    }
  }

  /**
   * Calls back when the change of a source that is being written has ended. Returns false if none is being written. Until then,
   * an outcome would be decided by an old state.
   */
  awaitsChange(source: string, goOn: () => void): boolean {
    const waiting = this.#changing.get(source);
    waiting?.push(goOn);
    return waiting !== undefined;
  }

  /**
   * Calls back, in the same turn of the event loop, when an outcome of this process restricts the starts of a source. Returns a
   * function that ends this.
   */
  onRestricted(listener: (source: string) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** An outcome restricts the starts of a source. */
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
