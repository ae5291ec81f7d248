import type { Milliseconds } from '../../duration.ts';
import type { FailureKind, Fault } from '../outcome.ts';
import type { Node } from './tree.ts';

/** What is known of the execution that failed, beside the error. */
export interface ClassifyContext {
  /** The time against which dates in the error are read, in milliseconds of the epoch. */
  readonly now: number;
  /** The task's type, for rules that are about one. */
  readonly type?: string;
}

/** What a rule that matched says, and where. */
export interface Ruled {
  readonly says: Says;
  readonly name: string;
  readonly field: string;
  readonly node: Node;
}

/** Asks the rules of an application, in their order, about what was thrown. */
export type Rules = (tree: Node, context: ClassifyContext) => Ruled | undefined;

/** What a rule says of a failure, with its defaults filled in. */
export interface Says {
  readonly reason: string;
  readonly kind: FailureKind;
  readonly fault: Fault;
  readonly ambiguous: boolean;
  readonly retryAfterMs?: Milliseconds;
}
