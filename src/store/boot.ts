import { readFileSync } from 'node:fs';

let known: { readonly id: string | null } | undefined;

/** The id of the host's present boot; null if the system has none. */
export function bootId(): string | null {
  known ??= { id: readBootId() };
  return known.id;
}

function readBootId(): string | null {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    // Not Linux, or /proc is not mounted.
    return null;
  }
}
