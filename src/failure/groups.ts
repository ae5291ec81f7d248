import type { FailureKind } from './outcome.ts';

/** What failures of one type have in common that were thrown at the same place with alike messages: the same fingerprint. */
export interface FailureGroup {
  /** Made from the type and the fingerprint. */
  readonly id: string;
  readonly type: string;
  readonly fingerprint: string;
  readonly kind: FailureKind;
  readonly reason: string;
  readonly name: string;
  /** The message of its newest failure, and the first own frame of its stack. */
  readonly message: string;
  readonly frame?: string;
  /** The task of its newest failure. */
  readonly task: number;
  readonly firstAt: number;
  readonly lastAt: number;
  readonly count: number;
  /** How many tasks ended or wait for a person with this as their last failure. */
  readonly dead: number;
  readonly needsManual: number;
  /** How the executions after such a failure ended. Others, such as deferrals, are not counted. */
  readonly retries: { readonly succeeded: number; readonly failed: number };
  /** How many failures each source and each version of the policy had: the most frequent, the others as `_other`. */
  readonly sources: Counts;
  readonly policyVersions: Counts;
  /** How many failures it had in each of the last 48 hours with any, by the hour's beginning. */
  readonly hours: Counts;
  /** What people said of it, the newest last, at most 20. */
  readonly actions: readonly FailureGroupAction[];
}

type Counts = Readonly<Record<string, number>>;

/** `note` changes nothing but what was said of it. */
export const FAILURE_VERBS = ['acknowledge', 'mute', 'resolve', 'reopen', 'note'] as const;
export type FailureVerb = (typeof FAILURE_VERBS)[number];

export interface FailureGroupAction {
  readonly verb: FailureVerb;
  readonly at: number;
  readonly actor: string;
  readonly note?: string;
  /** When a mute ends. */
  readonly until?: number;
}

/** `regressed`: it was resolved and has failed again since. */
export type FailureGroupState = 'open' | 'acknowledged' | 'muted' | 'resolved' | 'regressed';

/** What the settlements of some tasks say of groups. */
export interface Sighting extends SightedAs {
  /** The last of these tasks. */
  readonly task: number;
  /** The tasks before it whose settlements said the same; absent if there are none. */
  readonly others?: readonly number[];
}

/** What a settlement says of groups, whichever task it is of. */
export interface SightedAs {
  /** The group of its failure. */
  readonly group?: string;
  /** The group of the failure before. */
  readonly before?: string;
  readonly next: string;
  readonly source: string;
  readonly policyVersion: string;
}

/** What a group is of, from a failure. */
export type Sample = Pick<FailureGroup, 'type' | 'fingerprint' | 'kind' | 'reason' | 'name' | 'message' | 'frame'>;

/** The sightings of one settle call, with a sample of each group. */
export interface Sightings {
  readonly samples: Readonly<Record<string, Sample>>;
  readonly seen: readonly Sighting[];
}

const MOST_SOURCES = 20;
const MOST_VERSIONS = 10;
const MOST_HOURS = 48;
const MOST_ACTIONS = 20;
const OTHER = '_other';
const HOUR = 3_600_000;

/** The groups of which these speak. */
export function groupsIn({ seen }: Sightings): readonly string[] {
  return seen.flatMap(({ group, before }) => [group, before].filter((id) => id !== undefined));
}

