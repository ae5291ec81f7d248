import type { Holdfast } from '../../queue/holdfast.ts';
import type { WorkerRecord } from '../../store/store.ts';

const FOREGROUND = 'foreground-';

/** The name of the worker that a foreground command is. It takes only its own tasks. */
export function foregroundName(pid: number): string {
  return `${FOREGROUND}${pid}`;
}

/** Whether a worker takes whatever is due, as opposed to the few tasks of a `run`, `mv` or `resume`, or one that was claimed by hand. */
export function worksAll({ name, takes }: WorkerRecord): boolean {
  return !name.startsWith(FOREGROUND) && takes.types?.length !== 0;
}

/** Whether somebody is there who takes what is due. */
export async function someoneWorks(holdfast: Holdfast): Promise<boolean> {
  return (await holdfast.workers()).some((worker) => worksAll(worker) && worker.keepsTasks);
}
