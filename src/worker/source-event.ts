import type { Change } from '../source/change.ts';
import type { Memory, Phase } from '../source/memory.ts';
import type { EngineEvent, SourceChange } from '../telemetry/events.ts';

/** The event of a source after an outcome; undefined if its condition is the same as before. */
export function sourceEvent(
  source: string,
  before: Memory | undefined,
  after: Memory,
  { refunds }: Change,
): Extract<EngineEvent, { kind: 'source' }> | undefined {
  const change = changeBetween(before?.phase ?? CLOSED, after.phase);
  if (!change) return undefined;
  const { phase } = after;
  return {
    kind: 'source',
    source,
    change,
    refunded: refunds.length,
    ...('last' in phase && { reason: phase.last.reason }),
    ...('shutFor' in phase && phase.shutFor > 0 && { heldForMs: phase.shutFor }),
  };
}

const CLOSED: Phase = { name: 'closed' };

function changeBetween(before: Phase, after: Phase): SourceChange | undefined {
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
