import { parseFilter, refuseOtherKeys } from '../filter.ts';
import type { ChangeRecord } from '../store/changes.ts';
import { fits } from '../store/filter.ts';
import type { ChangeEvent, HappenedEvent, Store, TaskEvent } from '../store/store.ts';

/** What the filter of events may name: traits of the task, source or queue, and of what happened. */
const EVENT_KEYS = [
  'state',
  'type',
  'queue',
  'source',
  'reason',
  'fingerprint',
  'error',
  'executions',
  'since',
  'until',
] as const;

/** How many events are read at once, and how many are compared with a filter before the search ends. */
const PAGE = 500;
const MOST_COMPARED = 50_000;

/** How long a transaction may take to be seen after the time that it wrote. */
const LATE_MS = 10_000;

/** The newest events that fit, the newest first. */
export interface NewestEvents {
  readonly events: readonly HappenedEvent[];
  /** The search ended here although there may be older ones. */
  readonly searchedTo?: number;
}

/** @throws InvalidFilterError. */
export async function newestEvents(
  store: Store,
  { filter = '', limit }: { readonly filter?: string; readonly limit: number },
): Promise<NewestEvents> {
  const read = readFilter(filter, store.upkeep.now());
  const { events, searchedTo } = await newestOfTasks(store, read, limit);
  // What is older than all that is shown of tasks would be left out.
  const oldest = events.length === limit ? events.at(-1)?.at : searchedTo;
  const changes = await changesSince(store, read, Math.max(read.from, oldest ?? 0), limit);
  const both = [...events, ...changes].sort((a, b) => b.at - a.at).slice(0, limit);
  return { events: both, ...(searchedTo !== undefined && both.length < limit && { searchedTo }) };
}

/** The newest changes of sources and queues that fit, the newest first. */
async function changesSince(
  { records }: Pick<Store, 'records'>,
  { fitsChange, before: end }: EventFilter,
  since: number,
  limit = Number.MAX_SAFE_INTEGER,
): Promise<readonly ChangeEvent[]> {
  const found: ChangeEvent[] = [];
  if (!fitsChange) return found;
  for (let before: number | undefined; ; ) {
    const page = await records.changes({ since, limit: PAGE, ...(before !== undefined && { before }) });
    for (const change of page) {
      if (change.at >= end || !fitsChange(change)) continue;
      found.push({ id: `change ${change.id}`, at: change.at, change });
      if (found.length === limit) return found;
    }
    before = page.at(-1)?.id;
    if (page.length < PAGE) return found;
  }
}

async function newestOfTasks(
  { records }: Store,
  { matches, from, before: end }: EventFilter,
  limit: number,
): Promise<{ readonly events: readonly TaskEvent[]; readonly searchedTo?: number }> {
  const found: TaskEvent[] = [];
  const seen = new Set<string>();
  let [before, size] = [end, PAGE];
  for (let compared = 0; compared < MOST_COMPARED; compared += size) {
    const page = await records.events({ from, before, limit: size, newestFirst: true });
    const news = page.filter(({ id }) => !seen.has(id));
    for (const event of news) {
      seen.add(event.id);
      if (matches(event)) found.push(event);
      if (found.length === limit) return { events: found };
    }
    const last = page.at(-1);
    if (!last || page.length < size) return { events: found };
    // Those of its last millisecond are read once more: there may be others. If there was nothing else, more are read at once.
    before = last.at + 1;
    size = news.length > 0 ? PAGE : 2 * size;
  }
  return { events: found, searchedTo: before };
}

/** Reads what happens from now on, each event once. */
export class NewEvents {
  readonly #store: Store;
  readonly #filter: EventFilter;
  readonly #seen = new Map<string, number>();
  #from: number;

  /** @throws InvalidFilterError. */
  constructor(store: Store, filter: string, from = store.upkeep.now()) {
    this.#store = store;
    this.#filter = readFilter(filter, from);
    this.#from = from;
  }

  /** What has happened since the last call, the oldest first. */
  async next(): Promise<readonly HappenedEvent[]> {
    const { records, upkeep } = this.#store;
    const news: TaskEvent[] = [];
    const end = upkeep.now() + 1;
    const changes = await changesSince(this.#store, { ...this.#filter, before: end }, this.#from);
    const newChanges = changes.filter(({ id }) => !this.#seen.has(id));
    for (const { id, at } of newChanges) this.#seen.set(id, at);
    for (let [from, size] = [this.#from, PAGE]; ; ) {
      const page = await records.events({ from, before: end, limit: size, newestFirst: false });
      const unseen = page.filter(({ id }) => !this.#seen.has(id));
      for (const event of unseen) this.#seen.set(event.id, event.at);
      news.push(...unseen);
      const last = page.at(-1);
      if (!last || page.length < size) break;
      from = last.at;
      size = unseen.length > 0 ? PAGE : 2 * size;
    }
    this.#from = Math.max(this.#from, end - LATE_MS);
    for (const [id, at] of this.#seen) if (at < this.#from) this.#seen.delete(id);
    return [...news.filter(this.#filter.matches), ...newChanges.reverse()].sort((a, b) => a.at - b.at);
  }
}

interface EventFilter {
  readonly matches: (event: TaskEvent) => boolean;
  /** Undefined: it names what only tasks have. */
  readonly fitsChange: ((change: ChangeRecord) => boolean) | undefined;
  readonly from: number;
  readonly before: number;
}

function readFilter(text: string, now: number): EventFilter {
  refuseOtherKeys(text, EVENT_KEYS);
  const { states, endedFrom = 0, endedBefore = now + 1, ...filter } = parseFilter(text, new Date(now));
  const matches = (event: TaskEvent): boolean => {
    const { type, queue, source, entry } = event;
    const became = entry.kind === 'execution' ? entry.next : entry.kind === 'action' ? entry.to : undefined;
    if (states && !states.some((state) => state === became)) return false;
    const failure = entry.kind === 'action' ? undefined : entry.failure;
    const { reason, fingerprint, message } = failure ?? {};
    const executions = entry.kind === 'action' ? undefined : entry.execution;
    return fits(filter, { type, queue, source, reason, fingerprint, error: message, executions });
  };
  const { types, fingerprints, executions } = filter;
  const ofTasksOnly = states ?? types ?? fingerprints ?? executions;
  const fitsChange = ({ kind, name, reason, message }: ChangeRecord): boolean =>
    fits(filter, { [kind]: name, reason, error: message });
  return { matches, fitsChange: ofTasksOnly ? undefined : fitsChange, from: endedFrom, before: endedBefore };
}
