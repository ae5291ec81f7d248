import type { Route } from '../route.ts';
import { FAILURES } from './failures.ts';
import { INSIGHT } from './insight.ts';
import { ME } from './me.ts';
import { POLICIES } from './policies.ts';
import { QUEUES } from './queues.ts';
import { REDRIVES } from './redrives.ts';
import { SCHEDULES } from './schedules.ts';
import { SELECTIONS } from './selections.ts';
import { SOURCES } from './sources.ts';
import { STATUS } from './status.ts';
import { SYSTEM } from './system.ts';
import { TASKS } from './tasks.ts';
import { WORKERS } from './workers.ts';

/** Every call of the API. */
export const ROUTES: readonly Route[] = [
  ...ME,
  ...STATUS,
  ...SELECTIONS,
  ...TASKS,
  ...FAILURES,
  ...INSIGHT,
  ...SOURCES,
  ...QUEUES,
  ...WORKERS,
  ...SYSTEM,
  ...SCHEDULES,
  ...REDRIVES,
  ...POLICIES,
];
