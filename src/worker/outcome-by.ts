import { outcomeOf } from '../failure/classify/classify.ts';
import type { Classifier } from '../failure/classify/rules.ts';
import { slipIn } from '../failure/known-reasons.ts';
import type { Mistakes } from '../mistakes.ts';
import type { Configuration } from './configuration.ts';
import { makeStackText } from './stack-text.ts';

/** Classifies a thrown value by the rules at the time when it is thrown. Tells of a signal whose reason is misspelt. */
export function outcomeBy(configuration: Configuration, mistakes?: Mistakes): Classifier['outcomeOf'] {
  const rightReasons = new Set<string>();
  const lookAt = (reason: string) => {
    if (!mistakes || rightReasons.has(reason) || mistakes.hasWarned(`reason ${reason}`)) return;
    const slip = slipIn(reason, 'rule');
    if (slip !== undefined) mistakes.tell(`reason ${reason}`, `A handler gave this reason. ${slip}`);
    else if (rightReasons.size < MOST_REASONS) rightReasons.add(reason);
  };
  return (thrown, context) => {
    makeStackText(thrown);
    const outcome = (configuration.classifier?.outcomeOf ?? outcomeOf)(thrown, context);
    if (outcome.kind === 'deferral') lookAt(outcome.reason);
    else if (outcome.kind === 'failure' && outcome.failure.evidence.rule === 'signal') lookAt(outcome.failure.reason);
    return outcome;
  };
}

const MOST_REASONS = 1_000;
