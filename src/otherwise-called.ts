const policy = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, `Write retry: { ${name}: … }.`]));

const BY_THE_CLOCK = "Tasks by the clock are schedules: holdfast.schedules.set('name', { cron, task }).";
const RETENTION = "Ended tasks are removed by 'retention', an option of holdfast.work().";
const ANOTHER_TASK =
  'A task does not wait for another one: enqueue the next task at the end of a handler, or use holdfast.enqueueGroup().';
const FILTER = "Write filter: { states: ['dead'] }, with types, queues, sources or reasons.";

const all = (names: readonly string[], hint: string) => Object.fromEntries(names.map((name) => [name, hint]));

const POLICY = {
  ...policy(['maxAttempts', 'backoff', 'jitter', 'timeout', 'giveUpAfter', 'onExhausted', 'rules']),
  attempts: 'Write retry: { maxAttempts: … }.',
  retries: 'Write retry: { maxAttempts: … }, one more than there are retries.',
};

/** The names of options in other queues, and what to write here instead. */
export const OTHERWISE_CALLED = {
  task: {
    ...POLICY,
    handler: "Did you mean 'run'?",
    execute: "Did you mean 'run'?",
    process: "Did you mean 'run'?",
    schema: "Did you mean 'input'?",
    payload: "Did you mean 'input'?",
    ...all(['rateLimit', 'limiter', 'rate'], "Did you mean 'pace'?"),
    limit: "Did you mean 'concurrency' or 'pace'?",
    ...all(['cron', 'repeat', 'schedule'], BY_THE_CLOCK),
    ...all(['unique', 'key', 'delay', 'deadline'], 'It is an option of holdfast.enqueue().'),
    ...all(
      ['onFailure', 'onError', 'onFailed', 'onComplete', 'onSuccess'],
      'The policy `retry` decides what follows a failure. `onEvent` of holdfast.work() hears of each end.',
    ),
    ...all(['removeOnComplete', 'removeOnFail'], RETENTION),
  },
  openHoldfast: {
    database: "Did you mean 'store'?",
    db: "Did you mean 'store'?",
    path: "Did you mean 'store'?",
    handlers: "Did you mean 'tasks'?",
    jobs: "Did you mean 'tasks'?",
    logger: "Did you mean 'log'?",
    concurrency: "'concurrency' is an option of holdfast.work().",
    grace: "'grace' is an option of holdfast.work().",
    ...all(['retry', 'policy'], "A policy is that of a type: defineTask('type', { retry: { … }, run })."),
    ...all(['policies', 'configuration'], "Did you mean 'config'?"),
    ...all(['connectionString', 'url'], "Write store: postgres('postgres://…')."),
    filename: "Did you mean 'store'?",
    schedules: BY_THE_CLOCK,
  },
  enqueue: {
    ...POLICY,
    runAt: "Did you mean 'at'?",
    scheduledAt: "Did you mean 'at'?",
    startAfter: "Did you mean 'delay' or 'at'?",
    jobId: "Did you mean 'key'?",
    id: "Did you mean 'key'?",
    dedupeKey: "Did you mean 'key' or 'unique'?",
    ...all(
      ['ttl', 'expires', 'expireIn', 'expiresAt', 'expireAfter', 'startBy', 'startBefore'],
      "Did you mean 'deadline'?",
    ),
    ...all(['cron', 'repeat', 'schedule'], BY_THE_CLOCK),
    ...all(['removeOnComplete', 'removeOnFail', 'retention'], RETENTION),
    ...all(['dependsOn', 'parent', 'after', 'children'], ANOTHER_TASK),
    tags: "Did you mean 'category'?",
    ...all(['while', 'onConflict'], "Write unique: { key: … }, with 'while' and 'onConflict' in it."),
  },
  worker: {
    limit: "Did you mean 'concurrency'?",
    parallel: "Did you mean 'concurrency'?",
    tasks: 'Definitions are not given to a worker: pass them to openHoldfast as `tasks`.',
    handlers: 'Definitions are not given to a worker: pass them to openHoldfast as `tasks`.',
  },
  redrive: all(['state', 'states', 'type', 'types', 'queue', 'queues', 'reason', 'reasons', 'sources'], FILTER),
  limits: all(['rate', 'rps', 'rateLimit', 'limit'], "Did you mean 'pace', such as '10/s'?"),
  result: { wait: "Did you mean 'timeout'?" },
} as const;
