import { lastError } from './last-error.ts';
import type { Imported, ImportedTask } from './store.ts';

/** What an imported task is remembered with. */
interface ImportedCounts {
  readonly inARow: number;
  readonly reason: string | null;
  readonly error: string | null;
}

/**
 * Where failures were charged too, nobody knows which deferrals came after the last of them: then their row begins here. So do
 * the clocks of `giveUpAfter` and `maxDeferredFor`.
 */
export function importedCounts({ stands, charged, deferrals, reason, error }: ImportedTask): ImportedCounts {
  return {
    inARow: charged.length === 0 ? deferrals : 0,
    reason: stands === 'succeeded' ? null : (reason ?? null),
    error: error === undefined ? null : lastError(error),
  };
}

/** What had been counted of it, as JSON for its history; null where nothing was. */
export function importedText({ executions, charged, deferrals, reason, error }: ImportedTask): string | null {
  if (executions === 0 && reason === undefined && error === undefined) return null;
  const counts: Imported = {
    executions,
    charged,
    deferrals,
    ...(reason !== undefined && { reason }),
    ...(error !== undefined && { error: lastError(error) }),
  };
  return JSON.stringify(counts);
}
