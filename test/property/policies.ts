import fc from 'fast-check';
import { type DurationInput, duration, LONGEST } from '../../src/duration.ts';
import {
  type Backoff,
  ceiling,
  custom,
  exponential,
  fixed,
  hasOneDelay,
  immediate,
  linear,
  none,
  schedule,
} from '../../src/failure/backoff.ts';
import { type Jitter, proportional } from '../../src/failure/jitter.ts';
import { FAILURE_KINDS, FAULTS, type Failure, LOSSES, type Outcome } from '../../src/failure/outcome.ts';
import { definePolicy, type Policy, type PolicyOptions, type RuleOptions } from '../../src/failure/policy.ts';

/* Whatever a policy may say, and whatever an execution may end with. */

export const rolls = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });

/** Mostly what people write, sometimes the extremes. */
export const spans = fc.oneof(
  { weight: 5, arbitrary: fc.integer({ min: 0, max: 3_600_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: LONGEST }) },
  { weight: 1, arbitrary: fc.constantFrom(0, 1, 999, 1_000, LONGEST) },
);

const inMilliseconds = (ms: number): DurationInput => `${ms}ms`;
/** The same, as options say them. */
const written = spans.map(inMilliseconds);

const rising = fc.tuple(spans, spans).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

export const exponentials = fc
  .tuple(rising, fc.oneof(fc.double({ min: 1, max: 10, noNaN: true }), fc.constantFrom(1, 2, Number.MAX_VALUE)))
  .map(([[base, cap], factor]) => exponential({ base: `${base}ms`, factor, cap: `${cap}ms` }));

export const linears = rising.map(([step, cap]) => linear({ step: `${step}ms`, cap: `${cap}ms` }));

/** Functions are compared by identity, so each name stands for one. */
const CUSTOM = [
  custom('squares', (k) => k * k * 1_000),
  custom('nonsense', () => Number.NaN),
  custom('for ever', () => Number.POSITIVE_INFINITY),
];

export const backoffs: fc.Arbitrary<Backoff> = fc.oneof(
  exponentials,
  linears,
  written.map(fixed),
  fc.array(written, { minLength: 1, maxLength: 5 }).map(schedule),
  fc.constantFrom(immediate, none, ...CUSTOM),
);

export const jitters: fc.Arbitrary<Jitter> = fc.oneof(
  fc.constantFrom<Jitter>({ kind: 'none' }, { kind: 'full' }, { kind: 'equal' }),
  fc.double({ min: 0, max: 1, noNaN: true }).map(proportional),
);

const REASONS = ['fs.locked', 'fs.io', 'http.429', 'timeout', 'unknown', 'permanent', 'constructor', 'app.broke'];
const RULES = [
  ...REASONS,
  'fs.*',
  'http.*',
  'worker.*',
  'worker.lost',
  'explicit.later',
  'deadline.passed',
  ...FAILURE_KINDS,
];

const rules: fc.Arbitrary<RuleOptions> = fc
  .record(
    {
      maxAttempts: fc.integer({ min: 1, max: 12 }),
      backoff: backoffs,
      adaptive: fc.boolean(),
      jitter: jitters,
      onExhausted: fc.constantFrom('dead', 'needs_manual'),
      charge: fc.boolean(),
    },
    { requiredKeys: [] },
  )
  .map(usingEachDelay);

/** A schedule that is longer than its attempts is refused, and so is `adaptive` where all delays are the same. */
export function usingEachDelay<Options extends RuleOptions>(options: Options): Options {
  if (options.adaptive && hasOneDelay(Object(options.backoff))) return usingEachDelay({ ...options, adaptive: false });
  const { maxAttempts = Number.POSITIVE_INFINITY, ...others } = options;
  const delays = Object(options.backoff).delays?.length ?? 0;
  return maxAttempts <= delays ? (others as Options) : options;
}

