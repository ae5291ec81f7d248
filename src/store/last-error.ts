import type { Failure } from '../failure/outcome.ts';
import type { LastFailure } from './store.ts';

/** How much of the last error message is stored with a retry, in UTF-16 units. */
const LONGEST = 1_024;

/**
 * The beginning of an error's message. It is well-formed: it is not cut within a surrogate pair, and lone surrogates are
 * replaced.
 */
export function lastError(message: string): string {
  const end = message.length > LONGEST && isHigh(message.charCodeAt(LONGEST - 1)) ? LONGEST - 1 : LONGEST;
  return message.slice(0, end).toWellFormed();
}

/** Whether a character of two units begins here. */
function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

/** The kind, reason and fingerprint of a failure, as the column `failed_as` has them. None contains a space. */
export function failedAs({ kind, reason, fingerprint }: Failure): string {
  return fingerprint === undefined ? `${kind} ${reason}` : `${kind} ${reason} ${fingerprint}`;
}

/**
 * The last failure from its two columns. `failedAs` is null if an older version of Holdfast stored the failure, or the task was
 * imported.
 */
export function lastFailure(message: string, failedAs: string | null | undefined): LastFailure {
  const [kind, reason, fingerprint] = (failedAs ?? 'unknown unknown').split(' ') as [
    LastFailure['kind'],
    string,
    string | undefined,
  ];
  return fingerprint === undefined ? { kind, reason, message } : { kind, reason, message, fingerprint };
}
