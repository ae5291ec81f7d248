import type { RedriveFilterOptions } from '../../queue/redrives.ts';
import { REDRIVABLE_STATES, type RedrivableState } from '../../redrive.ts';
import type { RedriveFilter } from '../../store/redrives.ts';
import { rfc3339 } from '../../views/times.ts';
import { usage } from '../problem.ts';
import { FILTER_KEYS, parseTerms, printTerms } from './filter.ts';
import { parsePastMoment } from './moment.ts';

export interface RedriveFlags {
  readonly note?: string;
  readonly rate?: string;
  readonly endedAfter?: string;
  readonly endedBefore?: string;
  readonly acceptDuplicate?: boolean;
  readonly dryRun?: boolean;
}

/** The keys of a filter that `list` has, and those that only ended tasks have. */
const KEYS = { ...FILTER_KEYS, fingerprint: 'fingerprints' } as const;

/** @throws Problem for an invalid filter, and for states that are not over. */
export function redriveFilter(terms: readonly string[], flags: RedriveFlags, now: Date): RedriveFilterOptions {
  const { states, ...filter } = parseTerms(terms.join(' '), KEYS);
  const waiting = states?.find((state) => !(REDRIVABLE_STATES as readonly string[]).includes(state));
  if (waiting !== undefined) {
    throw usage(`a redrive cannot put back what is ${waiting}`, { hints: [`states: ${REDRIVABLE_STATES.join(', ')}`] });
  }
  const { endedAfter, endedBefore } = flags;
  return {
    ...filter,
    ...(states && { states: states as readonly RedrivableState[] }),
    ...(endedAfter !== undefined && { endedFrom: parsePastMoment(endedAfter, now, '--ended-after') }),
    ...(endedBefore !== undefined && { endedBefore: parsePastMoment(endedBefore, now, '--ended-before') }),
  };
}

/** A stored filter, written as a person gives it. */
export function printRedriveFilter({ reasons, families, endedFrom, endedBefore, ...filter }: RedriveFilter): string {
  const all = [...(reasons ?? []), ...(families ?? []).map((family) => `${family}.*`)];
  return [
    printTerms({ ...filter, ...(all.length > 0 && { reasons: all }) }, KEYS),
    ...(endedFrom === undefined ? [] : [`--ended-after ${rfc3339(endedFrom)}`]),
    ...(endedBefore === undefined ? [] : [`--ended-before ${rfc3339(endedBefore)}`]),
  ].join(' ');
}
