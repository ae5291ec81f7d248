import type { LimitOptions } from '../limits.ts';
import type { ActionOptions } from '../queue/operate.ts';
import type { Operations } from '../queue/operations.ts';
import type { HoldSourceOptions } from '../queue/sources.ts';
import type { ChangeRecord } from '../store/changes.ts';
import type { SourceCounts } from '../store/store.ts';
import {
  changeJson,
  outageJson,
  type Present,
  type SourceHistory,
  sourceHistory,
  spanJson,
} from '../views/source-history.ts';
import { type ListedSource, listedSource, sourceJson } from '../views/source-list.ts';
import { seenSource } from '../views/source-state.ts';
import { rfc3339 } from '../views/times.ts';

/** How many sources are listed that are in their normal state: those with the most tasks. */
export const MOST_OTHERS = 50;

const DAY = 24 * 3_600_000;

/** How many changes are read for the histories of a list, and of one source. */
const MOST_CHANGES = 5_000;

export interface SourcesSeen {
  readonly sources: readonly ListedSource[];
  /** Whether there are others with tasks. */
  readonly more: boolean;
  /** Of each source that was not in its normal state at some time since `since`. */
  readonly histories: ReadonlyMap<string, SourceHistory>;
  readonly since: number;
  readonly now: number;
}

/** The sources that are not in their normal state, the busiest others, and what was the matter in the last hours. */
export async function listedSources(holdfast: Operations, hours = 24): Promise<SourcesSeen> {
  const all = await sourcesOf(holdfast, MOST_OTHERS + 1);
  const special = all.filter(({ state }) => state !== 'normal');
  const others = all.filter(({ state }) => state === 'normal');
  const now = holdfast.now();
  const since = now - (hours / 24) * DAY;
  const changes = await holdfast.administration.changes({ kind: 'source', since, limit: MOST_CHANGES });
  const names = new Set([
    ...changes.map(({ name }) => name),
    ...special.filter(({ state }) => !['limited', 'watched'].includes(state)).map(({ name }) => name),
  ]);
  const byName = new Map<string, ChangeRecord[]>();
  for (const change of changes.toReversed()) {
    const ofName = byName.get(change.name);
    if (ofName) ofName.push(change);
    else byName.set(change.name, [change]);
  }
  const listed = new Map(all.map((source) => [source.name, source]));
  const histories = [...names].map((name) => {
    const source = listed.get(name);
    const present = source ? presentOf(source, now) : {};
    return [name, sourceHistory(byName.get(name) ?? [], present, { since, now })] as const;
  });
  return {
    sources: [...special, ...others.slice(0, MOST_OTHERS)],
    more: others.length > MOST_OTHERS,
    histories: new Map(histories.filter(([, { spans }]) => spans.length > 0)),
    since,
    now,
  };
}

/** The content of `holdfast sources --json`. */
export function sourcesContent({ sources, more, histories, since, now }: SourcesSeen): object {
  return {
    items: sources.map((source) => sourceJson(source, now)),
    more,
    since: rfc3339(since),
    timelines: [...histories].map(([source, { spans }]) => ({ source, spans: spans.map(spanJson) })),
  };
}

export interface SourceShown extends SourceHistory {
  readonly source: ListedSource;
  /** Newest first. */
  readonly changes: readonly ChangeRecord[];
  readonly since: number;
  readonly now: number;
}

/** One source, and what happened to it in the last days. */
export async function shownSource(holdfast: Operations, name: string, days = 7): Promise<SourceShown> {
  const source = await sourceOf(holdfast, name);
  const now = holdfast.now();
  const since = now - days * DAY;
  const changes = await holdfast.administration.changes({ kind: 'source', name, since, limit: MOST_CHANGES });
  const history = sourceHistory(changes.toReversed(), presentOf(source, now), { since, now });
  return { source, ...history, changes, since, now };
}

