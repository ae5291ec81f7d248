import type { NewCondition } from '../source/condition.ts';
import type { EngineEvent } from '../telemetry/events.ts';

/** The event of a source whose condition has changed. */
export function sourceEvent(
  source: string,
  { to, last, heldForMs, refunded }: NewCondition,
): Extract<EngineEvent, { kind: 'source' }> {
  return {
    kind: 'source',
    source,
    change: to,
    refunded,
    ...(last && { reason: last.reason }),
    ...(heldForMs !== undefined && { heldForMs }),
  };
}
