import type { Milliseconds } from '../duration.ts';
import type { SourceFacts } from '../failure/decide.ts';
import type { Roll } from '../failure/jitter.ts';
import { type NewCondition, newCondition } from '../source/condition.ts';
import type { Memory } from '../source/memory.ts';
import { changesNothing, type Observation } from '../source/observation.ts';
import { observe } from '../source/observe.ts';
import { factsOfCondition } from '../store/changes.ts';
import type { Claimed, Settlement } from '../store/store.ts';
import type { KnownSources } from './known-sources.ts';

/** The effect of one outcome on its source. */
export interface SourceStep {
  /** For the settlement. */
  readonly source?: NonNullable<Settlement['source']>;
  /** For the decision. */
  readonly facts?: SourceFacts;
  /** Its change restricts the source. */
  readonly isRestricted?: boolean;
  /** The new condition of the source, if it has changed. */
  readonly condition?: NewCondition;
}

/** The state of one source after the outcomes of this round so far. */
interface Chain {
  /** The revision of the state before the first outcome; 0 if there was none. */
  readonly begunAt: number;
  /** How many outcomes changed it. In one call, the store gives each change the next revision. */
  changes: number;
  memory: Memory | undefined;
  /** Whether the store has a state now. */
  isStored: boolean;
  /** Whether it had one at any time in this round. The store gives a new state its revision. */
  wasStored: boolean;
}

const NORMAL: SourceStep = {};
const NOT_OBSERVED: SourceStep = { source: 'any' };

/** The states of sources while one round of outcomes is decided. Each outcome is applied to the state after the one before it. */
export class SourceChains {
  readonly #known: KnownSources;
  #chains: Map<string, Chain> | undefined;

  constructor(known: KnownSources) {
    this.#known = known;
  }

  /** Whether the source of a task is surely in its normal state, as far as this process knows. */
  isSurelyNormal({ sourceState }: Claimed): boolean {
    return sourceState === undefined && this.#chains === undefined && this.#known.areNormal;
  }

  /** Applies the next outcome of the round. An outcome without an observation does not change its source. */
  add(claimed: Claimed, claimedAgo: Milliseconds, observation: Observation | undefined, roll: () => Roll): SourceStep {
    if (!observation) return NOT_OBSERVED;
    const chain = this.#chains?.get(claimed.source) ?? this.#begin(claimed, claimedAgo);
    const revision = chain.begunAt + chain.changes;
    const before = chain.memory;
    if (revision === 0 && !observation.rateLimit && changesNothing(observation.kind)) return NORMAL;
    const { memory: after, change, source: facts } = observe(before, observation, roll());
    if (!change) return revision === 0 ? { facts } : { source: { revision }, facts };
    this.#chains ??= new Map();
    this.#chains.set(claimed.source, chain);
    chain.changes += 1;
    chain.isStored = change.memory !== undefined;
    chain.memory = chain.isStored ? after : undefined;
    chain.wasStored &&= chain.isStored;
    const condition = newCondition(before, after, change);
    const isRestricted = change.restriction !== undefined;
    if (!condition) return { source: { revision, change }, facts, isRestricted };
    const recorded = { ...change, facts: factsOfCondition(condition) };
    return { source: { revision, change: recorded }, facts, isRestricted, condition };
  }

  /** The sources that this round changes. */
  get changed(): readonly string[] {
    return [...(this.#chains?.keys() ?? [])];
  }

  /** The store has written the round, except outcomes of these sources. */
  taken(but: ReadonlySet<string>): void {
    for (const [source, { begunAt, changes, memory, isStored, wasStored }] of this.#chains ?? []) {
      if (but.has(source)) this.#known.forget(source);
      else if (!isStored) this.#known.wroteNormal(source, begunAt);
      else if (wasStored) this.#known.wrote(source, memory, begunAt + changes);
      else this.#known.forget(source);
    }
  }

  #begin({ source, sourceState }: Claimed, claimedAgo: Milliseconds): Chain {
    const { revision, memory } = this.#known.stateOf(source, sourceState, claimedAgo);
    return { begunAt: revision, changes: 0, memory, isStored: revision > 0, wasStored: revision > 0 };
  }
}
