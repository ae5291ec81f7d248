import type { Milliseconds } from '../../duration.ts';

/** How far the wall clock may be ahead of the time since the boot, because of small corrections. */
export const BELIEVED_AHEAD_MS: Milliseconds = 5 * 60_000;

/** After this time without another jump, the store follows the wall clock. */
export const DOUBTED_FOR_MS: Milliseconds = 3_600_000;

/** A wall clock that jumped forward, and that the store does not follow yet. */
export interface Doubt {
  /** How far it is ahead of the time since the boot. */
  readonly offset: Milliseconds;
  /** The time since the boot when the jump was first seen. */
  readonly since: Milliseconds;
}

export interface Reading {
  readonly wall: number;
  /** The time since the boot, including sleep. */
  readonly uptime: Milliseconds;
  /** The store's time at an earlier moment of the same boot. */
  readonly known: { readonly time: number; readonly uptime: Milliseconds };
  readonly doubt: Doubt | undefined;
}

/**
 * The time that counts. If the wall clock is ahead of what the time since the boot explains, the store's time continues as before
 * until the wall clock has stayed there for an hour.
 */
export function believable({ wall, uptime, known, doubt }: Reading): { readonly time: number; readonly doubt?: Doubt } {
  const expected = Math.floor(known.time + uptime - known.uptime);
  if (wall - expected <= BELIEVED_AHEAD_MS) return { time: wall };
  const offset = wall - uptime;
  const isSame = doubt !== undefined && Math.abs(offset - doubt.offset) <= BELIEVED_AHEAD_MS;
  const held = isSame ? doubt : { offset, since: uptime };
  return uptime - held.since >= DOUBTED_FOR_MS ? { time: wall } : { time: expected, doubt: held };
}
