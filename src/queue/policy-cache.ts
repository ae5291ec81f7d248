import { HoldfastError } from '../errors.ts';
import type { ExplainedPolicy } from '../failure/layers.ts';
import { type Answer, answerFor, type Policy } from '../failure/policy.ts';
import type { Holdfast } from './holdfast.ts';
import type { Task } from './task-view.ts';

/** What a policy says of a task, as far as a line about it needs. */
export interface Answered {
  readonly policy: Policy;
  /** What answers its last reason again; the policy itself where it has none. */
  readonly answer: Pick<Answer, 'rule' | 'maxAttempts' | 'backoff' | 'jitter'>;
  /** Whether anybody but the library speaks of such tasks: the limit of a type that nothing is known of is a guess. */
  readonly known: boolean;
}

/** The policies of tasks, asked once for those that are alike. */
export class PolicyCache {
  readonly #holdfast: Holdfast;
  readonly #known = new Map<string, ExplainedPolicy>();

  constructor(holdfast: Holdfast) {
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
      // A newer version may have written options that this one does not know; what is shown must show the rest all the same.
      const { retry: _, ...rest } = task;
      return this.#holdfast.policyFor(rest);
    }
  }
}

function answeredBy({ policy, values }: ExplainedPolicy, last: Task['attemptsByReason'][number] | undefined): Answered {
  const answer = last
    ? answerFor(policy, last.reason, last.kind)
    : { rule: 'policy', maxAttempts: policy.maxAttempts, backoff: policy.backoff, jitter: policy.jitter };
  return { policy, answer, known: values.some(({ from }) => from.by !== 'standard') };
}