/** The content of `holdfast sources show NAME --json`. */
export function shownSourceContent({ source, spans, outages, changes, since, now }: SourceShown): object {
  return {
    source: sourceJson(source, now),
    since: rfc3339(since),
    spans: spans.map(spanJson),
    outages: outages.toReversed().map(outageJson),
    changes: changes.map(changeJson),
  };
}

function presentOf({ state, trouble, record }: ListedSource, now: number): Present {
  const { hold } = record;
  const condition = CONDITIONS[trouble?.condition ?? state];
  return {
    ...(condition && trouble && { condition, since: now - trouble.sinceMs }),
    ...(hold && { heldSince: hold.at }),
  };
}

const CONDITIONS: Readonly<Record<string, Exclude<Present['condition'], undefined>>> = {
  needs_person: 'needs_person',
  down: 'down',
  probing: 'down',
  asked_to_wait: 'waits',
  ramping: 'ramping',
};

/** A source before and after an action. */
export interface SourceActedOn {
  readonly before: ListedSource;
  readonly source: ListedSource;
  readonly changed: boolean;
}

export async function holdSource(
  holdfast: Operations,
  before: ListedSource,
  options: HoldSourceOptions,
): Promise<SourceActedOn> {
  await holdfast.sources.hold(before.name, options);
  const source = await sourceOf(holdfast, before.name);
  return { before, source, changed: before.state !== 'held' || before.next !== source.next };
}

export async function releaseSource(
  holdfast: Operations,
  before: ListedSource,
  options: ActionOptions,
): Promise<SourceActedOn> {
  await holdfast.sources.release(before.name, options);
  return { before, source: await sourceOf(holdfast, before.name), changed: before.holdsTasks };
}

export async function probeSource(
  holdfast: Operations,
  before: ListedSource,
  options: ActionOptions,
): Promise<SourceActedOn> {
  const changed = await holdfast.sources.probe(before.name, options);
  return { before, source: await sourceOf(holdfast, before.name), changed };
}

export async function limitSource(
  holdfast: Operations,
  before: ListedSource,
  options: LimitOptions & ActionOptions,
): Promise<SourceActedOn> {
  await holdfast.sources.limit(before.name, options);
  const source = await sourceOf(holdfast, before.name);
  return { before, source, changed: before.limits !== source.limits };
}

/** The content of `holdfast sources hold NAME --json`, and of the other actions. */
export function sourceActedOnContent(holdfast: Operations, { source, changed }: SourceActedOn): object {
  return { exit: 0, changed, source: sourceJson(source, holdfast.now()) };
}

/** Those that are not in their normal state, and at most so many others. */
async function sourcesOf(holdfast: Operations, mostOthers: number): Promise<ListedSource[]> {
  const now = holdfast.now();
  const records = new Map((await holdfast.sources.list()).map((record) => [record.name, record]));
  const counts = await holdfast.administration.countsBy('source', mostOthers + records.size);
  const counted = new Map<string, SourceCounts>(counts.map((count) => [count.name, count]));
  const names = [...new Set([...records.keys(), ...counted.keys()])];
  return names.map((name) => {
    const { ready = 0, running = records.get(name)?.running ?? 0 } = counted.get(name) ?? {};
    return listedSource(seenSource(records.get(name) ?? { name }), { name, ready, running }, now);
  });
}

/** Finds a source in any state, with only its own tasks read. */
export async function sourceOf(holdfast: Operations, name: string): Promise<ListedSource> {
  const record = (await holdfast.sources.list()).find((each) => each.name === name);
  const [counted] = await holdfast.administration.readyOf([name]);
  const running = record?.running ?? (await runningOf(holdfast, name));
  const counts = { name, ready: counted?.ready ?? 0, running };
  return listedSource(seenSource(record ?? { name }), counts, holdfast.now());
}

/** How many of its tasks run, of a source in its normal state. */
async function runningOf(holdfast: Operations, name: string): Promise<number> {
  return (await holdfast.list({ states: ['running'], sources: [name], limit: MOST_RUNNING })).length;
}

const MOST_RUNNING = 1_000;
