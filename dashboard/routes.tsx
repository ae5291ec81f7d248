import type { VNode } from 'preact';
import { nameInPath } from '../src/path-segment.ts';
import { AuditPage } from './pages/audit.tsx';
import { EventsPage } from './pages/events.tsx';
import { FailureGroupPage } from './pages/failure-group.tsx';
import { FailuresPage } from './pages/failures.tsx';
import { ForecastPage } from './pages/forecast.tsx';
import { InboxPage } from './pages/inbox.tsx';
import { NewRedrivePage } from './pages/new-redrive.tsx';
import { OverviewPage } from './pages/overview.tsx';
import { PoliciesPage } from './pages/policies.tsx';
import { PolicyPage } from './pages/policy.tsx';
import { QueuesPage } from './pages/queues.tsx';
import { RedrivePage } from './pages/redrive.tsx';
import { RedrivesPage } from './pages/redrives.tsx';
import { SchedulePage } from './pages/schedule.tsx';
import { SchedulesPage } from './pages/schedules.tsx';
import { SourcePage } from './pages/source.tsx';
import { SourcesPage } from './pages/sources.tsx';
import { SystemPage } from './pages/system.tsx';
import { TaskPage } from './pages/task.tsx';
import { TasksPage } from './pages/tasks.tsx';
import { WorkersPage } from './pages/workers.tsx';

/** The page at a path below the root of the dashboard. `{name}` of a pattern is given to the page. */
const ROUTES: readonly (readonly [pattern: string, page: (...names: readonly string[]) => VNode])[] = [
  ['', () => <OverviewPage />],
  ['tasks', () => <TasksPage />],
  ['tasks/{}', (id = '') => <TaskPage key={id} id={id} />],
  ['failures', () => <FailuresPage />],
  ['failures/{}', (id = '') => <FailureGroupPage key={id} id={id} />],
  ['inbox', () => <InboxPage />],
  ['sources', () => <SourcesPage />],
  ['sources/{}', (name = '') => <SourcePage key={name} name={name} />],
  ['redrives', () => <RedrivesPage />],
  ['redrives/new', () => <NewRedrivePage />],
  ['redrives/{}', (id = '') => <RedrivePage key={id} id={id} />],
  ['policies', () => <PoliciesPage />],
  ['policies/{}', (type = '') => <PolicyPage key={type} type={type} />],
  ['forecast', () => <ForecastPage />],
  ['audit', () => <AuditPage />],
  ['events', () => <EventsPage />],
  ['schedules', () => <SchedulesPage />],
  ['schedules/{}', (name = '') => <SchedulePage key={name} name={name} />],
  ['queues', () => <QueuesPage />],
  ['workers', () => <WorkersPage />],
  ['system', () => <SystemPage />],
];

const COMPILED = ROUTES.map(([pattern, page]) => ({
  pattern: new RegExp(`^${pattern.replaceAll('{}', '([^/]+)')}$`),
  page,
}));

export function pageAt(path: string): VNode | undefined {
  for (const { pattern, page } of COMPILED) {
    const found = pattern.exec(path);
    if (found) return page(...found.slice(1).map(decoded));
  }
  return undefined;
}

/** A name in an address may be anything, also no valid encoding. */
function decoded(name: string): string {
  try {
    return nameInPath(decodeURIComponent(name));
  } catch {
    return name;
  }
}
