import fc from 'fast-check';
import {
  type Charged,
  type ChargedCount,
  type Decision,
  decide,
  type Facts,
  type SourceFacts,
} from '../../src/failure/decide.ts';
import type { Outcome } from '../../src/failure/outcome.ts';
import type { Policy } from '../../src/failure/policy.ts';
import { outcomes, rolls, spans, troubles } from './policies.ts';

/*
 * What a store remembers of one task, in a few lines: it adds what decisions say, and answers with facts.
 */

interface Ledger {
  readonly now: number;
  readonly executions: number;
  readonly charged: readonly Charged[];
  readonly deferralsInARow: number;
  readonly firstDeferralAt: number;
  readonly recoveredAt: readonly number[];
  readonly lostInARow: number;
  readonly idempotent: boolean;
  readonly cancelRequested: boolean;
  readonly deadline?: number;
}

/** A task that starts its first execution at 0. */
function newTask(given: { idempotent?: boolean; deadline?: number } = {}): Ledger {
  return {
    now: 0,
    executions: 0,
    charged: [],
    deferralsInARow: 0,
    firstDeferralAt: 0,
    recoveredAt: [],
    lostInARow: 0,
    idempotent: true,
    cancelRequested: false,
    ...given,
  };
}

/** An execution that takes so long. */
function executed(ledger: Ledger, took: number): Ledger {
  return { ...ledger, executions: ledger.executions + 1, now: ledger.now + took };
}

function factsOf(ledger: Ledger): Facts {
  const { now, deadline } = ledger;
  return {
    executions: ledger.executions,
    charged: ledger.charged,
    deferralsInARow: ledger.deferralsInARow,
    deferredForMs: ledger.deferralsInARow === 0 ? 0 : now - ledger.firstDeferralAt,
    recoveriesAgoMs: ledger.recoveredAt.map((at) => now - at),
    lostInARow: ledger.lostInARow,
    idempotent: ledger.idempotent,
    cancelRequested: ledger.cancelRequested,
    sinceFirstStartMs: now,
    ...(deadline !== undefined && { untilDeadlineMs: deadline - now }),
  };
}

/** Writes a decision to go on: charges, what resets what, and the wait. */
function settled(ledger: Ledger, decision: Extract<Decision, { next: 'scheduled' }>): Ledger {
  const { charge, lostInARow, after } = decision;
  const next = { ...ledger, lostInARow, now: ledger.now + after };
  switch (charge.to) {
    case 'task':
      return { ...next, charged: raised(ledger.charged, charge, after), deferralsInARow: 0 };
    case 'deferrals':
      return {
        ...next,
        deferralsInARow: ledger.deferralsInARow + 1,
        firstDeferralAt: ledger.deferralsInARow === 0 ? ledger.now : ledger.firstDeferralAt,
      };
    case 'recoveries':
      return { ...next, recoveredAt: [...ledger.recoveredAt, ledger.now] };
    case 'source':
    case 'nobody':
      return next;
  }
}

/** The counts with one more failure of this reason and kind, and the wait after it. */
export function raised(
  counts: readonly Charged[],
  { reason, kind }: Omit<ChargedCount, 'count'>,
  after = 0,
): readonly Charged[] {
  const same = (each: ChargedCount) => each.reason === reason && each.kind === kind;
  const { count = 0, delayMs = 0 } = counts.find(same) ?? {};
  return [...counts.filter((each) => !same(each)), { reason, kind, count: count + 1, delayMs: delayMs + after }];
}

export interface Judged {
  readonly facts: Facts;
  readonly outcome: Outcome;
  readonly decision: Decision;
}

export interface Story {
  readonly given: { readonly idempotent: boolean; readonly deadline?: number };
  readonly executions: readonly {
    readonly took: number;
    readonly outcome: Outcome;
    readonly roll: number;
    readonly source?: SourceFacts;
  }[];
}

const sources: fc.Arbitrary<SourceFacts> = fc.record({
  standing: fc.constantFrom('open', 'down', 'needs_person'),
  shutFor: fc.integer({ min: 0, max: 60_000 }),
});
const executions = (ends: fc.Arbitrary<Outcome>) =>
  fc.record(
    { took: spans, outcome: ends, roll: rolls, source: sources },
    { requiredKeys: ['took', 'outcome', 'roll'] },
  );
const given = fc.record({ idempotent: fc.boolean(), deadline: spans }, { requiredKeys: ['idempotent'] });

/** What happens to a task; the last of its executions repeat for as long as it goes on. */
export const stories: fc.Arbitrary<Story> = fc.record({
  given,
  executions: fc.array(executions(outcomes), { minLength: 1, maxLength: 12 }),
});

/** The same where nothing but the policy ends a task. */
export const troubledStories: fc.Arbitrary<Story> = fc.record({
  given: fc.record({ idempotent: fc.constant(true) }),
  executions: fc.array(executions(troubles), { minLength: 1, maxLength: 6 }),
});

/** Judges a story execution by execution until the task does not go on, at most so many times. */
export function judge(story: Story, policy: Policy, most = 60): Judged[] {
  const judged: Judged[] = [];
  let ledger = newTask(story.given);
  let verdict: string | undefined;
  for (let i = 0; i < most; i++) {
    const execution = story.executions[i % story.executions.length] as Story['executions'][number];
    const { took, roll, source } = execution;
    // What waits for a verdict is not started again.
    const outcome = verdict === undefined ? execution.outcome : { kind: 'verdict' as const, reason: verdict };
    ledger = executed(ledger, took);
    const facts = {
      ...factsOf(ledger),
      ...(source && outcome.kind === 'failure' && { source }),
      ...(verdict !== undefined && { verdict }),
    };
    const decision = decide(facts, outcome, policy, roll);
    judged.push({ facts, outcome, decision });
    if (decision.next !== 'scheduled') break;
    verdict = decision.verdict;
    ledger = settled(ledger, decision);
  }
  return judged;
}
