import { fingerprintOf, hash } from '../failure/classify/fingerprint.ts';
import { ownFrame } from '../failure/classify/stack.ts';
import type { Decision } from '../failure/decide.ts';
import { addSightings, groupsIn, type Sample, type Sighting } from '../failure/groups.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import type { FailureStore, Sighted } from '../store/failure-groups.ts';
import { lastError } from '../store/last-error.ts';
import type { Claimed } from '../store/store.ts';
import type { Writable } from '../writable.ts';

/** How many settle calls are added to groups at once. */
const AT_ONCE = 200;

/** Adds some entries to their groups. Returns whether there may be more. */
export async function gatherFailures(failures: FailureStore): Promise<boolean> {
  const { revision, entries } = await failures.entries(AT_ONCE);
  if (entries.length === 0) return false;
  const ids = new Set(entries.flatMap(({ sightings }) => groupsIn(sightings)));
  const groups = new Map((await failures.groups([...ids])).map((group) => [group.id, group]));
  for (const { at, sightings } of entries) addSightings(groups, sightings, at);
  await failures.write(
    revision,
    entries.map(({ id }) => id),
    [...groups.values()],
  );
  return true;
}

/** What the outcome of an execution says of groups of failures. Undefined for a task that has not failed. */
export function sightingOf(claimed: Claimed, outcome: Outcome, decision: Decision): Sighted | undefined {
  const before = claimed.lastFailure?.fingerprint;
  const failure = outcome.kind === 'failure' ? outcome.failure : undefined;
  if (failure === undefined && before === undefined) return undefined;
  const { type, source, lease } = claimed;
  const { next, because } = decision;
  const sighting: Writable<Sighting> = { task: lease.task, next, source, policyVersion: because.policyVersion };
  if (before !== undefined) sighting.before = groupId({ type, fingerprint: before });
  if (failure === undefined) return { sighting };
  const sample = sampleOf(type, failure);
  sighting.group = groupId(sample);
  return { sample, sighting };
}

function sampleOf(type: string, failure: Failure): Sample {
  const { kind, reason, name, message, stack } = failure;
  const frame = ownFrame(stack);
  const fingerprint = fingerprintOf(failure);
  const sample: Writable<Sample> = { type, fingerprint, kind, reason, name, message: lastError(message) };
  if (frame !== undefined) sample.frame = frame;
  return sample;
}

function groupId({ type, fingerprint }: Pick<Sample, 'type' | 'fingerprint'>): string {
  const name = `${type}\n${fingerprint}`;
  let id = ids.get(name);
  if (id === undefined) {
    if (ids.size >= MOST_IDS) ids.clear();
    id = hash(name).slice(0, 10);
    ids.set(name, id);
  }
  return id;
}

/** The ids of groups that were seen last. */
const ids = new Map<string, string>();
const MOST_IDS = 1_000;
