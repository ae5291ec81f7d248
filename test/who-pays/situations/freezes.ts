import { freeze } from '../lives.ts';
import type { Situation } from '../situation.ts';

/** No lease of it runs out while it is frozen. */
const LONG_LEASE = { worker: { leaseFor: '10m' } };
/** It is over while it is frozen, and leaves time for a renewal on a busy machine. */
const SHORT_LEASE = { worker: { leaseFor: '2s' } };
/** Long enough for what is not frozen on a busy machine. */
const LIMIT_MS = 2_000;
const LIMITED = { ...LONG_LEASE, task: { retry: { timeout: `${LIMIT_MS}ms` } } };

export const FREEZES: readonly Situation[] = [
  {
    name: 'a process that is stopped for longer than the time limit',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' });
      const worker = await scene.worker('worker', LIMITED);
      await worker.says({ running: id });
      await freeze(worker, 2 * LIMIT_MS);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a process that is stopped while a command of its task ends well, for longer than the time limit',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'command', ms: 300 });
      const worker = await scene.worker('worker', LIMITED);
      await worker.says({ running: id });
      await freeze(worker, 2 * LIMIT_MS);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a neighbour that blocks the event loop for longer than the time limit',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'command', ms: 300 });
      await scene.enqueue({ does: 'block', ms: 2 * LIMIT_MS });
      const worker = await scene.worker('worker', LIMITED);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a handler that blocks the event loop for longer than its time limit, and ends well',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'block', ms: 2 * LIMIT_MS });
      const worker = await scene.worker('worker', LIMITED);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a process that is stopped for longer than its lease, with another worker beside it',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' });
      const worker = await scene.worker('worker', SHORT_LEASE);
      await worker.says({ running: id });
      await scene.worker('other');
      await freeze(worker, 5_000);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a handler that blocks the event loop for longer than its lease, with another worker beside it',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'block', ms: 2_500 });
      const worker = await scene.worker('worker');
      await worker.says({ running: id });
      await scene.worker('other');
      await worker.says({ settled: id });
      return id;
    },
  },
];
