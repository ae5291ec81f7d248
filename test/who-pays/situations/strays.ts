import type { Scene } from '../scene.ts';
import type { Situation } from '../situation.ts';

/** A handler leaves something behind that fails while a neighbour runs, which then ends well in the same process. */
async function besideNeighbour(scene: Scene, does: string, ms: number): Promise<number> {
  const neighbour = await scene.enqueue({ does: 'untilTold' });
  const id = await scene.enqueue({ does, ms });
  const worker = await scene.worker('worker');
  await worker.says({ running: neighbour });
  await worker.says({ settled: id, state: 'succeeded' });
  await worker.says({ event: 'stray', task: id });
  worker.signal('SIGUSR2');
  await worker.says({ settled: neighbour, state: 'succeeded' });
  worker.signal('SIGTERM');
  await worker.endsWell();
  return id;
}

export const STRAYS: readonly Situation[] = [
  {
    name: 'a promise that is left behind and rejected after its task has succeeded',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    shows: /unknown {2}where nobody waited for it.*\n.*Nobody awaited this\./,
    happen: (scene) => besideNeighbour(scene, 'leaveRejection', 300),
  },
  {
    name: 'an exception in a timer that is left behind by a task that has succeeded',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    shows: /unknown {2}where nobody waited for it.*\n.*Nobody catches this\./,
    happen: (scene) => besideNeighbour(scene, 'throwLater', 300),
  },
  {
    name: 'a promise that is left behind where the process is to end by it',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    shows: 'Nobody awaited this.',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'leaveRejection', ms: 300 });
      const worker = await scene.worker('worker', { worker: { unhandledRejections: 'exit' } });
      if ((await worker.ended).code !== 1) throw new Error('The process did not end by the rejection.');
      return id;
    },
  },
];
