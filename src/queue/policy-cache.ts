import { HoldfastError } from '../errors.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import { type Answer, answerFor, type Policy } from '../failure/policy.ts';
import type { Operations } from './operations.ts';
import type { Task } from './task-view.ts';

/** What a line about a task shows of its policy. */
export interface Answered {
  readonly policy: Policy;
  /** The rule for its last reason; the policy itself if there is no reason. */
  readonly answer: Pick<Answer, 'rule' | 'maxAttempts' | 'backoff' | 'adaptive' | 'jitter'>;
  /**
   * Whether a definition, a configuration or a worker says something about such tasks. Otherwise the shown limit would be a
   * guess.
   */
  readonly known: boolean;
}

/** The policies of tasks, computed once for tasks with the same layers. */
export class PolicyCache {
  readonly #holdfast: Operations;
  readonly #known = new Map<string, ExplainedPolicy>();

  constructor(holdfast: Operations) {
    this.#holdfast = holdfast;
  }

  async answerTo(task: Task): Promise<Answered> {
    const { type, queue, source, retry, reason } = task;
    const key = JSON.stringify([type, queue, source, retry]);
    const explained = this.#known.get(key) ?? (await this.#ask(task));
    this.#known.set(key, explained);
    return answeredBy(
      explained,
      task.attemptsByReason.find((each) => each.reason === reason),
    );
  }

  async #ask(task: Task): Promise<ExplainedPolicy> {
    try {
      return await this.#holdfast.policyFor(task);
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      // A newer version may have written options that this one does not know. The rest must be shown all the same.
      const { retry: _, ...rest } = task;
      return this.#holdfast.policyFor(rest);
    }
  }
}

function answeredBy({ policy, values }: ExplainedPolicy, last: Task['attemptsByReason'][number] | undefined): Answered {
  const answer = last ? answerFor(policy, last.reason, last.kind) : { ...policy, rule: 'policy' };
  return { policy, answer, known: values.some(({ from }) => from.by !== 'standard') };
}
