import type { Milliseconds } from '../duration.ts';
import type { Decision } from '../failure/decide.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Policy } from '../failure/policy.ts';
import type { Claimed } from '../store/store.ts';
import type { TaskState } from '../task.ts';

/**
 * What a worker tells of: each execution's start, then its settlement. What it decides about tasks that others lost, and
 * about those whose deadline passed, is settled without a start.
 */
export type WorkerEvent =
  | { readonly kind: 'started'; readonly task: Claimed; readonly policy: Policy }
  | {
      readonly kind: 'settled';
      readonly task: Claimed;
      readonly outcome: Outcome;
      readonly decision: Decision;
      readonly state: TaskState;
      readonly ranFor: Milliseconds;
    }
  /** The lease had ended: what was reported is kept as evidence, and changed nothing. */
  | { readonly kind: 'stale'; readonly task: Claimed; readonly outcome: Outcome };

/** What one execution came to. */
export type Finished = Extract<WorkerEvent, { kind: 'settled' | 'stale' }>;