/** Adds the sightings of one settle call to groups, which are by id. A failure without a group makes a new one. */
export function addSightings(groups: Map<string, FailureGroup>, { samples, seen }: Sightings, at: number): void {
  for (const { task, others = [], group: id, before, next, source, policyVersion } of seen) {
    const times = others.length + 1;
    const sample = id === undefined ? undefined : samples[id];
    if (id !== undefined && sample) {
      const known = groups.get(id) ?? newGroup(id, sample, at);
      const isNewest = at >= known.lastAt;
      groups.set(id, {
        ...known,
        ...(isNewest && { message: sample.message, task }),
        ...(isNewest && sample.frame !== undefined && { frame: sample.frame }),
        count: known.count + times,
        firstAt: Math.min(known.firstAt, at),
        lastAt: Math.max(known.lastAt, at),
        sources: countedIn(known.sources, source, times, MOST_SOURCES),
        policyVersions: countedIn(known.policyVersions, policyVersion, times, MOST_VERSIONS),
        hours: newest(countedIn(known.hours, String(at - (at % HOUR)), times, Number.POSITIVE_INFINITY)),
      });
    }
    const last = before === undefined ? undefined : groups.get(before);
    if (last && (id !== undefined || next === 'succeeded')) {
      const { succeeded, failed } = last.retries;
      const retries =
        id === undefined ? { succeeded: succeeded + times, failed } : { succeeded, failed: failed + times };
      groups.set(last.id, { ...last, retries });
    }
    const ended = groups.get(id ?? before ?? '');
    if (ended && next === 'dead') groups.set(ended.id, { ...ended, dead: ended.dead + times });
    if (ended && next === 'needs_manual') groups.set(ended.id, { ...ended, needsManual: ended.needsManual + times });
  }
}

function newGroup(id: string, sample: Sample, at: number): FailureGroup {
  const counts = { count: 0, dead: 0, needsManual: 0, retries: { succeeded: 0, failed: 0 } };
  const none = { sources: {}, policyVersions: {}, hours: {}, actions: [] };
  return { id, ...sample, task: 0, firstAt: at, lastAt: at, ...counts, ...none };
}

function countedIn(counts: Counts, name: string, times: number, most: number): Counts {
  const key = Object.hasOwn(counts, name) || Object.keys(counts).length < most ? name : OTHER;
  return { ...counts, [key]: (Object.hasOwn(counts, key) ? (counts[key] as number) : 0) + times };
}

/** Keys that are numbers are in their order. */
function newest(hours: Counts): Counts {
  const entries = Object.entries(hours);
  if (entries.length <= MOST_HOURS) return hours;
  return Object.fromEntries(entries.sort(([a], [b]) => Number(a) - Number(b)).slice(-MOST_HOURS));
}

/** The oldest is forgotten if there are too many, but never the one from which the group has its state. */
export function withAction(group: FailureGroup, action: FailureGroupAction): FailureGroup {
  const actions = [...group.actions, action];
  const decisive = actions.findLast(isDecisive);
  const forgotten = actions.length > MOST_ACTIONS ? actions.find((each) => each !== decisive) : undefined;
  return { ...group, actions: actions.filter((each) => each !== forgotten) };
}

export function stateOfGroup({ actions, lastAt }: FailureGroup, now: number): FailureGroupState {
  const last = actions.findLast(isDecisive);
  switch (last?.verb) {
    case undefined:
    case 'reopen':
      return 'open';
    case 'acknowledge':
      return 'acknowledged';
    case 'mute':
      return last.until !== undefined && last.until <= now ? 'open' : 'muted';
    case 'resolve':
      return lastAt > last.at ? 'regressed' : 'resolved';
  }
}

type Decisive = FailureGroupAction & { readonly verb: Exclude<FailureVerb, 'note'> };

function isDecisive(action: FailureGroupAction): action is Decisive {
  return action.verb !== 'note';
}

/** The share of retries that succeeded, and between which shares it truly lies in 19 of 20 cases. */
export interface RetryHelps {
  readonly share: number;
  readonly low: number;
  readonly high: number;
}

/** Wilson's interval. Null if nothing was retried. */
export function retryHelps({ succeeded, failed }: FailureGroup['retries']): RetryHelps | null {
  const n = succeeded + failed;
  if (n === 0) return null;
  const z = 1.96;
  const share = succeeded / n;
  const middle = share + z ** 2 / (2 * n);
  const half = z * Math.sqrt((share * (1 - share)) / n + z ** 2 / (4 * n ** 2));
  const bounded = (value: number) => Math.min(1, Math.max(0, value / (1 + z ** 2 / n)));
  return { share, low: bounded(middle - half), high: bounded(middle + half) };
}
