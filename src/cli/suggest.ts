import { nearest } from '../nearest.ts';

export { nearest } from '../nearest.ts';

/** What people type for what they mean, where the letters do not give it away. */
const INTENTS: Readonly<Record<string, string>> = {
  restart: 'retry (due now; a new round if it had ended)',
  rerun: 'retry (due now; a new round if it had ended)',
  redo: 'retry (due now; a new round if it had ended)',
  replay: 'redrive (many ended tasks), or retry (some)',
  requeue: 'retry (due now; a new round if it had ended)',
  rm: 'cancel (a task that waits or runs ends; its history stays)',
  remove: 'cancel (a task that waits or runs ends; its history stays)',
  delete: 'cancel (a task that waits or runs ends; its history stays)',
  del: 'cancel (a task that waits or runs ends; its history stays)',
  kill: 'cancel',
  stop: 'cancel (for one task), or hold (to put it aside)',
  abort: 'cancel',
  pause: 'hold (tasks), sources hold, or queues pause',
  suspend: 'hold',
  stash: 'hold',
  unpause: 'release (tasks), sources release, or queues resume',
  unhold: 'release',
  continue: 'resume (work it here), or release (after hold)',
  start: 'worker (work everything), or resume (work some tasks here)',
  work: 'worker (work everything), or resume (work some tasks here)',
  daemon: 'worker',
  serve: 'worker',
  ps: 'list state:running',
  jobs: 'list',
  tasks: 'list',
  queue: 'list, or queues',
  connectors: 'sources',
  connector: 'sources',
  stats: 'status',
  top: 'status',
  info: 'show',
  inspect: 'show',
  describe: 'show',
  why: 'explain',
  policy: 'policies',
  config: 'policies',
  validate: 'policies validate',
  log: 'logs',
  output: 'logs',
  tail: 'logs ID -f',
  history: 'show',
  exec: 'run -- CMD…',
  curl: 'http METHOD URL',
  fetch: 'http METHOD URL',
  post: 'http POST URL',
  request: 'http METHOD URL',
  webhook: 'http POST URL',
  add: 'run -- CMD…',
  enqueue: 'run -- CMD…',
  submit: 'run -- CMD…',
  load: 'import',
  bring: 'import',
  move: 'mv',
  rename: 'mv',
  answer: 'resolve',
  decide: 'resolve',
  fix: 'resolve',
  follow: 'logs ID -f (what it prints), or wait (its end)',
};

/** What a person may have meant by a word that is no command: by intent first, then by its letters. */
export function commandsLike(word: string, commands: readonly string[]): string[] {
  const key = word.toLowerCase();
  const meant = Object.hasOwn(INTENTS, key) ? INTENTS[key] : undefined;
  return meant === undefined ? nearest(word, commands) : [meant];
}
