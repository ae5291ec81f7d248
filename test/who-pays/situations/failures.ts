import type { Deed, Scene } from '../scene.ts';
import type { Situation } from '../situation.ts';

/** Failures at whose retry the task waits, so that one execution is what is judged. */
const LATER = { task: { retry: { backoff: { kind: 'fixed', delay: 3_600_000 }, jitter: { kind: 'none' } } } };

/** One worker runs one task, until its first execution is settled. */
function once(deed: Deed, program: object = LATER) {
  return async (scene: Scene) => {
    const id = await scene.enqueue(deed);
    const worker = await scene.worker('worker', program);
    await worker.says({ settled: id });
    return id;
  };
}

const STANDARD = { task: { retry: {} } };

/** An answer of a server, as HTTP clients throw it. */
function answer(status: number, headers: Readonly<Record<string, string>> = {}): Deed {
  return {
    does: 'throw',
    error: { message: `Request failed with status code ${status}`, name: 'AxiosError', response: { status, headers } },
  };
}

export const FAILURES: readonly Situation[] = [
  {
    name: 'a failure at the fault of the task',
    payer: { attempt: 'fs.not_found' },
    state: 'dead',
    explains: 'fs.not_found is permanent',
    shows: 'fs.not_found',
    happen: once({ does: 'throw', error: { message: 'no such file', code: 'ENOENT', syscall: 'open', path: 'a.txt' } }),
  },
  {
    name: 'a failure that nobody knows',
    payer: { attempt: 'unknown' },
    state: 'scheduled',
    explains: 'attempt 1 of 5 failed',
    shows: '1 of 5',
    happen: once({ does: 'fail' }),
  },
  {
    name: 'a handler that says that it cannot work',
    payer: { attempt: 'explicit.permanent' },
    state: 'dead',
    explains: 'retrying cannot help',
    happen: once({ does: 'permanent' }),
  },
  {
    name: 'a handler that asks for a person',
    payer: 'nobody',
    state: 'needs_manual',
    explains: 'The handler asked for a person',
    happen: once({ does: 'person' }),
  },
  {
    name: 'a handler that asks to be called later',
    payer: 'a deferral',
    state: 'scheduled',
    explains: 'Nothing is charged',
    shows: 'deferral',
    happen: once({ does: 'later', ms: 3_600_000 }),
  },
  {
    name: 'a rate limit with Retry-After',
    payer: 'a deferral',
    state: 'scheduled',
    explains: /asked for 10m.*Nothing is charged/,
    happen: once(answer(429, { 'retry-after': '600' }), STANDARD),
  },
  {
    name: 'a rate limit without Retry-After, under the standard policy',
    payer: 'a deferral',
    state: 'scheduled',
    explains: 'Nothing is charged',
    happen: once(answer(429), STANDARD),
  },
  {
    name: 'a quota that is used up',
    payer: 'a deferral',
    state: 'scheduled',
    explains: 'Nothing is charged',
    happen: once(answer(429, { 'retry-after': '3600', 'x-ratelimit-remaining': '0' }), STANDARD),
  },
  {
    name: 'a server that is unavailable and says until when',
    payer: 'a deferral',
    state: 'scheduled',
    explains: /asked for 10m.*Nothing is charged/,
    happen: once(answer(503, { 'retry-after': '600' }), STANDARD),
  },
  {
    name: 'a failure at the fault of the source, of which nobody knows an outage',
    payer: { attempt: 'net.refused' },
    state: 'scheduled',
    explains: 'attempt 1 of 5 failed',
    happen: once({
      does: 'throw',
      error: { message: 'connect ECONNREFUSED 127.0.0.1:9', code: 'ECONNREFUSED', syscall: 'connect' },
    }),
  },
  {
    name: 'a handler that runs longer than its time limit',
    payer: { attempt: 'timeout' },
    state: 'scheduled',
    explains: 'timeout: attempt 1 of 5 failed',
    happen: once({ does: 'untilAborted' }, { task: { retry: { ...LATER.task.retry, timeout: '200ms' } } }),
  },
];
