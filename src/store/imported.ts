import { lastError } from './last-error.ts';
import type { Imported, ImportedTask } from './store.ts';

/** The stored facts of an imported task. */
interface ImportedCounts {
  readonly inARow: number;
  readonly reason: string | null;
  readonly error: string | null;
}

/**
 * If failures were charged too, it is not known which deferrals came after the last failure, so deferrals in a row start at zero.
 * `giveUpAfter` and `maxDeferredFor` also start now.
 */
export function importedCounts({ stands, charged, deferrals, reason, error }: ImportedTask): ImportedCounts {
  return {
    inARow: charged.length === 0 ? deferrals : 0,
    reason: stands === 'succeeded' ? null : (reason ?? null),
    error: error === undefined ? null : lastError(error),
  };
}

/** Its counts as JSON, for its history; null if there are none. */
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
