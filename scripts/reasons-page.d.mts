import type { Backoff } from '../src/failure/backoff.ts';
import type { EngineReasonInfo, ReasonInfo } from '../src/failure/classify/reasons.ts';
import type { FailureKind } from '../src/failure/outcome.ts';
import type { Answer } from '../src/failure/policy.ts';

export function reasonsPage(of: {
  readonly reasons: Readonly<Record<string, ReasonInfo>>;
  readonly engineReasons: Readonly<Record<string, EngineReasonInfo>>;
  readonly answer: (reason: string, kind: FailureKind) => Answer;
  readonly backoff: (backoff: Backoff) => string;
}): string;
