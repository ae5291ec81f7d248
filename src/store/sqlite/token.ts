import { randomBytes } from 'node:crypto';

/** The token that proves the leases of one claim. It is random, because a counter would go back when a backup is restored. */
export function newToken(): string {
  return randomBytes(12).toString('base64url');
}
