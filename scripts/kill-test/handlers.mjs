// The tasks of the campaign on PostgreSQL: what each of their executions ends with stands in their input.
import { defineTask, fixed, PermanentFailure, RetryLater } from '../../dist/index.js';

const MAX_ATTEMPTS = 3;

export function taskThatNotes(note) {
  return defineTask('work', {
    retry: { maxAttempts: MAX_ATTEMPTS, backoff: fixed('20ms'), jitter: { kind: 'none' } },
    async run({ ms, plan }, task) {
      note('start', task.id, task.execution);
      await new Promise((resolve) => setTimeout(resolve, ms));
      const how = plan[task.execution - 1] ?? 'success';
      note('end', task.id, task.execution, how);
      switch (how) {
        case 'failure':
          throw new Error('asked to fail');
        case 'permanent':
          throw new PermanentFailure('asked to fail for good');
        case 'deferral':
          throw new RetryLater('1s');
      }
      return { execution: task.execution };
    },
  });
}

/** An input by chance: three of four tasks succeed at once, of the others some are deferred and some fail, a few for good. */
export function drawInput(number, random) {
  return { number, ms: Math.floor(random() * 15), plan: random() < 0.75 ? [] : drawPlan(random) };
}

function drawPlan(random) {
  const plan = [];
  if (random() < 0.25) plan.push('deferral');
  for (let failures = Math.floor(random() * (MAX_ATTEMPTS + 1)); failures > 0; failures--) plan.push('failure');
  if (random() < 0.15) plan.push('permanent');
  return plan;
}
