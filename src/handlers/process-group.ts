import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { Milliseconds } from '../duration.ts';

/** Whether the system has process groups. */
export const POSIX = process.platform !== 'win32';

/** How long a killed group may take to end. */
export const LINGER: Milliseconds = 1_000;

/** What `/proc` tells of a process. */
export interface ProcessState {
  readonly pid: number;
  readonly state: string;
  readonly group: number;
  /** When it started, in ticks since the machine did. */
  readonly started: string;
}

/**
 * Whether `done` became true in time. It polls with growing pauses, because the system does not report the end of a group. It adds up
 * the pauses and reads no clock, so that a blocked event loop does not cut off output that waits to be read.
 */
export async function within(ms: Milliseconds, done: () => boolean, hurry?: AbortSignal): Promise<boolean> {
  let left = ms;
  for (let step = 1; !done(); step = Math.min(2 * step, 256)) {
    if (left <= 0 || hurry?.aborted) return false;
    await delay(Math.min(step, left));
    left -= step;
  }
  return true;
}

/** Sends a signal to a group. False where it is another user's (sudo) and out of our reach. */
export function signalGroup(group: number, signal: NodeJS.Signals): boolean {
  try {
    process.kill(-group, signal);
    return true;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ESRCH' && code !== 'EPERM') throw error;
    return code === 'ESRCH';
  }
}

/** Whether a process of the group still runs. Of a child's group asked only once the child was reaped. */
export function groupLives(group: number): boolean {
  if (!POSIX) return false;
  try {
    process.kill(-group, 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false;
  }
  return !isAllZombies(group);
}

/** In a container without an init process, nobody reaps orphans: they keep the group's number but no longer run. */
function isAllZombies(group: number): boolean {
  if (process.platform !== 'linux') return false;
  const members = processes().filter((one) => one.group === group);
  return members.length > 0 && members.every(hasEnded);
}

export function hasEnded({ state }: ProcessState): boolean {
  return state === 'Z' || state === 'X';
}

/** The processes that can be seen from here and of which this is true; none where there is no `/proc`. */
export function processes(where: (pid: number) => boolean = () => true): ProcessState[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && where(Number(name)))
    .flatMap((name) => processState(Number(name)) ?? []);
}

/** Undefined if there is no such process, or the system says nothing about it. */
export function processState(pid: number): ProcessState | undefined {
  try {
    // "17 (a name, which may hold anything) S parent group …"
    const text = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { pid, state: fields[0] as string, group: Number(fields[2]), started: fields[19] as string };
  } catch {
    return undefined;
  }
}
