import { startProxy } from '../../postgres/proxy.ts';
import type { Program, Scene } from '../scene.ts';
import type { Situation } from '../situation.ts';

const RECOVERER: Program = { types: ['other'] };

/** A worker runs the task in a pid namespace of its own, and is killed. */
async function killedOutOfSight(scene: Scene): Promise<number> {
  const id = await scene.enqueue({ does: 'untilTold' });
  const worker = await scene.worker('container', {}, { ownPids: true });
  await worker.says({ running: id });
  worker.signal('SIGKILL');
  await worker.ended;
  return id;
}

/** Workers of which nothing but the lease can be seen: in another container, before a reboot, behind a lost connection. */
export const OUT_OF_SIGHT: readonly Situation[] = [
  {
    name: 'a worker in another pid namespace that lives, with another worker beside it',
    payer: 'nobody',
    state: 'succeeded',
    executions: 1,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: 'work', ms: 3_000 });
      const worker = await scene.worker('container', {}, { ownPids: true });
      await worker.says({ running: id });
      await scene.worker('other', RECOVERER);
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a worker in another pid namespace that is killed',
    payer: 'nobody',
    state: 'ready',
    explains: /Its worker container was lost/,
    async happen(scene) {
      const id = await killedOutOfSight(scene);
      const other = await scene.worker('other', RECOVERER);
      await other.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a worker in another pid namespace that is killed, and processes that live for a moment after it',
    payer: 'nobody',
    state: 'succeeded',
    executions: 2,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await killedOutOfSight(scene);
      for (let n = 1; (await scene.task(id)).state === 'running'; n++) {
        if (n > 40) throw new Error(`After ${n - 1} processes nobody has taken it over.`);
        await scene.moment(`moment-${n}`, { ...RECOVERER, lives: 'runOne' });
      }
      const worker = await scene.worker('last');
      await worker.says({ running: id });
      worker.signal('SIGUSR2');
      await worker.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a worker in another pid namespace that is killed, and one process that drains the queue long after it',
    payer: 'nobody',
    state: 'ready',
    explains: /Its worker container was lost/,
    async happen(scene) {
      const id = await killedOutOfSight(scene);
      await scene.alterWorkers('lease_until = lease_until - 60000');
      await scene.moment('cron', { ...RECOVERER, lives: 'drain' });
      return id;
    },
  },
  {
    name: 'a worker of before a reboot',
    payer: 'nobody',
    state: 'ready',
    explains: /Its worker before was lost/,
    async happen(scene) {
      const id = await scene.enqueue({ does: 'untilTold' });
      const worker = await scene.worker('before');
      await worker.says({ running: id });
      worker.signal('SIGKILL');
      await worker.ended;
      await scene.alterWorkers("boot = 'an earlier boot'");
      const other = await scene.worker('after', RECOVERER);
      await other.says({ settled: id });
      return id;
    },
  },
  {
    name: 'a worker that loses the connection to its server for longer than its lease',
    only: 'postgres',
    payer: 'nobody',
    state: 'succeeded',
    executions: 2,
    explains: 'has succeeded',
    async happen(scene) {
      const id = await scene.enqueue({ does: ['tellAborted', 'succeed'] });
      const proxy = await startProxy(scene.where);
      try {
        const worker = await scene.worker('cut off', {}, { where: proxy.url(scene.where) });
        await worker.says({ running: id });
        proxy.swallow();
        proxy.freeze();
        await worker.says({ aborted: id, reason: 'LeaseLostError' });
        proxy.cut();
        proxy.thaw();
        await worker.says({ settled: id, state: 'succeeded' });
      } finally {
        await proxy.close();
      }
      return id;
    },
  },
];
