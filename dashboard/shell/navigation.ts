import type { StatusDocument } from '../data/documents.ts';

interface Entry {
  readonly title: string;
  readonly path: string;
  /** The letter after `g`. */
  readonly key: string;
  /** How many things there need somebody. */
  readonly badge?: (status: StatusDocument) => number;
  /** A line above it. */
  readonly begins?: true;
}

const attentionOf =
  (...kinds: readonly string[]) =>
  ({ attention }: StatusDocument): number =>
    attention.filter(({ kind }) => kinds.includes(kind)).length;

/** The pages, in the order of the navigation. */
export const NAVIGATION: readonly Entry[] = [
  { title: 'Overview', path: '', key: 'o' },
  { title: 'Tasks', path: 'tasks', key: 't' },
  { title: 'Failures', path: 'failures', key: 'f' },
  { title: 'Inbox', path: 'inbox', key: 'i', badge: ({ by_state }) => by_state.needs_manual },
  {
    title: 'Sources',
    path: 'sources',
    key: 's',
    badge: attentionOf('source_down', 'source_held', 'source_needs_person'),
  },
  { title: 'Forecast', path: 'forecast', key: 'c' },
  { title: 'Redrives', path: 'redrives', key: 'd', badge: attentionOf('redrive_stopped'), begins: true },
  { title: 'Policies', path: 'policies', key: 'p' },
  { title: 'Schedules', path: 'schedules', key: 'e' },
  { title: 'Queues', path: 'queues', key: 'q', badge: attentionOf('queue_paused'), begins: true },
  { title: 'Workers', path: 'workers', key: 'w', badge: attentionOf('worker_paused', 'no_worker') },
  { title: 'Events', path: 'events', key: 'v' },
  { title: 'Audit', path: 'audit', key: 'a' },
  { title: 'System', path: 'system', key: 'y' },
];
