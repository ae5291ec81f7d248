import type { Outcome } from '../failure/outcome.ts';
import type { Recovered } from '../store/store.ts';
import type { Asking } from './asking.ts';
import type { Configuration } from './configuration.ts';
import type { AnyTask } from './define-task.ts';
import { claimedUnder, policyForRecovered } from './policy-for.ts';
import type { Settler } from './settler.ts';

const MOST_AT_ONCE = 50;

export interface RecoveryOptions {
  readonly asking: Asking;
  readonly settler: Settler;
  readonly definitions: ReadonlyMap<string, AnyTask>;
  readonly configuration: Configuration;
  /** Whether to leave the rest to others. */
  readonly isOver?: () => boolean;
}

/**
 * Decides, as a worker, about tasks that others lost and about those whose deadline passed while they waited, until there are
 * no more. Answers how many there were.
 */
export async function recover(
  worker: number,
  { asking, settler, definitions, configuration, isOver = () => false }: RecoveryOptions,
): Promise<number> {
  for (let all = 0; ; ) {
    const recovered = await asking.ask((tasks) => tasks.recover(worker, MOST_AT_ONCE));
    await Promise.all(
      recovered.map((taken) => {
        const task = claimedUnder(definitions.get(taken.type), taken);
        const policy = policyForRecovered(task, definitions, configuration);
        return settler.settle(task, policy, { outcome: outcomeOf(task), ranFor: 0 });
      }),
    );
    all += recovered.length;
    if (recovered.length < MOST_AT_ONCE || isOver()) return all;
  }
}

function outcomeOf({ why, lostBy = 'unknown' }: Recovered): Outcome {
  return why === 'expiry' ? { kind: 'expiry' } : { kind: 'loss', worker: lostBy };
}
