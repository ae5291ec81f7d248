import { fingerprintOf, hash } from '../failure/classify/fingerprint.ts';
import { ownFrame } from '../failure/classify/stack.ts';
import type { Because, Decision } from '../failure/decide.ts';
import { addSightings, type FailureGroup, groupsIn, type Sample, type SightedAs } from '../failure/groups.ts';
import type { Failure, Outcome } from '../failure/outcome.ts';
import { remember } from '../remember.ts';
import { type FailureStore, MOST_FAILURE_GROUPS, type Sighted } from '../store/failure-groups.ts';
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

/**
 * The groups that a store keeps, those that failed last first, with the entries that are not in them yet. Of very many entries, only
 * the oldest are added, and `areMore` is true. Writes nothing.
 */
export async function withNewFailures(
  failures: FailureStore,
): Promise<{ readonly groups: readonly FailureGroup[]; readonly areMore: boolean }> {
  const { revision } = await failures.entries(0);
  const kept = new Map((await failures.groups()).map((group) => [group.id, group]));
  const { revision: after, entries } = await failures.entries(AT_ONCE);
  // Entries that another process has added to the groups meanwhile would be missing in both.
  if (after !== revision) return withNewFailures(failures);
  for (const { at, sightings } of entries) addSightings(kept, sightings, at);
  const all = [...kept.values()];
  const groups = entries.length === 0 ? all : all.sort((a, b) => b.lastAt - a.lastAt).slice(0, MOST_FAILURE_GROUPS);
  return { groups, areMore: entries.length === AT_ONCE };
}

/**
 * What the outcome of an execution says of groups of failures. Undefined for a task that has not failed. Settlements that say the same get
 * the same objects, so that a store writes them once.
 */
export function sightingOf(
  { type, source, lastFailure }: Claimed,
  outcome: Outcome,
  { next, because }: Decision,
): Sighted | undefined {
  const fingerprint = lastFailure?.fingerprint;
  const before = fingerprint === undefined ? undefined : groupId(type, fingerprint);
  if (outcome.kind === 'failure') {
    const group = groupId(type, fingerprintOf(outcome.failure));
    return { as: sightedAs(next, source, because, before, group), sample: sampleOf(type, outcome.failure, group) };
  }
  return before === undefined ? undefined : { as: sightedAs(next, source, because, before) };
}

const knownSightings = new Map<string, SightedAs>();

function sightedAs(
  next: Decision['next'],
  source: string,
  { policyVersion }: Because,
  before: string | undefined,
  group?: string,
): SightedAs {
  const key = `${next} ${before} ${group} ${policyVersion} ${source}`;
  let as: Writable<SightedAs> | undefined = knownSightings.get(key);
  if (as === undefined) {
    as = { next, source, policyVersion };
    if (before !== undefined) as.before = before;
    if (group !== undefined) as.group = group;
    remember(knownSightings, key, as);
  }
  return as;
}

/** The last sample of each group, and the stack that it was made from. */
const knownSamples = new Map<string, { readonly sample: Sample; readonly stack: string | undefined }>();

function sampleOf(type: string, failure: Failure, group: string): Sample {
  const { kind, reason, name, stack } = failure;
  const message = lastError(failure.message);
  const known = knownSamples.get(group);
  if (known && known.stack === stack && isSame(known.sample, failure, message)) return known.sample;
  const frame = ownFrame(stack);
  const fingerprint = fingerprintOf(failure);
  const sample: Writable<Sample> = { type, fingerprint, kind, reason, name, message };
  if (frame !== undefined) sample.frame = frame;
  remember(knownSamples, group, { sample, stack });
  return sample;
}

/** Type and fingerprint are those of the group. */
function isSame(sample: Sample, { kind, reason, name }: Failure, message: string): boolean {
  return sample.message === message && sample.kind === kind && sample.reason === reason && sample.name === name;
}

function groupId(type: string, fingerprint: string): string {
  const name = `${type}\n${fingerprint}`;
  let id = knownIds.get(name);
  if (id === undefined) {
    id = hash(name).slice(0, 10);
    remember(knownIds, name, id);
  }
  return id;
}

const knownIds = new Map<string, string>();
