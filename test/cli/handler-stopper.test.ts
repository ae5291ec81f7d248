import { describe, expect, test } from 'vitest';
import { HandlerStopper } from '../../src/cli/foreground/handler-stopper.ts';

const idle = () => new AbortController().signal;

/** A handler that ends when its signal fires, with the signal's reason, as those of commands and moves do. */
function obedient({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

describe('stopper', () => {
  test('let a handler end by itself', async () => {
    const stopper = new HandlerStopper();
    expect(await stopper.run({ signal: idle() }, async () => 'done')).toBe('done');
    await expect(stopper.run({ signal: idle() }, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(stopper.running).toBe(0);
  });

  test('stop a handler, which then waits for its worker to abort it', async () => {
    const stopper = new HandlerStopper();
    const worker = new AbortController();
    let ended = false;
    const guarded = stopper.run({ signal: worker.signal }, obedient).finally(() => {
      ended = true;
    });
    stopper.stop();
    await stopper.allStopped();
    expect(ended).toBe(false);
    worker.abort(new Error('shutdown'));
    await expect(guarded).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('leave what the worker aborts to the worker', async () => {
    const stopper = new HandlerStopper();
    const worker = new AbortController();
    const guarded = stopper.run({ signal: worker.signal }, obedient);
    worker.abort(new Error('timeout'));
    await expect(guarded).rejects.toThrow('timeout');
  });

  test('do not hide that a handler failed while it was stopped', async () => {
    const stopper = new HandlerStopper();
    const guarded = stopper.run({ signal: idle() }, async (task) => {
      await obedient(task).catch(() => {});
      throw new Error('exit 3');
    });
    stopper.stop();
    await expect(guarded).rejects.toThrow('exit 3');
  });

  test('stop what begins after they were put on', async () => {
    const stopper = new HandlerStopper();
    stopper.stop();
    const worker = new AbortController();
    const guarded = stopper.run({ signal: worker.signal }, async ({ signal }) => signal.throwIfAborted());
    await stopper.allStopped();
    worker.abort();
    await expect(guarded).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('wait for the slowest of several', async () => {
    const stopper = new HandlerStopper();
    let finish = () => {};
    const slow = stopper.run({ signal: idle() }, () => new Promise<void>((resolve) => (finish = resolve)));
    const worker = new AbortController();
    const fast = stopper.run({ signal: worker.signal }, obedient);
    stopper.stop();
    let stopped = false;
    const all = stopper.allStopped().then(() => {
      stopped = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([stopped, stopper.running]).toEqual([false, 1]);
    finish();
    await Promise.all([all, slow]);
    worker.abort();
    await expect(fast).rejects.toMatchObject({ name: 'AbortError' });
  });
});
