import { uptime } from 'node:os';
import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/**
 * Milliseconds since the machine was started, with those in which it slept. Undefined where the system does not tell: then a jump of
 * the wall clock cannot be told from a sleep.
 */
export function uptimeOf(clock: Clock): Milliseconds | undefined {
  if (clock.uptime) return clock.uptime();
  const isHost = clock.timeline === undefined;
  return isHost && process.platform === 'linux' ? uptime() * 1_000 : undefined;
}
