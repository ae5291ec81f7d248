import type { Route } from '../route.ts';
import { FAILURES } from './failures.ts';
import { ME } from './me.ts';
import { STATUS } from './status.ts';
import { TASKS } from './tasks.ts';

/** Every call of the API. */
export const ROUTES: readonly Route[] = [...ME, ...STATUS, ...TASKS, ...FAILURES];
