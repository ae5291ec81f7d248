import { defineTask, immediate } from '../../dist/index.js';
import { expectEqual, rateOf } from '../measuring.mjs';
import { fill, inStore, resultOf } from '../store.mjs';

const CONCURRENCY = 100;
const FAILURES = 2;

export const programs = {
  /** Each task fails twice, then succeeds: all of its executions are judged, and kept in its history. */
  async fail({ n, ...options }) {
    let runs = 0;
    const flaky = defineTask('flaky', {
      retry: { maxAttempts: 5, backoff: immediate, jitter: { kind: 'none' } },
      run(_, task) {
        runs += 1;
        if (task.attempt <= FAILURES) throw new Error('asked to fail');
      },
    });
    const count = Math.floor(n / (FAILURES + 1));
    return inStore({ ...options, tasks: [flaky] }, async (holdfast) => {
      await fill(holdfast, flaky, count);
      const executions = count * (FAILURES + 1);
      const rate = await rateOf(executions, () => holdfast.worker({ concurrency: CONCURRENCY }).drain());
      expectEqual(runs, executions, 'executions');
      const [newest] = await holdfast.list({ limit: 1 });
      expectEqual((await holdfast.history(newest.id)).length, FAILURES + 1, 'entries in the history of a task');
      return [resultOf('fail', holdfast, { concurrency: CONCURRENCY, ...rate })];
    });
  },
};
