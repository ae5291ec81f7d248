import { setTimeout as delay } from 'node:timers/promises';
import type { Child } from '../process/children.ts';
import type { Program, Scene } from './scene.ts';

/** Starts one worker process after the other until the task is in this state: each runs until it dies or settles the task so. */
export async function workersUntil(scene: Scene, id: number, state: string, program: Program = {}): Promise<void> {
  for (let n = 1; (await scene.task(id)).state !== state; n++) {
    if (n > 40) throw new Error(`After ${n - 1} workers it is not ${state}: ${await scene.explain(id)}`);
    const worker = await scene.worker(`worker-${n}`, program);
    const settled = worker.says({ settled: id, state }).catch(() => {});
    await Promise.race([worker.ended, settled]);
    worker.signal('SIGTERM');
    await worker.ended;
  }
}

/** A worker is killed while it runs the task; another one recovers it, and runs nothing itself. */
export async function lostOnce(scene: Scene, id: number, program: Program = {}): Promise<void> {
  const first = await scene.worker('first', program);
  await first.says({ running: id });
  first.signal('SIGKILL');
  await first.ended;
  const second = await scene.worker('second', { types: ['other'] });
  await second.says({ settled: id });
}

/** Stops the process of a worker by a signal, and lets it go on when its handlers have been told to end. */
export async function freeze(worker: Child, ms: number): Promise<void> {
  worker.signal('SIGSTOP');
  await elapse(ms);
  // It waits for the process, as an answer would that came meanwhile.
  worker.signal('SIGUSR2');
  worker.signal('SIGCONT');
}

/** Lets real time pass: real processes are judged by the system's clock, which no test can move. */
export async function elapse(ms: number): Promise<void> {
  await delay(ms);
}
