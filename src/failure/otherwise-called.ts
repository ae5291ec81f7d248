const RETRIES = 'maxAttempts counts the first attempt too: 3 retries are maxAttempts: 4.';
const BY_REASON =
  "Rules decide by the reason of a failure: rules: { 'http.409': { maxAttempts: 3 } }. A handler names its own: new Failed('…', { reason: 'order.open' }).";
const WAIT_FIRST = "The wait comes first: new RetryLater('10m') or new RateLimited('10m').";

/** Names that other libraries use for options of a policy, and what to write here, in code and in files. */
export const OTHERWISE_CALLED = {
  policy: {
    maxRetries: RETRIES,
    retries: RETRIES,
    max_retries: RETRIES,
    retryLimit: RETRIES,
    attempts: "Did you mean 'maxAttempts'?",
    tries: "Did you mean 'maxAttempts'?",
    delay: "Write backoff: { fixed: '30s' }.",
    fixed: "Write backoff: { fixed: '30s' }.",
    retryDelay: "Write backoff: { fixed: '30s' }.",
    exponential: "Write backoff: { exponential: { base: '5s', cap: '1h' } }.",
    schedule: "Write backoff: { schedule: ['5m', '15m'] }.",
    strategy: "This is the format of `retry_policies:`. Here it is 'backoff'.",
    // biome-ignore lint/suspicious/noThenProperty: nobody awaits a list of hints
    then: "Did you mean 'onExhausted'?",
    onFailure: "Did you mean 'onExhausted'?",
    within: "Did you mean 'giveUpAfter'?",
    maxDuration: "Did you mean 'giveUpAfter'?",
    deadline:
      "A deadline is a task's own, said when it is enqueued. From its first execution on, 'giveUpAfter' counts.",
    retryAfter: "Did you mean 'maxRetryAfter'?",
    shouldRetry: BY_REASON,
    retryIf: BY_REASON,
    retryOn: BY_REASON,
    totalDelay: "Did you mean 'maxTotalDelay'?",
    maxDelay: "Write backoff: { cap: '1h' }.",
    maxTimeout: "Write backoff: { cap: '1h' }.",
    minDelay: "Write backoff: { base: '1s' }.",
    minTimeout: "Write backoff: { base: '1s' }.",
    initialDelay: "Write backoff: { base: '1s' }.",
    factor: 'Write backoff: { factor: 2 }.',
  },
  signal: {
    after: WAIT_FIRST,
    delay: WAIT_FIRST,
    retryAfter: WAIT_FIRST,
    retryable: 'A PermanentFailure is never retried, and a Failed is retried by the policy.',
  },
  backoff: {
    max: "Did you mean 'cap'?",
    maxDelay: "Did you mean 'cap'?",
    min: "Did you mean 'base'?",
    delay: "The first delay is 'base' of exponential and 'step' of linear.",
    initial: "Did you mean 'base'?",
    multiplier: "Did you mean 'factor'?",
    jitter: "Write jitter next to backoff: { backoff: …, jitter: 'full' }.",
  },
} as const;
