import type { Deed, Scene } from '../scene.ts';
import type { Situation } from '../situation.ts';

/** Failures at whose retry the task waits, by a policy that looks at its source. */
const PATIENT = {
  source: 'api',
  retry: { backoff: { kind: 'fixed', delay: 3_600_000 }, jitter: { kind: 'none' } },
};

const REFUSED: Deed = {
  does: 'throw',
  error: { message: 'connect ECONNREFUSED 127.0.0.1:9', code: 'ECONNREFUSED', syscall: 'connect' },
};

const REVOKED: Deed = {
  does: 'throw',
  error: { message: 'The token was revoked.', response: { status: 401, headers: {} } },
};

const SLOW_DOWN: Deed = {
  does: 'throw',
  error: { message: 'Slow down.', response: { status: 429, headers: { 'retry-after': '600' } } },
};

/** Tasks of one source, one after the other; answers the id of one of them. */
function inTurn(deeds: readonly Deed[], asked: number, task: object = PATIENT) {
  return async (scene: Scene) => {
    const worker = await scene.worker('worker', { task });
    const ids: number[] = [];
    for (const deed of deeds) {
      const id = await scene.enqueue(deed, { source: 'api' });
      ids.push(id);
      await worker.says({ settled: id });
    }
    return ids[asked] as number;
  };
}

export const SOURCES: readonly Situation[] = [
  {
    name: 'a failure at the fault of the source, just before another task shows that it is down',
    payer: 'a charge that was refunded',
    state: 'scheduled',
    executions: 1,
    explains: /given back/,
    happen: inTurn([REFUSED, REFUSED], 0),
  },
  {
    name: 'the failure that shows that the source is down',
    payer: 'the source',
    state: 'scheduled',
    executions: 1,
    explains: /source is down/,
    happen: inTurn([REFUSED, REFUSED], 1),
  },
  {
    name: 'the last attempt, while nobody knows yet whether the source is down',
    payer: { attempt: 'net.refused' },
    state: 'scheduled',
    executions: 1,
    explains: /waits 1m to see whether its source is down/,
    happen: inTurn([REFUSED], 0, { ...PATIENT, retry: { ...PATIENT.retry, maxAttempts: 1 } }),
  },
  {
    name: 'a token that was revoked, seen by two tasks: the first',
    payer: 'a charge that was refunded',
    state: 'scheduled',
    executions: 1,
    explains: /given back/,
    happen: inTurn([REVOKED, REVOKED], 0),
  },
  {
    name: 'a token that was revoked, seen by two tasks: the second',
    payer: 'the source',
    state: 'scheduled',
    executions: 1,
    explains: /needs a person/,
    happen: inTurn([REVOKED, REVOKED], 1),
  },
  {
    name: 'a task whose source asked another one to wait',
    payer: 'nobody',
    state: 'ready',
    executions: 0,
    explains: /wait/,
    async happen(scene) {
      const worker = await scene.worker('worker', { task: PATIENT });
      await worker.says({ settled: await scene.enqueue(SLOW_DOWN, { source: 'api' }) });
      const held = await scene.enqueue({ does: 'succeed' }, { source: 'api' });
      // A task of another source is enqueued later, and runs.
      await worker.says({ settled: await scene.enqueue({ does: 'succeed' }, { source: 'other' }) });
      return held;
    },
  },
];
