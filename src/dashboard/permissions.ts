import { ApiProblem } from './problems.ts';

/** What somebody may do, with what the pages say of it. */
export const PERMISSIONS = {
  view: 'see tasks and everything else but what `inputs` permits',
  inputs: 'see inputs, results and progress of tasks, inputs of schedules, and what commands printed',
  enqueue: 'enqueue tasks for programs of yours',
  commands: 'enqueue commands, file moves and HTTP requests, which workers of the command line run',
  retry: 'retry tasks',
  cancel: 'cancel tasks',
  hold: 'hold tasks',
  release: 'release tasks',
  resolve: 'answer tasks that need a person',
  redrive: 'start, pause, resume and cancel redrives',
  failures: 'acknowledge, mute, resolve and reopen groups of failures',
  sources: 'hold, release, probe and limit sources',
  queues: 'pause, resume, order and limit queues',
  workers: 'end workers',
  schedules: 'pause, resume, run and remove schedules',
} as const satisfies Record<string, string>;

export type Permission = keyof typeof PERMISSIONS;

export const ALL_PERMISSIONS = Object.keys(PERMISSIONS) as readonly Permission[];

/** What somebody without a list of permissions may do: everything but run any command on the machines of the workers. */
export const USUAL_PERMISSIONS = ALL_PERMISSIONS.filter((permission) => permission !== 'commands');

/** Who asks, and what they may do. */
export interface Actor {
  readonly name: string;
  readonly can: ReadonlySet<Permission>;
}

/** @throws ApiProblem. */
export function mustHave({ name, can }: Actor, permission: Permission): void {
  if (can.has(permission)) return;
  throw new ApiProblem('forbidden', `${name} may not do this. It needs the permission '${permission}'.`);
}
