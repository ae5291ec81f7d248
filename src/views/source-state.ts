import { formatDuration, type Milliseconds } from '../duration.ts';
import type { SourceFacts } from '../failure/decide.ts';
import { formatPace, formatRate, type Limits } from '../pace.ts';
import { aged } from '../source/memory.ts';
import { readMemory } from '../source/stored.ts';
import { type Trouble, troubleOf } from '../source/trouble.ts';
import type { Restriction, SourceRecord } from '../store/store.ts';
import { doneBy } from './done-by.ts';
import { plural } from './plural.ts';

/**
 * How a source is shown. `held`: by an operator. `needs_person`: until somebody releases it. `down`: until the next probe.
 * `asked_to_wait`: until its Retry-After is over. `probing`: it is down, and one task at a time tests it. `ramping`: it works again, and
 * its tasks are released slowly. `limited`: somebody set a limit, or it said that little of its own limit is left. `watched`: it failed
 * lately, but it is not known to be down. If several apply, the first one is shown.
 */
export type ShownSourceState =
  | 'held'
  | 'needs_person'
  | 'down'
  | 'asked_to_wait'
  | 'probing'
  | 'ramping'
  | 'limited'
  | 'watched'
  | 'normal';

/** A source with what its memory says, if it has one that can be read. */
export interface SourceSeen {
  readonly record: SourceRecord;
  readonly trouble?: Trouble;
}

/** A source as it is shown, from its record. What it failed by too long ago is forgotten. */
export function seenSource(record: SourceRecord): SourceSeen {
  const { state, ...rest } = record;
  if (!state) return { record };
  const trouble = troubleOf(aged(readMemory(state.memory), state.age));
  if (!trouble) return { record: state.restriction ? record : rest };
  return { record, trouble };
}

export function shownSourceState({ hold, state, limits, tokens }: SourceRecord): ShownSourceState {
  const restriction = state?.restriction;
  if (hold) return 'held';
  if (!restriction) return limits ? 'limited' : state || tokens !== undefined ? 'watched' : 'normal';
  if (restriction.cause === 'needs_person') return 'needs_person';
  if (state.opensIn !== 0) return restriction.probing ? 'down' : 'asked_to_wait';
  return restriction.probing ? 'probing' : restriction.ramping ? 'ramping' : 'limited';
}

export function sourceStateWords(state: ShownSourceState): string {
  return state === 'needs_person' ? 'needs a person' : state.replaceAll('_', ' ');
}

/** What a failure of one of its tasks would be decided with, as far as the record tells. */
export function sourceFacts(source: SourceSeen | undefined): SourceFacts {
  const state = source ? shownSourceState(withoutHold(source.record)) : 'normal';
  const shutFor = source?.record.state?.opensIn ?? 0;
  if (state === 'needs_person') return { standing: 'needs_person', shutFor };
  return { standing: source?.record.state?.restriction?.probing ? 'down' : 'open', shutFor };
}

function withoutHold({ hold: _, ...record }: SourceRecord): SourceRecord {
  return record;
}

/** Whether none of its tasks starts at present, but for a probe. */
export function holdsTasks(state: ShownSourceState): boolean {
  return ['held', 'needs_person', 'down', 'asked_to_wait', 'probing'].includes(state);
}

/** Why it is in this state: `by eva 31m ago: NAS is moved`, `down for 31m: net.refused, 4 probes failed`. */
export function sourceCause({ record, trouble }: SourceSeen, now: number): string {
  const { hold, state, limits, tokens } = record;
  switch (shownSourceState(record)) {
    case 'held':
      return hold ? doneBy(hold, hold.at, now) : '';
    case 'needs_person':
      return needWords(trouble);
    case 'down':
    case 'probing':
      return downWords(trouble);
    case 'asked_to_wait':
      return `asked to wait${reasonWords(trouble)}`;
    case 'ramping':
      return state?.restriction?.cause === 'rate_limit' ? 'the wait that it asked for is over' : 'works again';
    case 'limited':
      if (state?.restriction) return `it said that little of its own limit is left${rateWords(state.restriction)}`;
      return limits ? `at most ${limitWords(limits)}, set ${doneBy(limits.by, limits.by.at, now)}` : '';
    case 'watched':
      return trouble ? `failed ${formatDuration(trouble.sinceMs)} ago${reasonWords(trouble)}` : tokenWords(tokens);
    case 'normal':
      return '';
  }
}

