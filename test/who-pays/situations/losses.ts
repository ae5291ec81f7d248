import { lostOnce, workersUntil } from '../lives.ts';
import type { Situation } from '../situation.ts';

const ALONE = { worker: { concurrency: 1 } };

export const LOSSES: readonly Situation[] = [
  {
    name: 'a worker that is killed',
    payer: 'nobody',
    state: 'ready',
    explains: /Its worker first was lost.*Nothing is charged/,
    shows: 'first',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' });
      await lostOnce(scene, id);
      return id;
    },
  },
  {
    name: 'a worker that is killed, and the next one that runs it to its end',
    payer: 'nobody',
    state: 'succeeded',
    executions: 2,
    explains: /has succeeded .*, in execution 2/,
    async happen(scene) {
      const id = await scene.enqueue({ does: ['die', 'succeed'] });
      await workersUntil(scene, id, 'succeeded');
      return id;
    },
  },
  {
    name: 'a task that kills its worker whenever it runs',
    payer: { recoveries: 4 },
    state: 'needs_manual',
    executions: 5,
    explains: 'lost with its worker 4 times',
    shows: 'lost with its worker 4 times',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'die' });
      await workersUntil(scene, id, 'needs_manual', ALONE);
      return id;
    },
  },
  {
    name: 'a neighbour that kills the worker until it is found',
    payer: 'nobody',
    state: 'succeeded',
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'work', ms: 1_000 });
      const neighbour = await scene.enqueue({ does: 'die' });
      await workersUntil(scene, neighbour, 'needs_manual');
      await workersUntil(scene, id, 'succeeded');
      return id;
    },
  },
  {
    name: 'a long task beside others that kill the worker, again and again',
    payer: 'nobody',
    state: 'succeeded',
    executions: 3,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'work', ms: 1_000 });
      for (let n = 1; n <= 2; n++) {
        const worker = await scene.worker(`worker-${n}`);
        await worker.says({ running: id });
        await scene.enqueue({ does: 'die' });
        await worker.ended;
      }
      // From here on it runs alone: the others, which would kill it again, wait for it.
      await workersUntil(scene, id, 'succeeded');
      return id;
    },
  },
  {
    name: 'a task that its worker alone knows must not run twice, and whose worker is killed',
    payer: 'nobody',
    state: 'needs_manual',
    executions: 1,
    explains: 'is not idempotent: its effect may have happened',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' });
      await lostOnce(scene, id, { task: { idempotent: false } });
      return id;
    },
  },
  {
    name: 'a task that must not run twice, and whose worker is killed',
    payer: 'nobody',
    state: 'needs_manual',
    explains: 'is not idempotent: its effect may have happened',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' }, { idempotent: false });
      await lostOnce(scene, id);
      return id;
    },
  },
];
