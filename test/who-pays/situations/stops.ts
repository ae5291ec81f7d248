import { elapse } from '../lives.ts';
import { lock } from '../lock.ts';
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
  {
    name: 'five deploys that kill a worker which was told to stop',
    payer: 'nobody',
    state: 'ready',
    executions: 5,
    explains: /Its worker deploy-5 was told to stop, and ended before the task.*Nothing is charged/,
    shows: 'was told to stop',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'stubborn' });
      for (let n = 1; n <= 5; n++) {
        const worker = await scene.worker(`deploy-${n}`, { grace: '1s' });
        await worker.says({ running: id });
        worker.signal('SIGTERM');
        await worker.says({ aborted: id });
        worker.signal('SIGKILL');
        await worker.ended;
      }
      const last = await scene.worker('last', { types: ['other'] });
      await last.says({ settled: id });
      if ((await scene.task(id)).suspect) throw new Error('A deploy made the task a suspect.');
      return id;
    },
  },
  {
    name: 'a worker that stops while its database is locked, and cannot hand the task back',
    payer: 'nobody',
    state: 'succeeded',
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: ['untilAborted', 'succeed'] });
      const worker = await scene.worker('worker', { grace: '300ms' });
      await worker.says({ running: id });
      const release = await lock(scene);
      worker.signal('SIGTERM');
      await worker.says({ event: 'unwritten', task: id });
      await worker.ended;
      await release();
      const next = await scene.worker('next');
      await next.says({ settled: id, state: 'succeeded' });
      return id;
    },
  },
  {
    name: 'a worker that stops after the time to give up, while the task runs for the first time',
    payer: 'nobody',
    state: 'ready',
    executions: 1,
    explains: 'Its worker shut down while it ran',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'deaf' });
      const worker = await scene.worker('worker', { grace: '100ms', task: { retry: { giveUpAfter: '1s' } } });
      await worker.says({ running: id });
      await elapse(1_200);
      worker.signal('SIGTERM');
      await worker.endsWell();
      return id;
    },
  },
];