/** What ends it, and when: `probe in 22s`, `opens in 2m`, `5/s, drained in 9m or more`. `ready`: how many of its tasks wait. */
export function sourceNext(record: SourceRecord, ready: number, now: number): string {
  const { hold, state, running = 0 } = record;
  const restriction = state?.restriction;
  switch (shownSourceState(record)) {
    case 'held':
      return hold?.until === undefined ? 'until it is released' : `goes on ${inTime(hold.until - now)}`;
    case 'needs_person':
      return 'until it is released';
    case 'down':
    case 'asked_to_wait': {
      const opensIn = state?.opensIn;
      if (opensIn === undefined) return 'until it is released';
      return `${restriction?.probing ? 'probe' : 'opens'} ${inTime(opensIn)}`;
    }
    case 'probing':
      return running > 0 ? 'a probe runs' : 'the next task is a probe';
    case 'ramping': {
      const pace = restriction?.pace;
      const drain = drainMs(record, ready);
      const parts = [
        pace ? `${formatRate(pace.perSecond)} now` : '',
        drain === undefined ? '' : `backlog gone in ${formatDuration(drain)} or more`,
      ];
      return parts.filter((part) => part !== '').join(', ');
    }
    case 'limited':
    case 'watched':
    case 'normal':
      return '';
  }
}

/**
 * How long its waiting tasks still take at the pace of now, if no new ones come. Undefined where no pace is known or none waits.
 */
export function drainMs({ state }: SourceRecord, ready: number): Milliseconds | undefined {
  const { ramping, pace } = state?.restriction ?? {};
  if (!ramping || !pace || state?.opensIn !== 0 || ready === 0) return undefined;
  return Math.ceil(ready / pace.perSecond) * 1_000;
}

/** `10/s and 4 at a time`. */
export function limitWords({ pace, concurrency }: Limits): string {
  const parts = [pace ? formatPace(pace) : '', concurrency ? `${concurrency} at a time` : ''];
  return parts.filter((part) => part !== '').join(' and ');
}

/** A source in a sentence, as it follows the name of a task: `api has been down for 31m: net.refused; the next probe is in 22s`. */
export function sourceSentence({ record, trouble }: SourceSeen, now: number): string {
  const { name, hold, state, running = 0 } = record;
  const { cause, pace } = state?.restriction ?? {};
  const opensIn = state?.opensIn;
  switch (shownSourceState(record)) {
    case 'held': {
      const until = hold?.until === undefined ? '' : `, and goes on ${inTime(hold.until - now)}`;
      return `${name} is held (${hold ? doneBy(hold, hold.at, now) : ''})${until}`;
    }
    case 'needs_person':
      return trouble ? `${name} has needed a person ${needWords(trouble)}` : `${name} needs a person`;
    case 'asked_to_wait': {
      const reason = trouble?.reason === undefined ? '' : ` (${trouble.reason})`;
      return `${name} asked to wait${reason}${opensIn === undefined ? '' : `: none of its tasks starts for ${inFull(opensIn)}`}`;
    }
    case 'down':
      return `${name} is ${downWords(trouble)}${opensIn === undefined ? '' : `. The next probe is ${inTime(opensIn)}`}`;
    case 'probing':
      return `${name} is ${downWords(trouble)}. ${running > 0 ? 'A probe runs' : 'The next task is a probe'}`;
    case 'ramping': {
      const rate = pace ? `, ${formatRate(pace.perSecond)} now` : '';
      return `${name} ${cause === 'rate_limit' ? 'takes requests' : 'works'} again, and its tasks are released slowly${rate}`;
    }
    case 'limited':
      return state?.restriction
        ? `${name} said that little of its own limit is left${rateWords(state.restriction)}`
        : `${name} is not held`;
    case 'watched':
    case 'normal':
      return `${name} is not held`;
  }
}

/** `in 22s`. */
export function inTime(ms: Milliseconds): string {
  return ms <= 0 ? 'now' : `in ${inFull(ms)}`;
}

/** Seconds are enough for what is more than one away. */
function inFull(ms: Milliseconds): string {
  return formatDuration(ms < 1_000 ? Math.max(0, ms) : Math.round(ms / 1_000) * 1_000);
}

/** Of a source that is asked more slowly until its own limit resets. */
function rateWords({ pace }: Restriction): string {
  return pace ? `: ${formatRate(pace.perSecond)} until it resets` : '';
}

function downWords(trouble: Trouble | undefined): string {
  if (!trouble) return 'down';
  const { sinceMs, failedProbes = 0 } = trouble;
  const probes = failedProbes === 0 ? '' : `, ${plural(failedProbes, 'probe', 'probes')} failed`;
  return `down for ${formatDuration(sinceMs)}${reasonWords(trouble)}${probes}`;
}

function needWords(trouble: Trouble | undefined): string {
  if (!trouble) return '';
  const { sinceMs, reason = '', why } = trouble;
  const since = `for ${formatDuration(sinceMs)}`;
  const after = reason === '' ? '' : ` (${reason})`;
  if (why === 'long_retry_after') return `${since}: it asked for a longer wait than maxRetryAfter allows${after}`;
  if (why === 'held_too_long') return `${since}: it has not answered for 7 days${after}`;
  return `${since}${reasonWords(trouble)}`;
}

function reasonWords({ reason = '', message = '' }: Partial<Trouble> = {}): string {
  if (reason === '') return '';
  return message === '' ? `: ${reason}` : `: ${reason} (${message})`;
}

function tokenWords(tokens: number | undefined): string {
  return tokens === undefined ? '' : `${plural(Math.floor(tokens), 'token', 'tokens')} for retries left`;
}
