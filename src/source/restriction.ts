import { paced } from '../pace.ts';
import type { Change, Refund, Restriction } from './change.ts';
import { isNormal, type Memory } from './memory.ts';
import { writeMemory } from './stored.ts';

/** The change that makes a store remember this, and enforce what follows from it. */
export function changeTo(memory: Memory, tokens = 0, refunds: readonly Refund[] = []): Change {
  if (isNormal(memory)) return { tokens, refunds };
  const restriction = restrictionOf(memory);
  return { memory: writeMemory(memory), ...(restriction && { restriction }), tokens, refunds };
}

/** What the store must enforce of a source. */
export function restrictionOf({ phase, quota }: Memory): Restriction | undefined {
  switch (phase.name) {
    case 'closed':
      return quota && { cause: 'rate_limit', pace: { perSecond: quota.perSecond, burst: 1 } };
    case 'needs_person':
      return { cause: 'needs_person', shutFor: 'released' };
    case 'probing':
      return { cause: 'breaker', probing: true, ...shut(phase.shutFor) };
    case 'ramping': {
      const { cause, ramp } = phase;
      const rate = Math.min(
        ramp.free ? Number.POSITIVE_INFINITY : ramp.rate,
        quota?.perSecond ?? Number.POSITIVE_INFINITY,
      );
      return { cause, ramping: true, ...(Number.isFinite(rate) && { pace: paced(rate) }), ...shut(phase.shutFor) };
    }
  }
}

function shut(shutFor: number): Pick<Restriction, 'shutFor'> {
  return shutFor > 0 ? { shutFor } : {};
}
