import type { Milliseconds } from '../../duration.ts';
import type { FailureKind, Fault } from '../outcome.ts';

/** What a family of errors says about one error: the part of a failure that is not its text. */
export interface Verdict {
  readonly reason: string;
  readonly kind: FailureKind;
  readonly fault: Fault;
  /** Default false. */
  readonly ambiguous?: boolean;
  readonly retryAfterMs?: Milliseconds;
  /** The field that was read. */
  readonly field?: string;
}

/** A family of errors as the classifier asks it: recognise one error by its shape, or leave it to the next. */
export interface Family {
  readonly name: string;
  readonly recognise: (error: unknown, now: number) => Verdict | undefined;
}
