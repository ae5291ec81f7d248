import type { Decision } from '../../src/failure/decide.ts';
import type { Restriction, SourceChange, SourceStore } from '../../src/store/store.ts';
import { because, type Scene } from './scene.ts';

/** The part of a store that keeps states of sources. */
export function sourcesOf(scene: Scene): SourceStore {
  return scene.store.sources;
}

/** A change of a source that was made from this revision. */
export function from(
  revision: number,
  { memory = 'm', restriction, tokens = 0, refunds = [], facts }: Partial<NonNullable<SourceChange['change']>> = {},
): SourceChange & { readonly change: NonNullable<SourceChange['change']> } {
  return {
    revision,
    change: { memory, tokens, refunds, ...(restriction && { restriction }), ...(facts !== undefined && { facts }) },
  };
}

/** The source is as good as new. */
export function asNew(revision: number, tokens = 0): SourceChange {
  return { revision, change: { tokens, refunds: [] } };
}

/** Puts a source under a restriction, or under none, whatever its state was. */
export async function restrict(scene: Scene, source: string, restriction?: Restriction): Promise<void> {
  const sources = sourcesOf(scene);
  const { revision = 0 } = (await sources.state(source)) ?? {};
  const changed = await sources.change(source, from(revision, restriction ? { restriction } : {}));
  if (!changed) throw new Error(`The state of ${source} was changed meanwhile.`);
}

/** A retry after a failure at the fault of its source. */
export function retryWithToken(after = 0): Decision {
  return {
    next: 'scheduled',
    after,
    reason: 'http.503',
    charge: { to: 'task', reason: 'http.503', kind: 'transient' },
    lostInARow: 0,
    needsToken: true,
    because: because(),
  };
}

/** Its attempts are used up, and it waits for the verdict on its source. */
export function lastStraw(after = 60_000): Decision {
  return {
    next: 'scheduled',
    after,
    reason: 'http.503',
    charge: { to: 'task', reason: 'http.503', kind: 'transient' },
    lostInARow: 0,
    verdict: 'http.503',
    because: because(),
  };
}
