import { custom, exponential } from '../failure/backoff.ts';
import { proportional } from '../failure/jitter.ts';
import type { PolicyOptions } from '../failure/policy.ts';

/** A random number of at least 0 and below 1. */
type Random = () => number;

/** How a queue retries. */
export interface SimulatedPolicy {
  readonly name: string;
  readonly says: string;
  /** Whether it remembers sources. */
  readonly remembers?: true;
  /** `random`: for delays that are spread in a way that no jitter of ours has. */
  readonly options: (random: Random) => PolicyOptions;
}

/**
 * The defaults of five well-known queues, each of which counts the attempts of a task and knows nothing of its source. To them a 429
 * is a failure like any other.
 */
const PLAIN_POLICIES: readonly SimulatedPolicy[] = [
  {
    name: 'sidekiq',
    says: '25 retries after n⁴ + 15 s + 0–10·(n+1) s, n from 0',
    options: (random) => plain(26, 'sidekiq', (retry) => sidekiq(retry - 1, random)),
  },
  {
    name: 'oban',
    says: '20 attempts, after 15 + 2ⁿ s + 0–10 %',
    options: (random) => plain(20, 'oban', (retry) => oban(retry, random)),
  },
  {
    name: 'river',
    says: '25 attempts, after n⁴ s ± 10 %',
    options: () => ({ ...plain(25, 'river', river), jitter: proportional(0.1) }),
  },
  {
    name: 'hangfire',
    says: '10 retries after (n−1)⁴ + 15 s + 0–29·n s',
    options: (random) => plain(11, 'hangfire', (retry) => hangfire(retry, random)),
  },
  {
    name: 'celery',
    says: '3 retries with `retry_backoff`: 2ⁿ s ≤ 10 min, full jitter, n from 0',
    options: () => ({
      ...WITHOUT_SOURCE,
      maxAttempts: 4,
      backoff: exponential({ base: '1s', cap: '10m' }),
      jitter: { kind: 'full' },
    }),
  },
];

const SECOND = 1_000;

/** `count`: how many retries there were before. */
export function sidekiq(count: number, random: Random): number {
  return (count ** 4 + 15 + Math.floor(random() * 10 * (count + 1))) * SECOND;
}

/** `attempt`: the one that failed, from 1. */
export function oban(attempt: number, random: Random): number {
  return (15 + 2 ** attempt) * (1 + random() * 0.1) * SECOND;
}

/** `errors`: how many there were, from 1. */
export function river(errors: number): number {
  return errors ** 4 * SECOND;
}

/** `retry`: from 1. */
export function hangfire(retry: number, random: Random): number {
  return ((retry - 1) ** 4 + 15 + Math.floor(random() * 30) * retry) * SECOND;
}

const OFF = { gate: false, breaker: false, budget: false };

/** Nothing is known of the source, and a rate limit is a failure like any other. */
const WITHOUT_SOURCE: PolicyOptions = {
  source: OFF,
  rules: { rate_limited: { charge: true } },
};

function plain(maxAttempts: number, name: string, delay: (retry: number) => number): PolicyOptions {
  return { ...WITHOUT_SOURCE, maxAttempts, backoff: custom(name, delay), jitter: { kind: 'none' } };
}

export const POLICIES: readonly SimulatedPolicy[] = [
  {
    name: 'holdfast',
    says: 'the policy `standard`: 5 attempts, and the source is remembered',
    remembers: true,
    options: () => ({}),
  },
  {
    name: 'holdfast_without_memory',
    says: 'the policy `standard` with its option `source` off',
    options: () => ({ source: OFF }),
  },
  ...PLAIN_POLICIES,
];
