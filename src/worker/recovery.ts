import type { Clock } from '../clock.ts';
import type { Milliseconds } from '../duration.ts';
import type { Outcome } from '../failure/outcome.ts';
import type { Logger } from '../log.ts';
import type { ProcessIdentity } from '../store/liveness.ts';
import type { Recovered } from '../store/store.ts';
import { hasEnded } from '../task.ts';
import type { Asking } from './asking.ts';
import type { Configuration } from './configuration.ts';
import type { AnyTask } from './define-task.ts';
import { definitionForRecovered, policyForRecovered } from './policy-for.ts';
import { claimedAsPublished } from './second-run.ts';
import type { Settler } from './settler.ts';
import type { Suspects } from './suspects.ts';
import { mustVerify, verified } from './verify.ts';

const MOST_AT_ONCE = 50;

export interface RecoveryOptions {
  readonly asking: Asking;
  readonly settler: Settler;
  readonly definitions: ReadonlyMap<string, AnyTask>;
  readonly configuration: Configuration;
  readonly suspects: Suspects;
  readonly clock: Clock;
  readonly log: Logger;
  /** Called for a lost task that ended with its loss and will not run again. */
  readonly onEnded: (definition: AnyTask, lost: Recovered) => void;
  /** Whether to stop and leave the rest to other workers. */
  readonly isOver?: () => boolean;
}

export interface Found {
  /** How many tasks were decided about. */
  readonly count: number;
  /** How long until a lease that has run out may be taken over, unless it is renewed. */
  readonly nextIn?: Milliseconds;
  readonly neighbours: readonly ProcessIdentity[];
}

/**
 * Recovers, as a worker, all tasks that others lost, and ends some of those whose deadline passed while they waited. Claims hand
 * out the others.
 */
export async function recover(worker: number, options: RecoveryOptions): Promise<Found> {
  const { asking, isOver = () => false } = options;
  for (let count = 0; ; ) {
    const { tasks: recovered, nextIn, neighbours } = await asking.ask((tasks) => tasks.recover(worker, MOST_AT_ONCE));
    await settleRecovered(recovered, options);
    count += recovered.length;
    // Lost tasks come first, so if an expired one came, no lost one is left.
    const areAll = recovered.length < MOST_AT_ONCE || recovered.at(-1)?.why === 'expiry';
    if (areAll || isOver()) return { count, neighbours, ...(nextIn !== undefined && { nextIn }) };
  }
}

/** Settles tasks that others lost, or whose deadline passed while they waited. */
export async function settleRecovered(
  recovered: readonly Recovered[],
  { settler, definitions, configuration, suspects, clock, log, onEnded }: Omit<RecoveryOptions, 'asking' | 'isOver'>,
): Promise<void> {
  await Promise.all(
    recovered.map(async (taken) => {
      const definition = definitions.get(taken.type);
      const task = claimedAsPublished(definition, taken.published, taken);
      const policy = policyForRecovered(task, definitions, configuration);
      const outcome = outcomeOf(task);
      if (outcome.kind === 'loss' && outcome.how !== 'while_stopping') suspects.noteLoss();
      const ranIt = definitionForRecovered(task, definitions);
      const context = { definition: ranIt, policy, clock, log };
      const found = mustVerify(outcome, task.facts, context) ? await verified(outcome, task, context) : { outcome };
      const settled = await settler.settle(task, policy, { ...found, ranFor: 0 });
      const wasLast = settled.kind === 'settled' && hasEnded(settled.state) && task.why === 'loss';
      if (wasLast && ranIt?.cleanUp) onEnded(ranIt, task);
    }),
  );
}

function outcomeOf({ why, lostBy = 'unknown', how = 'beside_others' }: Recovered): Outcome {
  return why === 'expiry' ? { kind: 'expiry' } : { kind: 'loss', worker: lostBy, how };
}
