import { InvalidFilterError, parseFilter } from '../../filter.ts';
import { REDRIVABLE_STATES } from '../../redrive.ts';
import { filterFrom } from './filter.ts';
import { parsePastMoment } from './moment.ts';

export interface RedriveFlags {
  readonly note?: string;
  readonly rate?: string;
  readonly endedAfter?: string;
  readonly endedBefore?: string;
  readonly acceptDuplicate?: boolean;
  readonly dryRun?: boolean;
}

/**
 * The filter of a redrive, as text. `--ended-after` and `--ended-before` are its terms `since` and `until`.
 * @throws Problem for an invalid time; InvalidFilterError, also for states that are not over.
 */
export function redriveFilter(terms: readonly string[], { endedAfter, endedBefore }: RedriveFlags, now: Date): string {
  const time = (key: string, flag: string, given: string | undefined) =>
    given === undefined ? [] : [`${key}:${parsePastMoment(given, now, flag).toISOString()}`];
  const all = [
    ...terms,
    ...time('since', '--ended-after', endedAfter),
    ...time('until', '--ended-before', endedBefore),
  ];
  const text = filterFrom(all);
  const over: readonly string[] = REDRIVABLE_STATES;
  const waiting = parseFilter(text, now).states?.find((state) => !over.includes(state));
  if (waiting === undefined) return text;
  const hint = `states: ${REDRIVABLE_STATES.join(', ')}`;
  throw new InvalidFilterError(
    text,
    text.indexOf(waiting),
    waiting.length,
    `a redrive cannot put back what is ${waiting}`,
    hint,
  );
}
