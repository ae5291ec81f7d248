import type { Change } from './change.ts';
import type { Cause, Memory, Phase } from './memory.ts';

/**
 * The conditions of a source whose begin is logged and recorded: it is in its normal state, it is down, it asked for a wait, its tasks
 * are released slowly, or it needs a person.
 */
export type RecordedCondition = 'normal' | 'down' | 'waits' | 'ramping' | 'needs_person';

/** How the condition of a source has changed. */
export interface NewCondition {
  readonly to: RecordedCondition;
  /** The failure that caused it. */
  readonly last?: Cause;
  /** How long no task starts. */
  readonly heldForMs?: number;
  /** How many attempts are given back. */
  readonly refunded: number;
}

/** Undefined if the condition is the same as before. */
export function newCondition(
  before: Memory | undefined,
  { phase }: Memory,
  { refunds }: Pick<Change, 'refunds'>,
): NewCondition | undefined {
  const to = changeBetween(before?.phase ?? CLOSED, phase);
  if (!to) return undefined;
  return {
    to,
    ...('last' in phase && { last: phase.last }),
    ...('shutFor' in phase && phase.shutFor > 0 && { heldForMs: phase.shutFor }),
    refunded: refunds.length,
  };
}

const CLOSED: Phase = { name: 'closed' };

function changeBetween(before: Phase, after: Phase): RecordedCondition | undefined {
  const waits = after.name === 'ramping' && after.shutFor > 0;
  const waited = before.name === 'ramping' && before.shutFor > 0;
  if (waits) return waited ? undefined : 'waits';
  if (after.name === before.name) return undefined;
  switch (after.name) {
    case 'closed':
      return 'normal';
    case 'probing':
      return 'down';
    case 'ramping':
      return 'ramping';
    case 'needs_person':
      return 'needs_person';
  }
}
