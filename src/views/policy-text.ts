import { describeOrigin, type PolicyValue } from '../failure/layers.ts';
import { isKind } from '../failure/outcome.ts';
import { type Answer, answerFor, type Policy } from '../failure/policy.ts';
import { policyWords } from './task-text.ts';

/** Each rule of a policy, with the values that hold under it, and these in words. The words are safe to print. */
export function rulesOf(policy: Policy): readonly { name: string; answer: Answer; words: string }[] {
  return Object.keys(policy.rules).map((name) => {
    const answer = answerFor(policy, name.replace(/\*$/, 'any'), isKind(name) ? name : undefined);
    const { rule: _, ...numbers } = answer;
    const uncounted = answer.charge ? '' : ', not counted';
    return { name, answer, words: `${policyWords({ ...policy, ...numbers })}${uncounted}` };
  });
}

export function valueJson({ path, value, from }: PolicyValue): object {
  const { level, by, name, file, line, column } = from;
  return {
    path,
    value: plainValue(value),
    from: {
      text: describeOrigin(from),
      level,
      by,
      name: name ?? null,
      file: file ?? null,
      line: line ?? null,
      column: column ?? null,
    },
  };
}

/** Without functions. */
export function plainValue(value: unknown): unknown {
  return value === undefined ? null : JSON.parse(JSON.stringify(value));
}
