import { paced } from '../pace.ts';
import type { Change, Refund, Restriction } from './change.ts';
import { isNormal, type Memory } from './memory.ts';
import { writeMemory } from './stored.ts';

/** The change that stores this memory and the restriction that follows from it. */
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
      const released = ramp.free ? undefined : paced(ramp.rate, Math.min(LATE_BURST, Math.ceil(ramp.rate)));
      const pace =
        quota && quota.perSecond < (released?.perSecond ?? Number.POSITIVE_INFINITY)
          ? paced(quota.perSecond)
          : released;
      return { cause, ramping: true, ...(pace && { pace }), ...shut(phase.shutFor) };
    }
  }
}

/**
 * Workers are a little late for each start. With a burst of 1, each late start would delay the next one, and the rate would never
 * be reached.
 */
const LATE_BURST = 2;

function shut(shutFor: number): Pick<Restriction, 'shutFor'> {
  return shutFor > 0 ? { shutFor } : {};
}
