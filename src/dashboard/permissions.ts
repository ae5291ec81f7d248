/** What somebody may do, with what the pages say of it. */
const PERMISSIONS = {
  view: 'see everything',
  enqueue: 'enqueue tasks',
  retry: 'retry tasks',
  cancel: 'cancel tasks',
  hold: 'hold tasks',
  release: 'release tasks',
  resolve: 'answer tasks that need a person',
  redrive: 'start, pause, resume and cancel redrives',
  failures: 'acknowledge, mute, resolve and reopen groups of failures',
  sources: 'hold, release, probe and limit sources',
  queues: 'pause and resume queues',
  workers: 'end workers',
  schedules: 'pause, resume and run schedules',
} as const satisfies Record<string, string>;

export type Permission = keyof typeof PERMISSIONS;

export const ALL_PERMISSIONS = Object.keys(PERMISSIONS) as readonly Permission[];
