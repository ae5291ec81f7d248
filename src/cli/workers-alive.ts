import { hostname } from 'node:os';
import type { Holdfast } from '../queue/holdfast.ts';
import type { WorkerRecord } from '../store/store.ts';

const FOREGROUND = 'foreground-';

/** The name of the worker that a foreground command is. It takes only its own tasks. */
export function foregroundName(pid: number): string {
  return `${FOREGROUND}${pid}`;
}

/** Whether a worker takes whatever is due, as opposed to the few tasks of a `run`, `mv` or `resume`, or one that was claimed by hand. */
export function worksAll({ name, takes }: WorkerRecord): boolean {
  return !name.startsWith(FOREGROUND) && takes.types?.length !== 0;
}

/** Whether a worker may still live: its lease runs, and on this host there is a process of its number. */
export function isAlive(worker: WorkerRecord, now: number): boolean {
  if (worker.leaseUntil <= now) return false;
  return worker.host !== hostname() || exists(worker.pid);
}

/** Whether somebody is there who takes what is due. */
export async function someoneWorks(holdfast: Holdfast): Promise<boolean> {
  const now = holdfast.store.upkeep.now();
  return (await holdfast.workers()).some((worker) => worksAll(worker) && isAlive(worker, now));
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}
