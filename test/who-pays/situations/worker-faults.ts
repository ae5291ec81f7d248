import { expect } from 'vitest';
import type { Scene } from '../scene.ts';
import type { Situation } from '../situation.ts';

/** The first execution fails for want of something that the worker's machine should have. */
function faulty(code: string, syscall: string) {
  return async (scene: Scene) => {
    const id = await scene.enqueue({
      does: ['throw', 'succeed'],
      error: { message: `${code}: ${syscall}`, code, syscall },
    });
    const worker = await scene.worker('worker');
    await worker.says({ settled: id, execution: 1 });
    return id;
  };
}

const FAULTS: readonly Situation[] = (
  [
    ['a disk of the worker that is full', 'ENOSPC', 'write'],
    ['a worker that has no file descriptors left', 'EMFILE', 'open'],
    ['a worker that has no memory left', 'ENOMEM', 'read'],
  ] as const
).map(([name, code, syscall]) => ({
  name,
  payer: 'a deferral',
  state: 'scheduled',
  executions: 1,
  explains: 'Nothing is charged',
  happen: faulty(code, syscall),
}));

export const WORKER_FAULTS: readonly Situation[] = [
  ...FAULTS,
  {
    name: 'a task that waits for a worker whose disk is full',
    payer: 'nobody',
    state: 'ready',
    executions: 0,
    explains: /cannot work properly and has claimed only single tasks to test.*fs\.no_space/,
    async happen(scene) {
      const error = { message: 'ENOSPC: write', code: 'ENOSPC', syscall: 'write' };
      await scene.enqueue({ does: 'throw', error });
      await scene.enqueue({ does: 'throw', error });
      const worker = await scene.worker('worker', { worker: { concurrency: 2 } });
      await worker.says({ event: 'worker.paused' });
      // The worker tries one of them.
      await scene.enqueue({ does: 'untilTold' });
      const id = await scene.enqueue({ does: 'untilTold' });
      const reported = [{ trouble: { reason: 'fs.no_space' } }];
      await expect.poll(() => scene.holdfast.workers(), { timeout: 20_000 }).toMatchObject(reported);
      return id;
    },
  },
];
