import type { Milliseconds } from '../duration.ts';
import type { Roll } from '../failure/jitter.ts';
import type { Refund } from './change.ts';
import type { Evidence, FalseAlarms } from './memory.ts';
import type { Observation } from './observation.ts';

/** The most failed executions that are remembered. Older ones are not refunded. */
const MOST_REMEMBERED = 1_000;

/** The evidence with one more failure. An execution that started before the last event was seen belongs to that event. */
export function withFailure(evidence: Evidence | undefined, seen: Observation): Evidence {
  const { task, execution, startedAgo, reason, message } = seen;
  const isSameEvent = evidence !== undefined && startedAgo >= evidence.eventAgo;
  const failed: readonly Refund[] = [...(evidence?.failed ?? []), { task, execution }];
  return {
    events: (evidence?.events ?? 0) + (isSameEvent ? 0 : 1),
    eventAgo: isSameEvent ? evidence.eventAgo : 0,
    firstAgo: evidence?.firstAgo ?? evidence?.eventAgo ?? 0,
    lastAgo: 0,
    failed: failed.slice(-MOST_REMEMBERED),
    last: { reason, message },
  };
}

/** After so many false alarms or more, 8 events are needed. */
const MOST_DOUBTS = 2;
/** Failures without an answer between for so long prove an outage, however few they are. */
const LONG_ENOUGH: Milliseconds = 5_000;

/**
 * Whether a source is down: at least two events, and at least two tasks. A task alone may be at fault itself. After false alarms it takes
 * more events, or some time: of a source that fails for half of its calls, two in a row fail all the time.
 */
export function provesOutage(evidence: Evidence, falseAlarms: FalseAlarms | undefined): boolean {
  const { events, firstAgo = 0 } = evidence;
  const doubts = Math.min(MOST_DOUBTS, falseAlarms?.count ?? 0);
  return events >= 2 && (events >= 2 ** (1 + doubts) || firstAgo >= LONG_ENOUGH) && isOfSeveralTasks(evidence);
}

/** A permanent failure of two tasks needs no second event: waiting would not help the first one. */
export function provesNeedOfPerson(evidence: Evidence): boolean {
  return isOfSeveralTasks(evidence);
}

function isOfSeveralTasks({ failed }: Evidence): boolean {
  return failed.some(({ task }) => task !== failed[0]?.task);
}

const FIRST_PROBE: Milliseconds = 5_000;
const LAST_PROBES: Milliseconds = 60_000;
const SPACING = 1.1;

/** The time until the next probe after this many failed ones: 5 s, growing by a tenth up to 60 s, ±20 %. So it is a tenth of the outage so far. */
export function untilProbe(failedProbes: number, roll: Roll): Milliseconds {
  const spacing = Math.min(LAST_PROBES, FIRST_PROBE * SPACING ** failedProbes);
  return Math.round(spacing * (0.8 + 0.4 * roll));
}
