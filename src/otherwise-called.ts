const policy = (names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, `Write retry: { ${name}: … }.`]));

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
  },
  enqueue: {
    ...POLICY,
    runAt: "Did you mean 'at'?",
    scheduledAt: "Did you mean 'at'?",
    startAfter: "Did you mean 'delay' or 'at'?",
    jobId: "Did you mean 'key'?",
    id: "Did you mean 'key'?",
    dedupeKey: "Did you mean 'key' or 'unique'?",
  },
  worker: {
    limit: "Did you mean 'concurrency'?",
    parallel: "Did you mean 'concurrency'?",
    tasks: 'Definitions are not given to a worker: pass them to openHoldfast as `tasks`.',
    handlers: 'Definitions are not given to a worker: pass them to openHoldfast as `tasks`.',
  },
  result: { wait: "Did you mean 'timeout'?" },
} as const;
