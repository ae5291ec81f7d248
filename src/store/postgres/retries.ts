import type { Because, Charge, Decision } from '../../failure/decide.ts';
import type { Failure } from '../../failure/outcome.ts';
import { failedAs, lastError } from '../last-error.ts';
import { leavesSource } from '../settlement.ts';
import type { Settlement } from '../store.ts';
import { ranFor, saidJson, tokenOf } from './encoding.ts';
import { list } from './writer.ts';

/**
 * Whether it is a failure that is charged to its task, which then waits for its next attempt, and nothing else. Most failures are.
 */
export function isRetry(settlement: Settlement): boolean {
  const { decision, report } = settlement;
  return (
    decision.next === 'scheduled' &&
    decision.charge.to === 'task' &&
    decision.lostInARow === 0 &&
    decision.needsToken !== true &&
    decision.verdict === undefined &&
    report.failure !== undefined &&
    report.unbegun !== true &&
    leavesSource(settlement)
  );
}

/** How long such a task waits, in whole milliseconds. */
function delayOf({ decision }: Settlement): number {
  return decision.next === 'scheduled' ? Math.ceil(decision.after) : 0;
}

/** The state of such a task after it was settled. */
export function stateAfterRetry(settlement: Settlement): 'scheduled' | 'ready' {
  return delayOf(settlement) > 0 ? 'scheduled' : 'ready';
}

/** Retries as the types `retries` and `settlement` have them. What many of them have in common is sent once. */
export function retriesOf(
  retries: readonly { readonly settlement: Settlement; readonly i: number }[],
): readonly [retries: string | null, said: string | null] {
  if (retries.length === 0) return [null, null];
  const all = retries.map(({ settlement }) => settlement);
  const said = new Distinct<Said>();
  const becauses = new Distinct<Because>();
  const columns = [
    list(all.map(({ lease }) => lease.task)),
    list(all.map(({ lease }) => tokenOf(lease))),
    list(all.map(({ lease }) => lease.execution)),
    list(all.map(({ revision }) => revision)),
    list(all.map(delayOf)),
    list(all.map((settlement) => said.placeOf(saidOf(settlement)))),
    list(all.map(({ decision }) => becauses.placeOf(decision.because))),
    list(all.map(({ decision: { because } }) => because.jitter?.roll ?? 'NULL')),
    list(all.map(({ report }) => ranFor(report))),
    list(retries.map(({ i }) => i)),
  ];
  return [
    `(${columns.map((column) => `"${column}"`).join()})`,
    `[${saidJson(said.values.map(asSettlement))},${JSON.stringify(becauses.values.flatMap(aroundRoll))}]`,
  ];
}

/** What a retry has in common with others. */
interface Said {
  readonly failure: Failure | undefined;
  readonly outcome: string;
  readonly message: string | undefined;
  readonly reason: string;
  readonly charge: Charge;
}

function saidOf({ decision, report: { failure, outcome, message } }: Settlement): Said {
  const { reason, charge } = decision as Extract<Decision, { next: 'scheduled' }>;
  return { failure, outcome, message, reason, charge };
}

/** The same with the keys of `settlement`. */
function asSettlement({ failure, outcome, message, reason, charge }: Said): object {
  return {
    c: charge.to,
    cr: charge.to === 'task' ? charge.reason : undefined,
    ck: charge.to === 'task' ? charge.kind : undefined,
    re: reason,
    er: failure && lastError(failure.message),
    fa: failure && failedAs(failure),
    oc: outcome,
    f: failure && saidJson(failure),
    m: message,
  };
}

/** The JSON of an explanation before and after its random number. (Within a text of JSON, the quotes would be escaped.) */
function aroundRoll(because: Because): readonly [before: string, after: string] {
  const text = JSON.stringify(because);
  if (!because.jitter) return [text, ''];
  const [before = '', after = ''] = text.split(`"roll":${because.jitter.roll}`);
  return [`${before}"roll":`, after];
}

/** A new value is compared only with the last values, so many at most. With all of them it would take long if all differ. */
const MOST_COMPARED = 6;

/** Values that differ in more than their random number, in the order in which they came. Equal ones may be there twice if many came between. */
class Distinct<Value extends object> {
  readonly values: Value[] = [];

  /** The place of this value, from 1 on. */
  placeOf(value: Value): number {
    const { length } = this.values;
    for (let i = length - 1; i >= 0 && i >= length - MOST_COMPARED; i -= 1) {
      if (areAlike(this.values[i], value)) return i + 1;
    }
    return this.values.push(value);
  }
}

/** Whether two values of JSON are the same, but for members with the name `roll`. */
function areAlike(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const members = b as Readonly<Record<string, unknown>>;
  let left = 0;
  for (const key in members) if (members[key] !== undefined) left += 1;
  for (const [key, value] of Object.entries(a)) {
    if (value === undefined) continue;
    if (key !== 'roll' && !areAlike(value, members[key])) return false;
    left -= 1;
  }
  return left === 0;
}
