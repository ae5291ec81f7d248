import { uptime } from 'node:os';
import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';

/**
 * Milliseconds since the boot of the machine, including sleep. Undefined if the system does not say: then a jump of the wall
 * clock cannot be distinguished from a sleep.
 */
export function uptimeOf(clock: Clock): Milliseconds | undefined {
  if (clock.uptime) return clock.uptime();
  const isHost = clock.timeline === undefined;
  return isHost && process.platform === 'linux' ? uptime() * 1_000 : undefined;
}
