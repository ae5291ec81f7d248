import type { Milliseconds } from '../../duration.ts';
import type { FailureKind, Fault } from '../outcome.ts';
import type { Node } from './tree.ts';

/** What is known about the failed execution besides the error. */
export interface ClassifyContext {
  /** The current time in milliseconds of the epoch, for dates in the error. */
  readonly now: number;
  /** The task's type, for rules about one type. */
  readonly type?: string;
}

/** The result of a rule that matched, and where it matched. */
export interface MatchedRule {
  readonly says: Says;
  readonly name: string;
  readonly field: string;
  readonly node: Node;
}

/** Tries the rules of an application, in their order, on the thrown value. */
export type Rules = (tree: Node, context: ClassifyContext) => MatchedRule | undefined;

/** What a rule says about a failure, with its defaults filled in. */
export interface Says {
  readonly reason: string;
  readonly kind: FailureKind;
  readonly fault: Fault;
  readonly ambiguous: boolean;
  readonly retryAfterMs?: Milliseconds;
}
