import { FULL } from '../budget.ts';
import type { Limits } from '../pace.ts';
import type { SourceCounts } from '../store/store.ts';
import { doneByJson } from './done-by.ts';
import { GLYPHS, type Style } from './glyphs.ts';
import {
  drainMs,
  holdsTasks,
  limitWords,
  type ShownSourceState,
  type SourceSeen,
  shownSourceState,
  sourceCause,
  sourceNext,
  sourceStateWords,
} from './source-state.ts';
import { rfc3339 } from './times.ts';

/** A source as one line of a list. Its cause holds names and notes as somebody wrote them: make them safe for where they are shown. */
export interface ListedSource extends SourceCounts, SourceSeen {
  readonly state: ShownSourceState;
  /** The state in words. */
  readonly words: string;
  readonly holdsTasks: boolean;
  readonly glyph: string;
  readonly style: Style;
  readonly cause: string;
  readonly next: string;
  /** `12/20`, or empty where it is full. */
  readonly budget: string;
  /** `10/s and 4 at a time`, or empty where there are none. */
  readonly limits: string;
}

export function listedSource(seen: SourceSeen, counts: SourceCounts, now: number): ListedSource {
  const { record } = seen;
  const state = shownSourceState(record);
  return {
    ...seen,
    ...counts,
    state,
    words: sourceStateWords(state),
    holdsTasks: holdsTasks(state),
    ...SIGNS[state],
    cause: sourceCause(seen, now),
    next: sourceNext(record, counts.ready, now),
    budget: record.tokens === undefined ? '' : `${Math.floor(record.tokens)}/${FULL}`,
    limits: record.limits ? limitWords(record.limits) : '',
  };
}

export const SIGNS: Readonly<Record<ShownSourceState, { readonly glyph: string; readonly style: Style }>> = {
  held: { glyph: GLYPHS.held, style: 'waiting' },
  needs_person: { glyph: GLYPHS.needs_manual, style: 'human' },
  down: { glyph: GLYPHS.held, style: 'waiting' },
  asked_to_wait: { glyph: GLYPHS.held, style: 'waiting' },
  probing: { glyph: GLYPHS.retrying, style: 'waiting' },
  ramping: { glyph: GLYPHS.retrying, style: 'active' },
  limited: { glyph: '', style: 'idle' },
  watched: { glyph: '', style: 'idle' },
  normal: { glyph: '', style: 'idle' },
};

/** What is not known is null, so that every source has the same members. */
export function sourceJson({ record, trouble, state, ready, running, cause }: ListedSource, now: number): object {
  const { name, hold, state: stored, limits, tokens } = record;
  const restriction = stored?.restriction;
  return {
    name,
    state,
    since: trouble ? rfc3339(now - trouble.sinceMs) : hold ? rfc3339(hold.at) : null,
    cause: cause === '' ? null : cause,
    reason: trouble?.reason ?? null,
    error: trouble?.message ?? null,
    ready,
    running,
    held: doneByJson(hold),
    held_until: rfc3339(hold?.until),
    opens_in_ms: stored?.opensIn ?? null,
    failed_probes: trouble?.failedProbes ?? null,
    released_per_second: restriction?.pace?.perSecond ?? null,
    drain_at_least_ms: drainMs(record, ready) ?? null,
    tokens: Math.round((tokens ?? FULL) * 10) / 10,
    limits: limits ? { ...limitsJson(limits), set_by: { ...doneByJson(limits.by), origin: limits.by.origin } } : null,
  };
}

export function limitsJson({ pace, concurrency }: Limits): object {
  return {
    per_second: pace?.perSecond ?? null,
    burst: pace?.burst ?? null,
    concurrency: concurrency ?? null,
  };
}
