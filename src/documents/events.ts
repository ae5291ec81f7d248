import type { Operations } from '../queue/operations.ts';
import { eventJson } from '../views/event-text.ts';
import { rfc3339 } from '../views/times.ts';

type Newest = Awaited<ReturnType<Operations['administration']['events']>>;

/** What happened to tasks, sources and queues, in the order of `events`. */
export function eventsContent({ events, searchedTo }: Newest): object {
  return { items: events.map(eventJson), searched_to: rfc3339(searchedTo) };
}
