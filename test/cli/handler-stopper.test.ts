import { describe, expect, test } from 'vitest';
import { Brakes } from '../../src/cli/foreground/handler-stopper.ts';

const idle = () => new AbortController().signal;

/** A handler that ends when its signal fires, with the signal's reason, as those of commands and moves do. */
function obedient({ signal }: { readonly signal: AbortSignal }): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
}

describe('brakes', () => {
  test('let a handler end by itself', async () => {
    const brakes = new Brakes();
    expect(await brakes.guard({ signal: idle() }, async () => 'done')).toBe('done');
    await expect(brakes.guard({ signal: idle() }, () => Promise.reject(new Error('failed')))).rejects.toThrow('failed');
    expect(brakes.running).toBe(0);
  });

  test('stop a handler, which then waits for its worker to abort it', async () => {
    const brakes = new Brakes();
    const worker = new AbortController();
    let ended = false;
    const guarded = brakes.guard({ signal: worker.signal }, obedient).finally(() => {
      ended = true;
    });
    brakes.stop();
    await brakes.allStopped();
    expect(ended).toBe(false);
    worker.abort(new Error('shutdown'));
    await expect(guarded).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('leave what the worker aborts to the worker', async () => {
    const brakes = new Brakes();
    const worker = new AbortController();
    const guarded = brakes.guard({ signal: worker.signal }, obedient);
    worker.abort(new Error('timeout'));
    await expect(guarded).rejects.toThrow('timeout');
  });

  test('do not hide that a handler failed while it was stopped', async () => {
    const brakes = new Brakes();
    const guarded = brakes.guard({ signal: idle() }, async (task) => {
      await obedient(task).catch(() => {});
      throw new Error('exit 3');
    });
    brakes.stop();
    await expect(guarded).rejects.toThrow('exit 3');
  });

  test('stop what begins after they were put on', async () => {
    const brakes = new Brakes();
    brakes.stop();
    const worker = new AbortController();
    const guarded = brakes.guard({ signal: worker.signal }, async ({ signal }) => signal.throwIfAborted());
    await brakes.allStopped();
    worker.abort();
    await expect(guarded).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('wait for the slowest of several', async () => {
    const brakes = new Brakes();
    let finish = () => {};
    const slow = brakes.guard({ signal: idle() }, () => new Promise<void>((resolve) => (finish = resolve)));
    const worker = new AbortController();
    const fast = brakes.guard({ signal: worker.signal }, obedient);
    brakes.stop();
    let stopped = false;
    const all = brakes.allStopped().then(() => {
      stopped = true;
    });
    await new Promise((resolve) => setImmediate(resolve));
    expect([stopped, brakes.running]).toEqual([false, 1]);
    finish();
    await Promise.all([all, slow]);
    worker.abort();
    await expect(fast).rejects.toMatchObject({ name: 'AbortError' });
  });
});
