import { randomBytes } from 'node:crypto';

/** Guards the leases of one claim: counters go back when a backup is restored, random numbers do not. */
export function newToken(): string {
  return randomBytes(12).toString('base64url');
}
