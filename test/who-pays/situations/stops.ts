import type { Situation } from '../situation.ts';

export const STOPS: readonly Situation[] = [
  {
    name: 'a worker that stops and hands the task back',
    payer: 'nobody',
    state: 'ready',
    explains: 'Its worker shut down while it ran',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'deaf' });
      const worker = await scene.worker('worker', { grace: '300ms' });
      await worker.says({ running: id });
      worker.signal('SIGTERM');
      await worker.endsWell();
      return id;
    },
  },
];
