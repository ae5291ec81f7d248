import type { Change } from './change.ts';
import { type Memory, NORMAL, type Phase } from './memory.ts';
import { firstRamp } from './ramp.ts';
import { changeTo } from './restriction.ts';

/**
 * The actions of a person on a source. `release`: it works again. A source that needed a person is probed first; otherwise its
 * work is released slowly. `probe`: the next execution may start at once, alone, to test whether the source works again.
 */
export type SourceAction = 'release' | 'probe';

/** The change that an action makes; undefined if it would change nothing. `memory` is aged to the present. */
export function operate(
  memory: Memory | undefined,
  action: SourceAction,
): { readonly memory: Memory; readonly change: Change } | undefined {
  const before = memory ?? NORMAL;
  const phase = action === 'release' ? released(before.phase) : probed(before.phase);
  if (phase === before.phase) return undefined;
  const after = { phase };
  return { memory: after, change: changeTo(after) };
}

function released(phase: Phase): Phase {
  switch (phase.name) {
    case 'closed':
      return phase;
    case 'needs_person':
      return probed(phase);
    case 'probing':
      return { ...shutOf(phase), name: 'ramping', cause: 'breaker', ramp: firstRamp() };
    case 'ramping':
      return phase.shutFor > 0 ? { ...phase, shutFor: 0, heldFor: 0 } : phase;
  }
}

function probed(phase: Phase): Phase {
  switch (phase.name) {
    case 'closed':
      return phase;
    case 'needs_person': {
      const { sinceAgo, last } = phase;
      return { name: 'probing', answeredProbes: 0, sinceAgo, shutFor: 0, heldFor: 0, failedProbes: 0, last };
    }
    case 'probing':
      return phase.shutFor > 0 ? { ...phase, shutFor: 0 } : phase;
    case 'ramping':
      return phase.shutFor > 0 ? { ...shutOf(phase), name: 'probing', answeredProbes: 0 } : phase;
  }
}

function shutOf({ sinceAgo, failedProbes, last }: Extract<Phase, { readonly shutFor: number }>) {
  return { sinceAgo, shutFor: 0, heldFor: 0, failedProbes, last };
}
