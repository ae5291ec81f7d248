import type { Milliseconds } from '../../duration.ts';

/** The wall clock may run ahead of the time since the boot by so much: corrections are small. */
export const BELIEVED_AHEAD_MS: Milliseconds = 5 * 60_000;

/** A wall clock that has stayed where it jumped to for so long is believed. */
export const DOUBTED_FOR_MS: Milliseconds = 3_600_000;

/** A wall clock that jumped forward, and is not believed yet. */
export interface Doubt {
  /** What it is ahead of the time since the boot. */
  readonly offset: Milliseconds;
  /** The time since the boot when the jump was first seen. */
  readonly since: Milliseconds;
}

export interface Reading {
  readonly wall: number;
  /** Since the boot, with the time that the machine slept. */
  readonly uptime: Milliseconds;
  /** The store's time at an earlier moment of the same boot. */
  readonly known: { readonly time: number; readonly uptime: Milliseconds };
  readonly doubt: Doubt | undefined;
}

/**
 * The time to go by. Where the wall clock is further than the time since the boot explains, the store's time goes on from before,
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
