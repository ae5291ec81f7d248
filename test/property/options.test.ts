import { describe, expect, test } from 'vitest';
import { exponential, fixed, none } from '../../src/failure/backoff.ts';
import { type Decision, decide, type Facts } from '../../src/failure/decide.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import { definePolicy, type Policy, type PolicyOptions, type RuleOptions } from '../../src/failure/policy.ts';
import { charged, facts, failed, HOUR, later, MINUTE } from '../failure/given.ts';

/*
 * Every option must earn its place: for each there is a task whose fate changes when only that option does.
 */

interface Witness<Options> {
  readonly change: Options;
  readonly outcome: Outcome;
  readonly known?: Partial<Facts>;
  readonly before: Partial<Decision>;
  readonly after: Partial<Decision>;
}

type Witnesses<Options> = { readonly [Name in keyof Required<Options>]: Witness<Pick<Options, Name>> };

const base = definePolicy({ backoff: exponential({ base: '1s' }), jitter: { kind: 'none' } });
const limited = failed({ kind: 'rate_limited', fault: 'quota', reason: 'http.429' });
const goes = { next: 'scheduled' } as const;
const dies = { next: 'dead' } as const;
const asks = { next: 'needs_manual' } as const;

/** What the worker obeys and no decision looks at; test/process and the worker's own tests watch it. */
const OF_THE_WORKER = ['timeout'] as const;

/** What retries did: those after a second failed. */
const SELDOM_SOON = [
  { waited: 1_000, retries: 20, succeeded: 0 },
  { waited: 32_000, retries: 20, succeeded: 19 },
];

const OF_A_POLICY: Omit<Witnesses<PolicyOptions>, (typeof OF_THE_WORKER)[number]> = {
  maxAttempts: {
    change: { maxAttempts: 6 },
    outcome: failed(),
    known: { charged: [charged(4)] },
    before: dies,
    after: goes,
  },
  backoff: { change: { backoff: fixed('9s') }, outcome: failed(), before: { after: 1_000 }, after: { after: 9_000 } },
  adaptive: {
    change: { adaptive: true },
    outcome: failed(),
    known: { observed: SELDOM_SOON },
    before: { after: 1_000 },
    after: { after: 32_000 },
  },
  jitter: { change: { jitter: { kind: 'full' } }, outcome: failed(), before: { after: 1_000 }, after: { after: 250 } },
  permanent: { change: { permanent: 'retry' }, outcome: failed({ kind: 'permanent' }), before: dies, after: goes },
  onExhausted: {
    change: { onExhausted: 'needs_manual' },
    outcome: failed({ kind: 'permanent' }),
    before: dies,
    after: asks,
  },
  rules: {
    change: { rules: { 'app.broke': {} } },
    outcome: failed({ kind: 'permanent' }),
    before: dies,
    after: goes,
  },
  maxDeferrals: {
    change: { maxDeferrals: 3 },
    outcome: later(5_000),
    known: { deferralsInARow: 3 },
    before: goes,
    after: asks,
  },
  maxDeferredFor: {
    change: { maxDeferredFor: '1h' },
    outcome: later(5_000),
    known: { deferralsInARow: 3, deferredForMs: HOUR },
    before: goes,
    after: asks,
  },
  maxRetryAfter: { change: { maxRetryAfter: '1m' }, outcome: later(MINUTE + 1), before: goes, after: asks },
  giveUpAfter: {
    change: { giveUpAfter: '1h' },
    outcome: failed(),
    known: { sinceFirstStartMs: HOUR },
    before: goes,
    after: dies,
  },
  maxTotalDelay: {
    change: { maxTotalDelay: '1h' },
    outcome: failed(),
    known: { charged: [{ ...charged(1), delayMs: HOUR }] },
    before: goes,
    after: dies,
  },
  maxExecutions: {
    change: { maxExecutions: 7 },
    outcome: failed(),
    known: { executions: 7 },
    before: goes,
    after: asks,
  },
  retryAmbiguous: {
    change: { retryAmbiguous: true },
    outcome: failed({ ambiguous: true }),
    known: { idempotent: false },
    before: asks,
    after: goes,
  },
  source: {
    change: { source: { breaker: false } },
    outcome: failed({ fault: 'source' }),
    known: { charged: [charged(4)], source: { standing: 'open', shutFor: 0 } },
    before: goes,
    after: dies,
  },
};

const OF_A_RULE: Witnesses<RuleOptions> = {
  maxAttempts: { change: { maxAttempts: 1 }, outcome: limited, before: goes, after: dies },
  backoff: { change: { backoff: none }, outcome: limited, before: goes, after: dies },
  adaptive: {
    change: { adaptive: true },
    outcome: limited,
    known: { observed: SELDOM_SOON },
    before: { after: 1_000 },
    after: { after: 32_000 },
  },
  jitter: { change: { jitter: { kind: 'equal' } }, outcome: limited, before: { after: 1_000 }, after: { after: 625 } },
  onExhausted: {
    change: { onExhausted: 'needs_manual' },
    outcome: limited,
    known: { charged: [charged(4)] },
    before: dies,
    after: asks,
  },
  charge: {
    change: { charge: false },
    outcome: limited,
    before: { charge: { to: 'task', reason: 'http.429', kind: 'rate_limited' } },
    after: { charge: { to: 'deferrals' } },
  },
};

const ROLL = 0.25;

function fate({ outcome, known }: Witness<unknown>, policy: Policy): Decision {
  return decide(facts(known), outcome, policy, ROLL);
}

describe('each option of a policy changes something', () => {
  test.each(Object.entries(OF_A_POLICY))('%s', (_, witness) => {
    expect(fate(witness, base)).toMatchObject(witness.before);
    expect(fate(witness, definePolicy(witness.change, base))).toMatchObject(witness.after);
  });

  test.each(OF_THE_WORKER)('%s changes no decision but its policy’s version: it is the worker’s to obey', (name) => {
    const changed = definePolicy({ [name]: 'none' }, base);
    expect(changed.version).not.toBe(base.version);
    for (const witness of Object.values(OF_A_POLICY)) {
      const { because, ...decision } = fate(witness, base);
      expect(fate(witness, changed)).toEqual({ ...decision, because: { ...because, policyVersion: changed.version } });
    }
  });
});

describe('each option of a rule changes something', () => {
  test.each(Object.entries(OF_A_RULE))('%s', (_, witness) => {
    const bare = definePolicy({ rules: { 'http.429': {} } }, { ...base, rules: {} });
    expect(fate(witness, bare)).toMatchObject(witness.before);
    expect(fate(witness, definePolicy({ rules: { 'http.429': witness.change } }, bare))).toMatchObject(witness.after);
  });
});
