import { type DurationInput, duration, type Milliseconds } from '../duration.ts';
import { FailureGroupNotFoundError, InvalidInputError } from '../errors.ts';
import {
  type FailureGroup,
  type FailureGroupState,
  type FailureVerb,
  type RetryHelps,
  retryHelps,
  stateOfGroup,
  withAction,
} from '../failure/groups.ts';
import { parseFilter, refuseOtherKeys } from '../filter.ts';
import { refuseUnknown, text } from '../options.ts';
import { fits } from '../store/filter.ts';
import type { Store } from '../store/store.ts';
import { gatherFailures, withNewFailures } from '../worker/failure-groups.ts';
import { type ActionOptions, by } from './operate.ts';

/** A group of alike failures, as of now. */
export interface FailureGroupView extends FailureGroup {
  readonly state: FailureGroupState;
  /** How many of the retries after such a failure succeeded; null if nothing was retried. */
  readonly retryHelps: RetryHelps | null;
}

export interface FailureListOptions {
  /** Only groups that fit, as in `list`: `type:sync reason:http.* 'source:imap:*' error:"timed out" since:2h`. Times: its last failure. */
  readonly filter?: string;
}

export interface MuteOptions extends ActionOptions {
  /** How long. Default: until it is reopened. */
  readonly for?: DurationInput;
}

const FILTER_KEYS = ['type', 'source', 'reason', 'fingerprint', 'error', 'since', 'until'] as const;
const LONGEST_FILTER = 10_000;

/** An id has ten characters; its beginning is enough if no other begins with it. */
const LONGEST_ID = 64;

/**
 * The operations of `holdfast.failures`. Failures are in one group if they are of the same type and have the same fingerprint. Each
 * failure is counted in the transaction that writes it. Groups outlive their tasks; a store keeps the thousand that failed last.
 */
export class Failures {
  readonly #store: Store;

  /** Made by `openHoldfast`. */
  constructor(store: Store) {
    this.#store = store;
  }

  /** All groups, or those that fit a filter; those that failed last first. @throws InvalidInputError for an invalid filter. */
  async list(options: FailureListOptions = {}): Promise<readonly FailureGroupView[]> {
    refuseUnknown(options, ['filter'], 'failures.list');
    const { upkeep } = this.#store;
    const given = options.filter === undefined ? '' : text(options.filter, 'filter', LONGEST_FILTER);
    refuseOtherKeys(given, FILTER_KEYS);
    const { endedFrom, endedBefore, ...filter } = parseFilter(given, new Date(upkeep.now()));
    return (await allGroups(this.#store))
      .filter(
        ({ sources, message, lastAt, ...group }) =>
          lastAt >= (endedFrom ?? lastAt) &&
          lastAt < (endedBefore ?? lastAt + 1) &&
          fits(filter, { ...group, source: Object.keys(sources), error: message }),
      )
      .map((group) => viewOf(group, upkeep.now()));
  }

  /** @throws FailureGroupNotFoundError. */
  async get(id: string): Promise<FailureGroupView> {
    const wanted = text(id, 'The id of a group of failures', LONGEST_ID);
    const found = (await this.list()).filter((group) => group.id.startsWith(wanted));
    const [one] = found;
    if (wanted === '' || !one || found.length > 1) throw new FailureGroupNotFoundError(wanted);
    return one;
  }

  /** Somebody knows of it. @throws FailureGroupNotFoundError. */
  acknowledge(id: string, options: ActionOptions = {}): Promise<FailureGroupView> {
    return this.#act('acknowledge', id, options);
  }

  /** It does not matter: `holdfast failures` leaves it out, for a time or until it is reopened. @throws FailureGroupNotFoundError. */
  async mute(id: string, options: MuteOptions = {}): Promise<FailureGroupView> {
    const { for: lasts, ...whose } = options;
    if (lasts === undefined) return this.#act('mute', id, whose);
    return this.#act('mute', id, whose, duration(lasts, 'for'));
  }

  /** It is mended. If it fails again, its state is `regressed`. @throws FailureGroupNotFoundError. */
  resolve(id: string, options: ActionOptions = {}): Promise<FailureGroupView> {
    return this.#act('resolve', id, options);
  }

  /** Takes back what was said of it. @throws FailureGroupNotFoundError. */
  reopen(id: string, options: ActionOptions = {}): Promise<FailureGroupView> {
    return this.#act('reopen', id, options);
  }

  /** Says something of it, which changes nothing else. @throws InvalidInputError without a note; FailureGroupNotFoundError. */
  async note(id: string, options: ActionOptions): Promise<FailureGroupView> {
    if (options.note === undefined || options.note.trim() === '') {
      throw new InvalidInputError('failures.note needs a `note`: what is to be said of the group.');
    }
    return this.#act('note', id, options);
  }

  async #act(verb: FailureVerb, id: string, options: ActionOptions, lasts?: Milliseconds): Promise<FailureGroupView> {
    const whose = by(options, `failures.${verb}`);
    const { failures, upkeep } = this.#store;
    const { id: known } = await this.get(id);
    // What `get` has found may not be in a group that the store keeps yet.
    while (await gatherFailures(failures));
    for (;;) {
      // The revision first: a change after it makes the write fail.
      const { revision } = await failures.entries(0);
      const [group] = await failures.groups([known]);
      if (!group) throw new FailureGroupNotFoundError(known);
      const now = upkeep.now();
      const changed = withAction(group, {
        verb,
        at: now,
        ...whose,
        ...(lasts !== undefined && { until: now + lasts }),
      });
      if (await failures.write(revision, [], [changed])) return viewOf(changed, upkeep.now());
    }
  }
}

/** All groups, those that failed last first, with the failures that have not been added to them yet. Writes nothing. */
export async function failureGroupsSeen({ failures, upkeep }: Store): Promise<readonly FailureGroupView[]> {
  const now = upkeep.now();
  return (await withNewFailures(failures)).groups.map((group) => viewOf(group, now));
}

/** Few new failures are added only to what is returned. So a reader need not wait for a transaction of another process. */
async function allGroups({ failures }: Store): Promise<readonly FailureGroup[]> {
  const { groups, areMore } = await withNewFailures(failures);
  if (!areMore) return groups;
  while (await gatherFailures(failures));
  return (await withNewFailures(failures)).groups;
}

function viewOf(group: FailureGroup, now: number): FailureGroupView {
  return { ...group, state: stateOfGroup(group, now), retryHelps: retryHelps(group.retries) };
}