export const options: fc.Arbitrary<PolicyOptions> = fc
  .record(
    {
      maxAttempts: fc.integer({ min: 1, max: 12 }),
      backoff: backoffs,
      adaptive: fc.boolean(),
      jitter: jitters,
      permanent: fc.constantFrom('stop', 'retry'),
      onExhausted: fc.constantFrom('dead', 'needs_manual'),
      rules: fc.dictionary(fc.constantFrom(...RULES), rules, { maxKeys: 6 }),
      maxDeferrals: fc.integer({ min: 0, max: 12 }),
      maxDeferredFor: written,
      maxRetryAfter: written,
      giveUpAfter: fc.oneof(fc.constant('none' as const), written),
      maxTotalDelay: fc.oneof(fc.constant('none' as const), written),
      timeout: fc.oneof(fc.constant('none' as const), fc.integer({ min: 1, max: LONGEST }).map(inMilliseconds)),
      maxExecutions: fc.integer({ min: 1, max: 40 }),
      retryAmbiguous: fc.boolean(),
      source: fc.record({ gate: fc.boolean(), breaker: fc.boolean(), budget: fc.boolean() }, { requiredKeys: [] }),
    } satisfies { [Name in keyof Required<PolicyOptions>]: unknown },
    { requiredKeys: [] },
  )
  .map(usingEachDelay)
  .map(withTimeForARetry);

/** A limit that is shorter than the first delay is refused. */
export function withTimeForARetry({ giveUpAfter, maxTotalDelay, ...others }: PolicyOptions): PolicyOptions {
  const backoff = others.backoff === undefined ? undefined : definePolicy(others).backoff;
  const least = backoff === undefined || backoff.kind === 'custom' ? 0 : ceiling(backoff, 1);
  const raised = (limit: DurationInput | 'none', name: string) =>
    limit === 'none' ? limit : inMilliseconds(Math.min(LONGEST, least + duration(limit, name)));
  return {
    ...others,
    ...(giveUpAfter !== undefined && { giveUpAfter: raised(giveUpAfter, 'giveUpAfter') }),
    ...(maxTotalDelay !== undefined && { maxTotalDelay: raised(maxTotalDelay, 'maxTotalDelay') }),
  };
}

export const policies: fc.Arbitrary<Policy> = options.map((each) => definePolicy(each));

const failures: fc.Arbitrary<Failure> = fc.record(
  {
    kind: fc.constantFrom(...FAILURE_KINDS),
    reason: fc.constantFrom(...REASONS),
    fault: fc.constantFrom(...FAULTS),
    ambiguous: fc.boolean(),
    retryAfterMs: spans,
    name: fc.constant('Error'),
    message: fc.constant('It broke.'),
    evidence: fc.constant({ rule: 'test' }),
  },
  { requiredKeys: ['kind', 'reason', 'fault', 'ambiguous', 'name', 'message', 'evidence'] },
);

/** Outcomes after which a task may go on: no success, no passed deadline, and no last word of a handler. */
export const troubles: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 4, arbitrary: failures.map((failure) => ({ kind: 'failure' as const, failure })) },
  fc.record(
    {
      kind: fc.constant('deferral' as const),
      after: spans,
      reason: fc.constantFrom('explicit.later', 'app.broke'),
      message: fc.constant(''),
    },
    { requiredKeys: ['kind', 'reason', 'message'] },
  ),
  fc.record({ kind: fc.constant('interruption' as const), started: fc.boolean(), message: fc.constant('') }),
  fc.constantFrom(...LOSSES).map((how) => ({ kind: 'loss' as const, worker: 'w1', how })),
);

export const outcomes: fc.Arbitrary<Outcome> = fc.oneof(
  { weight: 8, arbitrary: troubles },
  fc.constant({ kind: 'success' as const }),
  fc.constant({ kind: 'expiry' as const }),
  failures.chain((failure) =>
    fc
      .constantFrom('permanent' as const, 'needs_manual' as const)
      .map((word) => ({ kind: 'failure' as const, failure: { ...failure, word } })),
  ),
);
